"""Data of one's own and of publishers: arguments, functions, tables of labels, files of signals, WFDB, downloads."""

from __future__ import annotations

import gzip
import os
import socket
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.data.published import download as downloads
from clops_sweep.data.published.download import download

from ..data.declared_files import write_wfdb
from .engine import Case
from .place import HEAD

PREPARE = ("data", "prepare", "mine", "--plugins", "space.py", "--data-root", ".")
SETUP = """
import pandas as pd
class Mute:
    def __str__(self):
        raise ValueError
    __repr__ = __array__ = __str__
class Exits(list):
    def __len__(self):
        raise SystemExit(0)
x = np.random.default_rng(0).standard_normal((16, 2, 60)).astype('f4')
n = 16
GIVEN = dict(signals=x, sampling_rate=10, channels=['a', 'b'], units='V', labels=[0, 1] * 8, classes=['p', 'q'],
    patients=[it // 2 for it in range(n)])
"""


def _files(body: str, **declared: str) -> dict[str, str]:
    arguments = "".join(f", {name}={value}" for name, value in declared.items())
    return {"space.py": f"{HEAD}{SETUP}@dataset('mine'{arguments})\ndef mine(data_root):\n    {body}\n"}


ARGUMENTS: Mapping[str, Sequence[str]] = {
    "signals": [
        "None", "3", "'x'", "[]", "{}", "[None] * 16", "[[]] * 16", "x[:0]", "x[:, :0]", "x[:, :, :0]", "x[:, :, :1]", "x[..., None]",
        "x.astype(str)", "x.astype(object)", "x * 1j", "x.astype('M8[s]')", "x > 0", "np.zeros(16)", "x[0]", "x[:15]", "x[:, :1]",
        "np.where(np.arange(60) == 3, np.nan, x)", "np.where(np.arange(60) == 3, np.inf, x)",
        "x.astype('f8') * 1e300", "x * 0", "np.ma.masked_array(x, x > 0)", "[np.ma.masked_array(it, it > 0) for it in x]",
        "[*x[:15], x[15, :, :30]]", "[*x[:15], 'x']", "[*x[:15], x[15] > 0]", "(it for it in x)", "set(map(bytes, x))", "Mute()",
        "[Mute()] * 16", "Exits()", "np.zeros(16, [('a', 'f4'), ('b', 'f4')])", "[[[10**400] * 60] * 2] * 16", "b'x' * 100",
        "[*x[:15], np.full((2, 60), np.nan)]", "pd.DataFrame(x[:, 0]).astype(str)", "x.astype('f8') + 1e308", "np.array(x, dtype='V4')",
        "[it.tolist() + [[1, 2]] for it in x]", "x.astype('m8[s]')", "lambda: x", "open", "np.ma.masked_all((16, 2, 60))",
    ],
    "sampling_rate": ["None", "0", "-1", "'10'", "True", "float('nan')", "float('inf')", "[10]", "1j", "10**400", "x", "b'1'", "np.nan"],
    "channels": ["None", "'ab'", "[]", "['a']", "['a', 'a']", "['a', 'b', 'c']", "[1, 2]", "{'a': 1, 'b': 2}", "['a', '']", "3",
                 "['a', '\\x1b']", "[None, 'b']", "Mute()", "['a', Mute()]", "b'ab'"],
    "units": ["None", "3", "'\\x1b[2J'", "['V', 'V']", "b'V'", "Mute()", "'V\\n'"],
    "labels": [
        "None", "3", "[]", "[0, 1]", "[0] * 16", "[0, 1] * 7 + [0, 2]", "[0, 1] * 7 + [0, -1]", "[0, 0.5] * 8", "[0, np.nan] * 8",
        "['p', 'x'] * 8", "['p', 1] * 8", "['P', 'Q'] * 8", "[True, False] * 8", "[None, 1] * 8", "[[0], [1, 0]] * 8", "'pq' * 8",
        "np.ones((16, 3))", "np.full((16, 2), 2)", "np.full((16, 2), 0.5)", "np.zeros((16, 2, 2), int)", "[10**400] * 16", "Mute()",
        "np.ma.masked_array([0, 1] * 8, [False] * 15 + [True])", "{0: 1}", "[1j] * 16", "['p', 'q'] * 7 + ['p', '']", "np.zeros((16, 2))",
        "pd.array([0, 1] * 7 + [0, None])", "[b'p', b'q'] * 8", "[Mute()] * 16", "np.array([0, 1] * 8, 'M8[s]')", "[np.inf, 0] * 8",
        "(it for it in [0, 1] * 8)", "np.full((16, 2), -1)", "[2**63, 0] * 8", "[float('1e300'), 0] * 8",
    ],
    "classes": ["None", "'pq'", "[]", "['p']", "['p', 'p']", "['p', 'q', 'r']", "[0, 1]", "{'p': 1, 'q': 2}", "3", "['p', '']", "b'pq'",
                "['p', '\\x1b']", "['p', None]", "['p', Mute()]", "Mute()"],
    "patients": [
        "None", "3", "[]", "[1, 2]", "[1] * 16", "[1, 2] * 8", "[*range(15), None]", "[*range(15), np.nan]", "[*range(15), '']", "'ab' * 8",
        "[*range(15), '\\x1b']", "[[1], [2]] * 8", "{1: 2}", "[*range(15), True]", "[*range(15), Mute()]", "Mute()", "range(17)",
        "np.ma.masked_array(range(16), [False] * 15 + [True])", "[*range(15), 1j]", "np.zeros((16, 2))",
        "pd.array([*range(15), None])", "[*range(15), pd.NaT]", "[*range(15), pd.NA]", "[10**5000] * 16",
    ],
    "times": ["3", "[]", "['soon'] * 16", "['2020-01-01']", "['2020-01-01'] * 15 + ['NaT']", "['2020-13-01'] * 16", "[None] * 16",
              "range(17)", "'2020-01-01'", "[['2020-01-01']] * 16", "[float('nan')] * 16", "Mute()", "[10**400] * 16",
              "[pd.NaT] * 16", "{1: 2}", "[1j] * 16"],
    "domains": ["3", "[]", "'x'", "{3: range(16)}", "{'a b': range(16)}", "{'': range(16)}", "{'lead': range(16)}", "{'channel': range(16)}",
                "{'s': range(3)}", "{'s': [None] * 16}", "{'s': [np.nan] * 16}", "{'s': 3}", "{'s': ['\\x1b'] * 16}", "{'s': [''] * 16}",
                "{'s': 'ab' * 8}", "{'s': Mute()}", "{'\\x1b': range(16)}", "{'s': [[1]] * 16}", "{'s' * 5000: range(17)}"],
    "split": ["3", "[]", "'train'", "['train'] * 16", "['dev'] * 16", "['train', 'test'] * 8", "[None] * 16", "[0, 1, 2, 0] * 4",
              "['train'] * 10 + ['validation'] * 5 + ['test']", "['train'] * 8 + ['validation'] * 4 + [''] * 4", "Mute()", "{'train': 1}",
              "['Train'] * 8 + ['validation'] * 4 + ['test'] * 4", "['train'] * 15"],
    "window_seconds": ["0", "-1", "'1'", "True", "float('nan')", "float('inf')", "[1]", "1e-9", "0.1", "7", "1e300", "10**400", "1j"],
    "resample_to": ["0", "-1", "'1'", "True", "float('nan')", "float('inf')", "1e-9", "1e300", "10**400", "[1]", "1e9"],
    "names": ["3", "[]", "['a'] * 16", "range(15)", "[None] * 16", "[*'abcdefghijklmno', '\\n']", "'abc'", "[*range(15), '']", "Mute()",
              "[np.nan] * 16", "[*range(15), True]", "[[1]] * 16"],
    "gain": ["0", "-1", "'x'", "float('nan')", "float('inf')", "[]", "[1, 2, 3]", "[1, 0]", "{}", "1j", "[1, None]", "[[1, 2]] * 2",
             "10**400", "Mute()", "1e-400"],
    "no_such": ["1"],
}  # fmt: skip
PAIRS = [
    "dict(stride_seconds=1)", "dict(window_seconds=1, stride_seconds=0)", "dict(window_seconds=1, stride_seconds=1e-9)",
    "dict(window_seconds=1, stride_seconds=float('nan'))", "dict(window_seconds=1, stride_seconds='1')",
    "dict(window_seconds=1, stride_seconds=10**400)", "dict(window_seconds=0.3, resample_to=1)",
    "dict(split=['train'] * 8 + ['validation'] * 4 + ['test'] * 4, patients=[1] * 16)", "dict(window_seconds=2, resample_to=1e-3)",
    "dict(signals=x[:, 0], channels=['a', 'b'])", "dict(labels=['p', 'q'] * 8, classes=['q', 'r'])", "dict(sampling_rate=1e300, window_seconds=1)",
    "dict(sampling_rate=1e-300, window_seconds=1)", "dict(sampling_rate=1e-300, resample_to=1e300)", "dict(signals=x * 0, labels=[0, 1] * 8)",
    "dict(signals=[it[:, :20 + i] for i, it in enumerate(x)])", "dict(signals=(x * 0).astype('i2'))",
]  # fmt: skip


def own_arrays() -> Iterator[Case]:
    """Every argument of `Recordings` with wrong values."""
    for name, values in ARGUMENTS.items():
        for value in values:
            yield Case(
                f"{name}={value[:60]}", PREPARE, files=_files(f"return Recordings(**GIVEN | dict({name}={value}))")
            )
    for value in PAIRS:
        yield Case(value[:80], PREPARE, files=_files(f"return Recordings(**GIVEN | {value})"))


ONE = {"signal": "x[i]", "label": "i % 2", "patient": "i // 2", "channels": "['a', 'b']", "units": "'V'", "sampling_rate": "10",
       "classes": "['p', 'q']"}  # fmt: skip
YIELDED: Mapping[str, Sequence[str]] = {
    "signal": ["None", "3", "'x'", "[]", "x", "x[i, :1]", "x[i, :, :1]", "x[i] * 1j", "x[i] * np.nan", "x[i] > 0", "x[i].astype(str)",
               "x[i, :, :20 + i]", "Mute()", "np.ma.masked_array(x[i], x[i] > 0)", "(x[i] * 9).astype('i2') if i == 0 else x[i]",
               "x[i] if i else None", "[[1, 2], [1]]"],
    "label": ["None", "2", "-1", "0.5", "'r'", "True", "[0]", "[0, 1] if i else 0", "[0, 2]", "np.nan", "Mute()", "10**400",
              "0", "[]", "1j", "'\\x1b'"],
    "patient": ["None", "''", "np.nan", "'\\x1b'", "[1]", "1", "Mute()", "True", "i % 2", "10**5000"],
    "time": ["'soon'", "3.5", "'2020-01-01' if i else None", "None if i else '2020-01-01'", "'NaT'", "Mute()", "['2020-01-01']"],
    "domains": ["3", "{'s': None}", "{'s': 1} if i else {}", "{'s': 1} if i else {'t': 1}", "{'lead': 1}", "{3: 1}", "['s']", "Mute()"],
    "split": ["'dev'", "'train'", "None if i else 'train'", "3", "['train', 'test'][i % 2]", "''"],
    "name": ["'same'", "''", "'\\n'", "3.5j", "[1]", "Mute()", "np.nan"],
    "gain": ["0", "-1", "'x'", "np.nan", "[1, 2, 3]", "[]"],
    "sampling_rate": ["0", "None", "'x'", "10 + i", "np.nan", "[10]"],
    "channels": ["None", "'ab'", "['a']", "['a', 'b'] if i else ['b', 'a']", "['a', 'a']"],
    "units": ["None", "3", "'V' if i else 'mV'", "'\\x1b'"],
    "classes": ["None", "['p']", "['p', 'q'] if i else ['q', 'p']", "'pq'", "['p', 'q', 'r']"],
    "no_such": ["1"],
}  # fmt: skip
FUNCTIONS = [
    "return None", "return 3", "return []", "return x", "return {}", "return Recordings", "return (1, 2)", "return GIVEN", "return 'x'",
    "return Recording", "return iter([])", "return iter([3])", "return iter([None])", "yield", "yield None", "yield 3", "yield from []",
    "yield Recordings(**GIVEN)", "yield from x", "return (it for it in x)", "return [Recordings(**GIVEN)]", "return pd.DataFrame(x[:, 0])",
    "return Recordings(**GIVEN), Recordings(**GIVEN)", "return Recordings(**GIVEN).items", "return range(3)", "return Mute()", "return NotImplemented",
    "return iter(lambda: None, 3)", "raise StopIteration", "return map(lambda it: 1 / 0, x)",
]  # fmt: skip
SECOND = {
    "fewer recordings": "Recordings(**GIVEN | dict(signals=x[:12], labels=[0, 1] * 6, patients=range(12)))",
    "more recordings": "Recordings(**GIVEN | dict(signals=np.concatenate([x, x]), labels=[0, 1] * 16, patients=[*range(16)] * 2))",
    "other labels": "Recordings(**GIVEN | dict(labels=[1, 0] * 8))",
    "other patients": "Recordings(**GIVEN | dict(patients=[it // 4 for it in range(16)]))",
    "another order": "Recordings(**GIVEN | dict(names=[*range(16)][::-1]))",
    "another type": "Recordings(**GIVEN | dict(signals=(x * 9).astype('i2')))",
    "another length": "Recordings(**GIVEN | dict(signals=x[:, :, :50]))",
    "other channels": "Recordings(**GIVEN | dict(channels=['b', 'a']))",
    "other classes": "Recordings(**GIVEN | dict(classes=['q', 'p']))",
    "other dates": "Recordings(**GIVEN | dict(times=['2020-01-01'] * 16))",
    "domains": "Recordings(**GIVEN | dict(domains={'s': range(16)}))",
    "a window": "Recordings(**GIVEN | dict(window_seconds=1))",
    "NaN": "Recordings(**GIVEN | dict(signals=x * np.nan))",
    "nothing": "None",
    "a number": "3",
    "a generator": "(it for it in x)",
    "an error": "1 / 0",
    "an exit": "exit(0)",
    "an end of the process": "os._exit(0)",
    "a closed file": "open('space.py').close() or next(iter([]))",
}
"""What the function returns when it is called for the second time."""


def own_functions() -> Iterator[Case]:
    """What a function may return or yield in place of recordings, and what it may return the second time."""
    for body in FUNCTIONS:
        yield Case(body, PREPARE, files=_files(body))
    for name, values in YIELDED.items():
        for value in values:
            given = ", ".join(f"{field}={of}" for field, of in {**ONE, name: value}.items())
            body = f"for i in range(n):\n        yield Recording({given})"
            yield Case(f"yields {name}={value[:60]}", PREPARE, files=_files(body))
    for name, value in SECOND.items():
        body = f"import os\n    CALLS.append(1)\n    return Recordings(**GIVEN) if len(CALLS) < 2 else {value}"
        if name == "an end of the process":
            continue  # nothing in the process can say so
        files = _files(body)
        files["space.py"] = files["space.py"].replace("n = 16\n", "n = 16\nCALLS = []\n")
        yield Case(f"the second time: {name}", PREPARE, files=files)
        every = "for i in range(n if len(CALLS) < 2 else {}):"
        if name == "fewer recordings":
            given = ", ".join(f"{field}={of}" for field, of in ONE.items())
            for count in (0, 1, 15, 17):
                loop = every.format(count)
                files["space.py"] = files["space.py"].partition("    import os\n    CALLS")[0] + (
                    f"    CALLS.append(1)\n    {loop}\n        i %= n\n        yield Recording({given})\n"
                )
                yield Case(f"the second time: yields {count}", PREPARE, files=dict(files))
    for what, declared in {
        "files that are not there": {"files": "['no_such.npz']"},
        "a pattern that matches nothing": {"files": "['*.no_such']"},
        "a reference channel that is none": {"reference_channel": "'z'"},
        "units twice": {"units": "'V'"},
        "terms without dates": {"scenarios": "['time_il']", "terms": "['2020-01-01']"},
    }.items():
        fine = (0, 2) if what == "terms without dates" else (2,)
        yield Case(
            what, PREPARE, files=_files("return Recordings(**GIVEN)", **declared), fine=fine, may_write=("prepared",)
        )


# --- tables of labels, and files of signals beside them ---------------------------------------------------------------

ROWS = [f"s{number:02d}.csv,{'pq'[number % 2]},w{number // 2},2020-01-{number + 1:02d}" for number in range(16)]
TABLE = "\n".join(["file,label,who,day", *ROWS]) + "\n"
SIGNAL = "a,b\n" + "\n".join(f"{row * 7 % 11},{row * 5 % 13}" for row in range(60)) + "\n"
FOLDER = "Recordings.from_folder(data_root / 'signals', table='labels.csv', label='label', name='file', patient='who', sampling_rate=10, units='V'"
SIGNALS = {
    **{f"signals/s{number:02d}.csv": SIGNAL.replace("\n3,", f"\n{number},") for number in range(16)},
    "signals/labels.csv": TABLE,
}
TABLES: Mapping[str, str | bytes] = {
    "empty": "",
    "titles alone": "file,label,who,day\n",
    "no titles": "\n".join(ROWS),
    "a title twice": TABLE.replace("label", "file", 1),
    "the label's title twice": TABLE.replace("who", "label", 1),
    "a title less": TABLE.replace("who,day", "day", 1),
    "a cell less": TABLE.replace(",w3", "", 1),
    "a cell more": TABLE.replace("w3", "w3,x", 1),
    "UTF-16": TABLE.encode("utf-16"),
    "UTF-32": TABLE.encode("utf-32"),
    "Latin-1": TABLE.replace("w3", "w\xe9", 1).encode("latin-1"),
    "zero bytes": TABLE.replace("w3", "w\0", 1),
    "zero bytes in a title": TABLE.replace("label", "la\0bel", 1),
    "a quote that is not closed": TABLE.replace("w3", '"w3', 1),
    "a cell of a megabyte": TABLE.replace("w3", "w" * 10**6, 1),
    "semicolons": TABLE.replace(",", ";"),
    "tabs": TABLE.replace(",", "\t"),
    "bytes": bytes(range(1, 256)) * 50,
    "a row twice": TABLE + ROWS[0] + "\n",
    "a file that is not there": TABLE.replace("s03.csv", "s99.csv"),
    "a path out of the folder": TABLE.replace("s03.csv", "../space.py"),
    "an absolute path": TABLE.replace("s03.csv", "/etc/passwd"),
    "no file name": TABLE.replace("s03.csv", ""),
    "no labels": TABLE.replace(",p,", ",,").replace(",q,", ",,"),
    "one label": TABLE.replace(",q,", ",p,"),
    "a label that cannot be printed": TABLE.replace(",q,", ",\x1b[2J,"),
    "a patient that cannot be printed": TABLE.replace("w3", "\x1b[2J"),
    "no patient": TABLE.replace("w3", ""),
    "one patient": "\n".join(["file,label,who,day", *(row.replace(row.split(",")[2], "w") for row in ROWS)]),
    "two patients": "\n".join(["file,label,who,day", *(row.replace(row.split(",")[2], f"w{i % 2}") for i, row in enumerate(ROWS))]),
    "blank lines": "\n" * 50,
    "a comment": "# a comment\n" + TABLE,
    "a gzip": gzip.compress(TABLE.encode()),
    "a million rows": "file,label,who,day\n" + "s00.csv,p,w,2020-01-01\n" * 10**6,
}  # fmt: skip
SIGNAL_FILES: Mapping[str, str | bytes] = {
    "empty": "",
    "titles alone": "a,b\n",
    "one row": "a,b\n1,2\n",
    "text": SIGNAL.replace("7,5", "7,x"),
    "an empty cell": SIGNAL.replace("7,5", "7,"),
    "a row short": SIGNAL.replace("7,5", "7"),
    "a row long": SIGNAL.replace("7,5", "7,5,3"),
    "NaN": SIGNAL.replace("7,5", "nan,5"),
    "infinity": SIGNAL.replace("7,5", "inf,5"),
    "1e400": SIGNAL.replace("7,5", "1e400,5"),
    "1e300": SIGNAL.replace("7,5", "1e300,5"),
    "a column less": "\n".join(line.split(",")[0] for line in SIGNAL.splitlines()),
    "other titles": SIGNAL.replace("a,b", "a,c"),
    "a title twice": SIGNAL.replace("a,b", "a,a"),
    "UTF-16": SIGNAL.encode("utf-16"),
    "bytes": bytes(range(1, 256)) * 50,
    "zero bytes": "a,b\n" + "\0" * 100,
    "semicolons": SIGNAL.replace(",", ";"),
    "another length": SIGNAL + "1,2\n",
    "hexadecimal": SIGNAL.replace("7,5", "0x7,5"),
    "a date": SIGNAL.replace("7,5", "2020-01-01,5"),
    "commas in numbers": SIGNAL.replace("7,5", '"7,0",5'),
    "a quote that is not closed": SIGNAL.replace("7,5", '"7,5'),
    "a blank line": SIGNAL.replace("7,5\n", "7,5\n\n", 1),
    "true": SIGNAL.replace("7,5", "true,5"),
}
CALLS = [
    "pattern='*.txt'", "pattern=3", "pattern='*'", "pattern='/etc/*.csv'", "pattern='no_such*.csv'", "label='x'",
    "label=9", "label=-1", "label=None", "label=True", "label=''", "label='#Dx'", "label=[1]", "name='x'", "name=9", "name='label'",
    "patient='x'", "patient='#Age'", "patient=True", "time='label'", "time='x'", "domains=3", "domains={'s': 'x'}", "domains={'a b': 'who'}",
    "domains={'lead': 'who'}", "domains={3: 'who'}", "split='label'", "split='x'", "separator=''", "separator=3", "separator=None, classes=[]",
    "classes='pq'", "classes=['p']", "classes=['p', 'p']", "classes=['x', 'y']", "classes=['p', 'q', 'r']", "classes={'p': 'a'}", "classes=3",
    "classes={'p': 'a', 'q': 'a'}", "classes={'p': 3, 'q': 'b'}", "classes={3: 'a', 'q': 'b'}", "channels='ab'", "channels=['a', 'x']",
    "channels=[]", "channels=['a', 'a']", "channels=[0, 1]", "gain=0", "gain=[1, 2, 3]", "gain='x'", "sampling_rate=0", "sampling_rate='x'",
    "units=3", "units=None", "window_seconds=99", "window_seconds=0", "resample_to=float('nan')", "stride_seconds=1", "table='no_such.csv'",
    "table=3", "table=None", "table='.'", "table='/dev/null'", "table=''", "table=pd.DataFrame()", "table=pd.DataFrame({'file': []})",
    "table=pd.DataFrame({'file': ['s00.csv'], 'label': [None], 'who': [1]})", "table=pd.DataFrame([[1, 2]], columns=['file', 'file'])",
    "table=pd.read_csv(data_root / 'signals/labels.csv').set_index('file')", "table=[['s00.csv', 'p', 'w0']]", "table='s00.csv'",
    "table=pd.read_csv(data_root / 'signals/labels.csv').assign(label=[1, 2.5] * 8, who=np.nan)", "table=x", "no_such=3",
    "table=pd.concat([pd.read_csv(data_root / 'signals/labels.csv')] * 2, axis=1)",
]  # fmt: skip


def _array(make: Callable[[Any], None]) -> Callable[[Path], None]:
    """A file `x.npy` or `x.parquet` for the first recording, all of which then are of that kind."""

    def write(path: Path) -> None:
        for number in range(16):
            whole = np.random.default_rng(number).standard_normal((2, 60)).astype(np.float32)
            file = path.parent / f"s{number:02d}{path.suffix}"
            if path.suffix == ".npy":
                np.save(file, whole)
            else:
                pd.DataFrame(whole.T, columns=["a", "b"]).to_parquet(file)
        make(path)

    return write


def _save(array: Any) -> Callable[[Path], None]:
    return _array(lambda path: np.save(path, array, allow_pickle=True))


_HUGE = (
    b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (2, 999999999999), }".ljust(127) + b"\n"
)
ARRAYS: Mapping[str, Callable[[Path], None]] = {
    "objects": _save(np.array([[{}, 3], [4, 5]], object)),
    "text": _save(np.full((2, 60), "x")),
    "complex numbers": _save(np.ones((2, 60)) * 1j),
    "three dimensions": _save(np.ones((2, 60, 3))),
    "no dimension": _save(np.float32(3)),
    "nothing": _save(np.ones((0, 60))),
    "one sample": _save(np.ones((2, 1))),
    "three channels": _save(np.ones((3, 60))),
    "NaN": _save(np.full((2, 60), np.nan)),
    "dates": _save(np.zeros((2, 60), "M8[s]")),
    "fields": _save(np.zeros(60, [("a", "f4"), ("b", "f4")])),
    "too large for float32": _save(np.full((2, 60), 1e300)),
    "an empty file": _array(lambda path: path.write_bytes(b"")),
    "half of it": _array(lambda path: path.write_bytes(path.read_bytes()[:300])),
    "a shape beyond its bytes": _array(lambda path: path.write_bytes(_HUGE)),
    "a header that is no header": _array(lambda path: path.write_bytes(b"\x93NUMPY\x01\x00\x10\x00__import__('os')")),
    "a zip": _array(lambda path: np.savez(path.open("wb"), a=np.ones((2, 60)))),
    "a pickle": _array(lambda path: path.write_bytes(b"\x80\x04K\x03.")),
}
PARQUETS: Mapping[str, Callable[[Path], None]] = {
    "an empty file": _array(lambda path: path.write_bytes(b"")),
    "half of it": _array(lambda path: path.write_bytes(path.read_bytes()[:300])),
    "text": _array(lambda path: pd.DataFrame({"a": ["x"] * 60, "b": ["y"] * 60}).to_parquet(path)),
    "a column less": _array(lambda path: pd.DataFrame({"a": np.ones(60)}).to_parquet(path)),
    "nothing missing but numbers": _array(lambda path: pd.DataFrame({"a": [None] * 60, "b": [1.0] * 60}).to_parquet(path)),
    "lists": _array(lambda path: pd.DataFrame({"a": [[1.0]] * 60, "b": [[2.0]] * 60}).to_parquet(path)),
    "no row": _array(lambda path: pd.DataFrame({"a": [], "b": []}).to_parquet(path)),
    "dates": _array(lambda path: pd.DataFrame({"a": pd.date_range("2020", periods=60), "b": 1.0}).to_parquet(path)),
    "other bytes": _array(lambda path: path.write_bytes(path.read_bytes()[:-50] + b"x" * 50)),
}  # fmt: skip


def fifo(path: Path) -> None:
    """A file that never gives anything."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def link(target: str) -> Callable[[Path], None]:
    """A link to somewhere."""

    def make(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    return make


def folder(path: Path) -> None:
    """A folder in place of a file."""
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)


def listening(path: Path) -> None:
    """A socket in place of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    here = os.getcwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


NO_FILES: Mapping[str, Callable[[Path], None]] = {
    "a FIFO": fifo,
    "a folder": folder,
    "a socket": listening,
    "/dev/zero": link("/dev/zero"),
    "/dev/full": link("/dev/full"),
    "a dangling link": link("nowhere"),
    "a link to itself": lambda path: link(path.name)(path),
}


def label_tables() -> Iterator[Case]:
    """Tables, signal files and arguments of `from_folder`."""
    files = _files(f"return {FOLDER})") | SIGNALS
    for name, table in TABLES.items():
        fine = (0, 2) if name in ("Latin-1", "tabs", "a patient that cannot be printed") else (2,)
        yield Case(
            f"table: {name}", PREPARE, files=files | {"signals/labels.csv": table}, fine=fine, may_write=_made(fine)
        )
    for name, content in SIGNAL_FILES.items():
        for number in (0, 3):
            odd = name in ("a blank line", "commas in numbers", "hexadecimal") or (name, number) == ("a column less", 0)
            fine = (0, 2) if odd else (2,)
            place = {f"signals/s{number:02d}.csv": content}
            yield Case(
                f"signals of number {number}: {name}", PREPARE, files=files | place, fine=fine, may_write=_made(fine)
            )
    for what, make in NO_FILES.items():
        for place in ("signals/labels.csv", "signals/s00.csv", "signals/s03.csv"):
            yield Case(f"{place} is {what}", PREPARE, files=files | {place: make})
    for call in CALLS:
        names = {argument.partition("=")[0].strip() for argument in call.split(", ")}
        given = [it for it in FOLDER.split(", ") if it.partition("=")[0] not in names]
        yield Case(f"from_folder({call[:60]})", PREPARE, files=_files(f"return {', '.join(given)}, {call})") | SIGNALS)
    for ending, kinds in ((".npy", ARRAYS), (".parquet", PARQUETS)):
        body = f"return {FOLDER}, pattern='*{ending}')"
        of_kind = _files(body) | {"signals/labels.csv": TABLE.replace(".csv", ending)}
        for name, make in kinds.items():
            for number in (0, 3):
                place = {f"signals/s{number:02d}{ending}": make}
                fine = (0, 2) if (name, number) == ("a column less", 0) else (2,)
                case = f"{ending} of number {number}: {name}"
                yield Case(case, PREPARE, files=of_kind | place, fine=fine, may_write=_made(fine))


def _made(fine: Sequence[int]) -> tuple[str, ...]:
    return ("prepared",) if 0 in fine else ()


# --- WFDB -------------------------------------------------------------------------------------------------------------


def write_records(place: Path) -> None:
    """Sixteen records of two channels with a table of labels."""
    for number in range(16):
        signal = np.random.default_rng(number).integers(-900, 900, (2, 600))
        write_wfdb(place, f"r{number:02d}", signal, 100, ("a", "b"), "mV", [f"Dx: {'pq'[number % 2]}"], gain=200)
    rows = [f"r{number:02d},{'pq'[number % 2]},w{number // 2}" for number in range(16)]
    (place / "labels.csv").write_text("\n".join(["record,label,who", *rows]) + "\n")


HEADER = {
    0: {  # of the line of the record
        0: ["../r03", "r03/2", "r04", "", "\x1b", "/etc/passwd", "x" * 5000],
        1: ["0", "1", "3", "-1", "x", "1e3", "99999999999"],
        2: ["0", "-1", "nan", "inf", "x", "1e400", "100/0", "100/x", "100(x", "1e-300", "1e300", "200"],
        3: ["0", "1", "-5", "x", "nan", "599", "601", "9" * 12, "9" * 400, "600.5"],
    },
    1: {  # of that of a signal
        0: ["../r03.dat", "/etc/passwd", "r04.dat", "no_such.dat", "-", "~", ".", "\x1b.dat", "r03.hea"],
        1: [
            "99",
            "x",
            "8",
            "80",
            "212",
            "24",
            "32",
            "61",
            "310",
            "311",
            "508",
            "16x2",
            "16x0",
            "16:5",
            "16+9999999",
            "-16",
            "16+x",
        ],
        2: [
            "0/mV",
            "-200/mV",
            "nan/mV",
            "inf/mV",
            "x/mV",
            "1e999/mV",
            "1e-300/mV",
            "200(x)/mV",
            "200(1e9)/mV",
            "200/",
            "200(0/mV",
        ],
        3: ["x", "-1", "nan", "99999"],
        4: ["x", "nan", "1.5", "99999999999"],
        5: ["x", "nan", "99999999999"],
        6: ["x", "nan", "12345678901234567890"],
        7: ["x", "-1", "99999999999"],
    },
}
PLAUSIBLE = {
    "r04",
    "x" * 5000,
    "100/0",
    "200/",
    "200",
    "16x0",
    "1e300",
    "-",
    "x",
    "nan",
    "99999",
    "-1",
    "99999999999",
    "1.5",
    "12345678901234567890",
}
"""Values that a lenient reader of the specification may pass over."""
WHOLE_HEADERS: Mapping[str, str | bytes] = {
    "empty": "",
    "comments alone": "# nothing\n" * 3,
    "bytes": bytes(range(1, 256)) * 20,
    "zero bytes": b"\0" * 500,
    "UTF-16": "r03 2 100 600\n".encode("utf-16"),
    "the first line alone": "r03 2 100 600\n",
    "many lines": "r03 2 100 600\n" + "r03.dat 16 200/mV 16 0 0 0 0 a\n" * 100_000,
    "a long line": "r03 2 100 600 " + "x" * 10**7 + "\n",
    "several segments": "r03/2 2 100 600\nr01 300\nr02 300\n",
    "one that holds itself": "r03/1 2 100 600\nr03 600\n",
}
SIGNAL_BYTES: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "one byte less": lambda whole: whole[:-1],
    "half": lambda whole: whole[: len(whole) // 2],
    "more": lambda whole: whole + b"xx",
    "another sample": lambda whole: whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
    "missing samples": lambda whole: whole[:100] + b"\x00\x80" * 20 + whole[140:],
    "all missing": lambda whole: b"\x00\x80" * (len(whole) // 2),
    "flat": lambda whole: b"\x05\x00" * (len(whole) // 2),
}  # fmt: skip
WFDB_CALLS = [
    "folder='nowhere'", "folder='space.py'", "folder=3", "folder=''", "label='x'", "label='#No'", "label='.atr'", "label='.atr', window_seconds=1",
    "label='.x y'", "label=None", "label=9", "label='#'", "label='#Dx', patient='#No'", "table=None", "table=None, label='#Dx', classes=None",
    "name='label'", "name=9", "patient='x'", "time='label'", "time='#Dx'", "domains={'s': '#No'}", "split='label'", "separator=''",
    "channels=['a', 'x']", "channels=['a', 'a']", "channels='ab'", "channels=[]", "classes=['p']", "classes={'p': 'x'}", "classes=3",
    "window_seconds=0", "window_seconds=1e9", "window_seconds='1'", "stride_seconds=1", "resample_to=-1", "resample_to=float('inf')", "no_such=1",
]  # fmt: skip


def edited(change: Callable[[bytes], str | bytes]) -> Callable[[Path], None]:
    """Changes a file that is there already."""

    def make(path: Path) -> None:
        found = change(path.read_bytes())
        path.write_bytes(found.encode("utf-8", "surrogateescape") if isinstance(found, str) else found)

    return make


def _field(line: int, field: int, value: str) -> Callable[[bytes], str]:
    def change(whole: bytes) -> str:
        lines = whole.decode().splitlines()
        fields = lines[line].split(None, 8)
        fields[field] = value
        lines[line] = " ".join(fields)
        return "\n".join(lines) + "\n"

    return change


def wfdb() -> Iterator[Case]:
    """Headers, signal files and arguments of `from_wfdb`."""
    call = "Recordings.from_wfdb(folder, table='labels.csv', name='record', label='label', patient='who'"
    files = _files(f"folder = data_root / 'wfdb'\n    return {call})") | {"wfdb": write_records}
    for line, fields in HEADER.items():
        for field, values in fields.items():
            for value in values:
                fine = (0, 2) if value in PLAUSIBLE else (2,)
                change = {"wfdb/r03.hea": edited(_field(line, field, value))}
                name = f"line {line + 1}, field {field + 1}: {ascii(value)[:40]}"
                yield Case(name, PREPARE, files=files | change, fine=fine, may_write=_made(fine))
    for name, content in WHOLE_HEADERS.items():
        yield Case(f"header: {name}", PREPARE, files=files | {"wfdb/r03.hea": content})
        yield Case(f"the first header: {name}", PREPARE, files=files | {"wfdb/r00.hea": content})
    for name, change_bytes in SIGNAL_BYTES.items():
        fine = (0, 2) if name == "more" else (2,)
        change = {"wfdb/r03.dat": edited(change_bytes)}
        yield Case(f"signals: {name}", PREPARE, files=files | change, fine=fine, may_write=_made(fine))
    for what, make in NO_FILES.items():
        for place in ("wfdb/r03.hea", "wfdb/r03.dat", "wfdb/labels.csv"):
            yield Case(f"{place} is {what}", PREPARE, files=files | {place: make})
    for text in WFDB_CALLS:
        names = {argument.partition("=")[0].strip() for argument in text.split(", ")}
        given = [it for it in call.split(", ") if it.partition("=")[0] not in names and not it.startswith("Recordings")]
        first = [] if "folder" in names else ["folder"]
        body = f"folder = data_root / 'wfdb'\n    return Recordings.from_wfdb({', '.join([*first, *given, text])})"
        yield Case(f"from_wfdb({text[:60]})", PREPARE, files=_files(body) | {"wfdb": write_records})
    notes = _files(f"folder = data_root / 'wfdb'\n    return {call.replace(chr(39) + 'label' + chr(39), chr(39) + '.atr' + chr(39))}, "
                   "window_seconds=1, classes=['(N', '(AF'])") | {"wfdb": write_records}  # fmt: skip
    for name, content in {
        "none": None, "empty": b"", "bytes": bytes(range(256)) * 8, "zero bytes": b"\0" * 500, "text": b"(N\n(AF\n", "odd": b"\1\2\3",
        "notes without an end": b"\x00\xfc" * 100, "a skip beyond the end": b"\x00\xec\xff\x7f\xff\xff" * 50,
    }.items():  # fmt: skip
        of_all = {} if content is None else {f"wfdb/r{number:02d}.atr": content for number in range(16)}
        yield Case(f"annotations: {name}", PREPARE, files=notes | of_all)


# --- what publishers send ---------------------------------------------------------------------------------------------


class _Sends(BaseHTTPRequestHandler):
    """Answers every question with what the server holds."""

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_GET(self) -> None:
        self._send(self.server.body)  # type: ignore[attr-defined]

    def _send(self, body: bytes) -> None:
        server: Any = self.server
        self.send_response(server.status)
        for name, value in {"Content-Length": str(len(server.body)), **server.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def _bomb() -> bytes:
    """Eight gigabytes of zeros in eight megabytes."""
    part = gzip.compress(bytes(2**24), 9)
    return part * 512


SENT: Mapping[str, tuple[int, Callable[[], bytes], Mapping[str, str]]] = {
    "nothing": (200, lambda: b"", {}),
    "a page": (200, lambda: b"<html>please log in</html>", {}),
    "not found": (404, lambda: b"no", {}),
    "an error": (500, lambda: b"no", {}),
    "a way elsewhere without end": (302, lambda: b"", {"Location": "/files/mitdb/1.0.0/SHA256SUMS.txt"}),
    "bytes": (200, lambda: bytes(range(256)) * 40, {}),
    "paths out of the folder": (200, lambda: b"0" * 64 + b" ../../../escaped\n", {}),
    "absolute paths": (200, lambda: b"0" * 64 + b" /tmp/hostile-escaped\n", {}),
    "sums that are none": (200, lambda: b"zz RECORDS\n", {}),
    "more than was announced": (200, lambda: b"0" * 64 + b" RECORDS\n", {"Content-Length": "3"}),
    "less than was announced": (200, lambda: b"0" * 64 + b" RECORDS\n", {"Content-Length": "999999"}),
    "a length that is none": (200, lambda: b"0" * 64 + b" RECORDS\n", {"Content-Length": "x"}),
    "a gzip that is none": (200, lambda: b"no gzip", {"Content-Encoding": "gzip"}),
    "a bomb": (200, _bomb, {"Content-Encoding": "gzip"}),
    "a million names": (200, lambda: b"".join(b"%064d %d.hea\n" % (it, it) for it in range(10**6)), {}),
}
PROXIES = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"), "")


def _download(status: int, body: Callable[[], bytes], headers: Mapping[str, str]) -> Callable[[], object]:
    def call() -> object:
        server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Sends)
        server.handle_error = lambda *_: None  # the client may hang up
        server.status, server.body, server.headers = status, body(), headers
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        downloads.SERVER = f"http://127.0.0.1:{server.server_port}/files/"  # type: ignore[misc]
        downloads._RETRIES = 0  # type: ignore[misc]
        return download("mitbih", Path("data"))

    return call


def _bomb_in_a_table(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
        with book.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as sheet:
            for _ in range(1024):
                sheet.write(bytes(2**22))


def _entities(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    levels = "".join(f'<!ENTITY l{it} "{f"&l{it - 1};" * 10}">' for it in range(1, 12))
    text = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">{levels}]><workbook>&l11;</workbook>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", text)
        book.writestr("xl/workbook.xml", text)


def sent() -> Iterator[Case]:
    """What a server may send, and what a publisher's archive may hold."""
    for name, (status, body, headers) in SENT.items():
        yield Case(
            f"a server sends {name}", call=_download(status, body, headers), environment=PROXIES, may_write=("data",)
        )
    for name, make in {"a bomb": _bomb_in_a_table, "entities without end": _entities, **NO_FILES}.items():
        yield Case(
            f"Diagnostics.xlsx is {name}",
            ("data", "prepare", "chapman", "--data-root", "data"),
            files={"data/chapman/Diagnostics.xlsx": make, "data/chapman/ECGDataDenoised/M.csv": "1,2\n"},
        )
