"""Files as recorders, spreadsheets and pandas write them: read rightly, or refused with a remedy."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from clops_sweep import Recordings
from clops_sweep.cli.data import data
from clops_sweep.data.declared.file_folder import read_signal
from clops_sweep.data.declared.text_table import TextOptions, text_columns, text_layout
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.left_out import sentences
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves, write_wfdb

X = np.round(waves(12, 2, 160), 3).astype(float)


def _frames(tmp_path: Path, call: str, **options: Any) -> FrameSet:
    declare(tmp_path / "space.py", f'@dataset("own")\ndef own(data_root):\n    return Recordings.{call}\n')
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1, **options)
    return open_frames("own", prepared_root=tmp_path / "prepared", leads="all")


def _folder(tmp_path: Path, write: Callable[[Path, np.ndarray], None], ending: str = "csv", **options: Any) -> FrameSet:
    """Write X with a function, and return the frames of the files."""
    for number, signal in enumerate(X):
        write(tmp_path / f"r{number}.{ending}", signal)
    (tmp_path / "labels.txt").write_text("\n".join(["file,label", *(f"r{n},{'pq'[n % 2]}" for n in range(12))]))
    given = {"table": "labels.txt", "name": "file", "label": "label", "sampling_rate": 80, "units": "mV", **options}
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
    return _frames(tmp_path, f'from_folder(data_root, "r*.{ending}", {arguments})')


def _text(
    path: Path,
    signal: np.ndarray,
    separator: str = ",",
    decimal: str = ".",
    head: str = "ecg,ppg\n",
    encoding: str = "utf-8",
    mark: bytes = b"",
    form: str = "{0}{s}{1}",
    end: str = "\n",
    last: str = "",
) -> None:
    lines = [
        form.format(*(str(each).replace(".", decimal) for each in row), s=separator, n=n)
        for n, row in enumerate(signal.T)
    ]
    names = head if head.startswith("#") and separator != "," else head.replace(",", separator)
    content = names + "".join(line + end for line in lines) + last
    path.write_bytes(mark + content.encode(encoding))


FORMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "semicolons": {"separator": ";"},
    "tabs": {"separator": "\t"},
    "bars": {"separator": "|"},
    "decimal commas": {"separator": ";", "decimal": ","},
    "decimal commas and tabs": {"separator": "\t", "decimal": ","},
    "a mark": {"mark": codecs.BOM_UTF8},
    "UTF-16": {"encoding": "utf-16"},
    "UTF-16 of big ends": {"encoding": "utf-16-be", "mark": codecs.BOM_UTF16_BE},
    "UTF-16 without a mark": {"encoding": "utf-16-le"},
    "UTF-16 with tabs and commas": {"encoding": "utf-16", "separator": "\t", "decimal": ","},
    "Windows": {"end": "\r\n", "head": "ecg,ppg\r\n"},
    "no names": {"head": ""},
    "units": {"head": "ecg,ppg\nmV,mV\n"},
    "units in brackets": {"head": "ecg (mV),ppg [NU]\n(mV),[NU]\n"},
    "spaces": {"form": " {0} {s} {1}", "head": "ecg , ppg\n"},
    "quotes": {"form": '"{0}"{s}"{1}"', "head": '"ecg","ppg"\n'},
    "comments": {"head": "# device: X, 80 Hz\n# start; 2020\necg,ppg\n"},
    "names in a comment": {"head": "# ecg,ppg\n"},
    "names as pandas counts them": {"head": "0,1\n"},
    "separators at ends": {"form": "{0}{s}{1}{s}", "head": "ecg,ppg,\n"},
    "no names, but separators at ends": {"form": "{0}{s}{1}{s}", "head": ""},
    "a line for Excel": {"separator": ";", "head": "sep=;\necg,ppg\n"},
    "decimal commas in quotes": {"separator": ";", "decimal": ",", "form": '"{0}"{s}"{1}"', "head": '"ecg","ppg"\n'},
    "tabs below a comment with commas": {"separator": "\t", "head": "# a, b, c\n# Labels:= ecg, ppg\n"},
    "JSON of a recorder": {
        "separator": "\t",
        "head": "# OpenSignals Text File Format\n"
        '# {"00:07": {"sensor": ["A", "B"], "column": ["ecg", "ppg"], "sampling rate": 80}}\n# EndOfHeader\n',
    },
    "JSON without names": {
        "separator": "\t",
        "head": '# {"a": [1, 2, 3], "b": {"c": [4, 5], "d": [6, 7]}}\n# End, of it\n',
    },
    "spaces between": {"separator": "   ", "form": "  {0}{s}{1} ", "head": "ecg ppg\n"},
    "spaces and decimal commas": {"separator": " ", "decimal": ",", "head": "# ecg ppg\n"},
    "comments by percent": {"head": "%OpenBCI Raw EEG Data\n%Sample Rate = 80 Hz, 2 channels, x\necg,ppg\n"},
    "a ragged last line": {"last": "0.5"},
    "decimal commas in quotes between commas": {"decimal": ",", "form": '"{0}"{s}"{1}"', "head": "ecg,ppg\n"},
    "an index": {"form": "{n}{s}{0}{s}{1}", "head": ",ecg,ppg\n"},
}


@pytest.mark.parametrize("form", FORMS)
def test_text_in_many_forms(form: str, tmp_path: Path) -> None:
    frames = _folder(tmp_path, lambda path, signal: _text(path, signal, **FORMS[form]))
    np.testing.assert_allclose(frames.signal(slice(None)), X, atol=1e-6)
    first = (
        "channel 1" if form.startswith(("no names", "JSON without")) else "0" if form.startswith("names as") else "ecg"
    )
    assert (len(frames.lead_names), frames.lead_names[0].split(" (")[0]) == (2, first)


@pytest.mark.parametrize(
    ("text", "samples"),
    [
        ("ecg\n1\n\n2\n3\n\n\n", [1, np.nan, 2, 3]),
        ("ecg\n\n1\n\n2\n\n3\n\n", [1, 2, 3]),
        ("ecg;ppg\n" + "1;2\n" * 25 + "1,5;2\n", [1] * 25 + [1.5]),
        ("sep=;\n1;2;3\n4;5;6\n", [1, 4]),
    ],
)
def test_empty_lines_and_what_comes_late(text: str, samples: list[float], tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    np.testing.assert_array_equal(read_signal(tmp_path / "x.csv", None)[0], samples)


UNREADABLE: dict[str, tuple[str, Callable[[Path, np.ndarray], Any], str]] = {
    "text in Parquet": (
        "parquet", lambda path, x: pd.DataFrame({"a": x[0], "state": "rest"}).to_parquet(path),
        "column 'state' holds no numbers; give channels",
    ),
    "objects": ("npy", lambda path, x: np.save(path, x.astype(object), allow_pickle=True), "file of numbers; expected"),
    "names alone": ("csv", lambda path, x: _text(path, x[:, :0]), "has 0 samples; expected two at least$"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNREADABLE)
def test_what_is_unreadable_has_a_remedy(what: str, tmp_path: Path) -> None:
    ending, write, says = UNREADABLE[what]
    with pytest.raises(UsageError, match=says):
        _folder(tmp_path, write, ending)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a start time and a rate": ({"head": "1551285712.0,1551285712.0\n80,80\n"}, {}, "sample 2 is 80.*skip_lines=2"),
    "a rate": ({"head": "80,80\n"}, {}, "sample 1 is 80.*skip_lines=1"),
    "a start time": ({"head": "1551285712000,1551285712000\n"}, {}, "sample 1 is 1551285712000.*skip_lines=1"),
    "one of two lines": ({"head": "1551285712,1551285712\n80,80\n"}, {"skip_lines": 1}, "sample 1 is 80.*skip_lines=2"),
    "a rate in named channels": ({"head": "80,80\n"}, {"channels": [0, 1]}, "sample 1 is 80"),
    "a name or a sample": ({"head": "0\n", "form": "{0}"}, {}, "sample 1 is 0, .* or a name; give skip_lines=1"),
    "names or samples": ({"head": "0,1\n", "form": "{0}{s}3"}, {"channels": [0]}, "sample 1 is 0.*skip_lines=1"),
    "later: a start": ({"head": "1551285712,1551285712\n80,80\n"}, {}, r"r1\.csv: sample 2 is 80.*remove it, as in"),
    "later: a rate": ({"head": "80,80\n"}, {}, r"r1\.csv: sample 1 is 80"),
    "later: a counter": ({"form": "{n}{s}{0}{s}{1}", "head": ""}, {}, r"r1\.csv: has 3 channels; expected 2"),
    "later: names": ({}, {}, r"r1\.csv: names its columns ecg, ppg; expected none"),
    "a time": ({"form": "{n}.5{s}{0}{s}{1}", "head": "x,ecg,ppg\n"}, {}, "column 'x' looks like a time or an index"),
    "a time by name": ({"form": "0{s}{0}{s}{1}", "head": "Time [s],ecg,ppg\n"}, {}, "'Time .s.' looks like"),
    "a time without names": ({"form": "{n}{s}{0}{s}{1}", "head": ""}, {}, "'channel 1' looks like a time or an index"),
    "a label by name": ({"form": "{0}{s}{1}{s}1", "head": "ecg,ppg,label\n"}, {}, "column 'label' looks like"),
    "a constant": ({"form": "{0}{s}{1}{s}1", "head": "ecg,ppg,state\n"}, {}, "column 'state' looks like a label"),
    "a label as floats": ({"form": "{0}{s}{1}{s}1.0", "head": "ecg,ppg,state\n"}, {}, "'state' looks like a label"),
    "a label in words": (
        {"form": "{0}{s}{1}{s}rest", "head": "ecg,ppg,state\n"}, {}, "column 'state': 'rest' is not a number.*channels"
    ),
    "a column without a name": ({"form": "{0}{s}{1}{s}7", "head": "ecg,ppg,\n"}, {}, "columns: expected names"),
    "another unit below the names": ({"head": "ecg,ppg\nuV,uV\n"}, {}, "column 'ecg' is in uV, not in mV"),
    "another unit in the names": ({"head": "ecg [uV],ppg [uV]\n"}, {}, "is in uV, not in mV"),
    "a unit of something else": ({"head": "ecg,ppg\nmV,g\n"}, {}, "column 'ppg' is in g, not in mV"),
    "a position that is not there": ({}, {"channels": [0, 5]}, "has no column 5; it has ecg, ppg"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_signal_never_becomes_one(what: str, tmp_path: Path) -> None:
    form, options, says = REFUSED[what]
    plain = ["r0"] if what.startswith("later") else []
    with pytest.raises(UsageError, match=says) as caught:
        _folder(tmp_path, lambda path, x: _text(path, x, **({"head": ""} if path.stem in plain else form)), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_swapped_axes_of_files(ending: str, tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        np.save(path, signal.T) if ending == "npy" else _text(path, signal.T, form="{0}" + "{s}0.1" * 159, head="")

    with pytest.raises(UsageError, match=r"as if its axes were swapped|transpose"):
        _folder(tmp_path, write, ending)
    if ending == "npy":
        with pytest.raises(UsageError, match=r"r0\.npy: has 160 channels of 2 samples, as if its axes were swapped"):
            _folder(tmp_path, write, ending, channels=[1, 0])
        with pytest.raises(UsageError, match=r"there are 2 where .* has 160; transpose it"):
            _folder(tmp_path, write, ending, channels=["ecg", "ppg"])
        np.testing.assert_allclose(
            _folder(tmp_path, lambda path, signal: np.save(path, signal), ending, channels=[1]).signal(slice(None)),
            X[:, 1], atol=1e-6,
        )  # fmt: skip


@pytest.mark.parametrize("option", ["drop_windows", "refuse"])
@pytest.mark.parametrize("kind", ["wfdb", "array", "generator"])
def test_a_missing_sample_costs_its_window(kind: str, option: str, tmp_path: Path) -> None:
    signals = 0.1 * waves(9, 2, 400)
    signals[4, 1, 250] = signals[8, 0, 0] = np.nan
    np.save(tmp_path / "x.npy", signals)
    for number, signal in enumerate(signals):
        stored = np.where(np.isnan(signal), -(2**15), np.rint(1000 * np.nan_to_num(signal)))
        write_wfdb(tmp_path / "wfdb", f"r{number}", stored, 100, ["a", "b"], comments=[f"Dx: {'pq'[number % 2]}"])
    body = {
        "wfdb": f'from_wfdb(data_root / "wfdb", "#Dx", window_seconds=1, missing={option!r})',
        "array": 'x = np.load(data_root / "x.npy")\n    return Recordings(x, 100, ("a", "b"), "mV", np.arange(9) % 2, '
        f'("p", "q"), range(9), window_seconds=1, missing={option!r})',
        "generator": 'for n, x in enumerate(np.load(data_root / "x.npy")):\n        yield Recording(x, "pq"[n % 2], n)',
    }[kind]
    shared = f', classes="pq", channels="ab", units="mV", sampling_rate=100, window_seconds=1, missing={option!r}'
    shared = shared.replace('"pq"', '("p", "q")').replace('"ab"', '("a", "b")') if kind == "generator" else ""
    call = f"return Recordings.{body}" if kind == "wfdb" else body
    declare(tmp_path / "space.py", f'@dataset("own"{shared})\ndef own(data_root):\n    {call}\n')
    where: dict[str, Any] = {"prepared_root": tmp_path / "prepared", "data_root": tmp_path, "workers": 1}
    if option == "refuse":
        with pytest.raises(UsageError, match=r"(r4|'4').*channel b has samples that are NaN, infinite or missing"):
            prepare("own", **where)
    made = prepare("own", **where, on_error="skip" if option == "refuse" else "stop").manifest
    assert (made.frames, dict(made.dropped), made.skipped) == (2 * 34, {"missing samples": 2}, ())
    printed = CliRunner().invoke(data, ["counts", "own", "--prepared-root", str(tmp_path / "prepared"), "--json"])
    assert {channel["name"]: channel["missing"] for channel in json.loads(printed.output)["channels"]} == {
        "a": 1,
        "b": 1,
    }


@pytest.mark.parametrize("gain", [-0.5, 0.5])
@pytest.mark.parametrize("normalize", ["none", "minmax", "zscore"])
def test_a_negative_gain_inverts_the_signal(gain: float, normalize: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    body = (
        '@dataset("{}")\ndef {}(data_root):\n    x = np.load(data_root / "x.npy") * {}\n    return Recordings(x, 80, '
    )
    body += '("a", "b"), "mV", np.arange(12) % 2, ("p", "q"), range(12), gain={})\n'
    found = []
    for name, factor, given in (("gained", 1, gain), ("multiplied", gain, 1)):
        declare(tmp_path / f"{name}.py", body.format(name, name, factor, given))
        prepare(name, prepared_root=tmp_path / "prepared", data_root=tmp_path)
        frames = open_frames(name, prepared_root=tmp_path / "prepared", leads="all", normalize=normalize)
        found.append(frames.signal(slice(None)))
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def _records(folder: Path, many: int = 12, **options: Any) -> None:
    for number in range(many):
        given: dict[str, Any] = {"comments": [f"Dx: {'pq'[number % 2]}"], "unit": "mV", "gain": 1000.0, **options}
        for name, value in given.items():
            given[name] = value(number) if callable(value) else value
        name = given.pop("name", f"r{number}")
        write_wfdb(folder, name, np.rint(1000 * X[number]), 80, ("II", "V"), **given)


def test_records_of_other_units_are_converted_or_refused(tmp_path: Path) -> None:
    _records(
        tmp_path / "wfdb", unit=lambda n: ("mV", "uV", "V", "nV")[n % 4], gain=lambda n: (1e3, 1, 1e6, 1e-3)[n % 4]
    )
    frames = _frames(tmp_path, 'from_wfdb(data_root / "wfdb", "#Dx")')
    assert (frames.unit, frames.frames.dtype) == ("mV", np.int16)
    np.testing.assert_allclose(frames.signal(slice(None)), X, rtol=1e-5, atol=1e-6)
    _records(tmp_path / "wfdb", unit=lambda n: "g" if n == 7 else "mV")
    with pytest.raises(UsageError, match=r"r7\.hea: channel II is in g where the first record is in mV"):
        _frames(tmp_path, 'from_wfdb(data_root / "wfdb", "#Dx")')
    header = tmp_path / "wfdb" / "r7.hea"
    header.write_bytes(header.read_text().replace("1000.0(0)/g", "1(0)/\u00b5V").encode("latin-1"))
    np.testing.assert_allclose(
        _frames(tmp_path, 'from_wfdb(data_root / "wfdb", "#Dx")').signal(slice(None)), X, atol=1e-5
    )


ONE_HOT = "file,AF,N,ST,day\n" + "".join(
    f"A{n:04}.mat,{n % 2},{1 - n % 2}.0,{{}},2020-01-01T00:{n:02}:00+01:00\n" for n in range(12)
)


def test_labels_in_a_column_each(tmp_path: Path) -> None:
    _records(tmp_path / "wfdb", name=lambda n: f"A{n:04}")
    (tmp_path / "t.csv").write_text(ONE_HOT.format(*[""] * 12), encoding="utf-16")
    found = Recordings.from_wfdb(
        tmp_path / "wfdb", ["AF", "N", "ST"], table=tmp_path / "t.csv", time="day", name="file"
    )
    assert found.common.classes == ("AF", "N")
    assert np.asarray(found.columns.labels).tolist() == [1, 0] * 6
    assert str(found.columns.times[3]) == "2019-12-31T23:03:00"
    (tmp_path / "t.csv").write_text(ONE_HOT.format(*[int(n == 5) for n in range(12)]).replace(",", ";"))
    given: dict[str, Any] = {"table": tmp_path / "t.csv", "name": "file", "classes": ["AF", "N", "ST"]}
    with pytest.raises(UsageError, match='line 7 has the labels AF, ST; give separator=","'):
        Recordings.from_wfdb(tmp_path / "wfdb", ["AF", "N", "ST"], **given)
    several = Recordings.from_wfdb(tmp_path / "wfdb", ["AF", "N", "ST"], separator=",", **given)
    assert np.asarray(several.columns.labels)[5].tolist() == [1, 0, 1]
    with pytest.raises(UsageError, match="line 2: label: expected 0 or 1 in each of the columns"):
        Recordings.from_wfdb(tmp_path / "wfdb", ["AF", "day"], **given)


def test_records_that_are_left_out_are_named(tmp_path: Path) -> None:
    _records(tmp_path / "wfdb")
    (tmp_path / "wfdb" / "r3.hea").rename(tmp_path / "wfdb" / "r3.HEA")
    (tmp_path / "wfdb" / "more").symlink_to(tmp_path)
    (tmp_path / "wfdb" / "r4.hea").unlink()
    (tmp_path / "wfdb" / "r4.hea").symlink_to("nowhere")
    np.testing.assert_allclose(
        _frames(tmp_path, 'from_wfdb(data_root / "wfdb", "#Dx")', on_error="skip").signal(slice(None)),
        np.delete(X, 4, 0), atol=1e-6,
    )  # fmt: skip
    manifest = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest
    missing = [name for name, reason in manifest.skipped if "the header is missing" in reason]
    assert (sentences(manifest.left_out), missing) == (["1 link to folders, which are not followed"], ["r4"])
    says = "no recording is labelled a, b; there are 5 recordings labelled p, 6 recordings labelled q"
    with pytest.raises(UsageError, match=f"classes: {says}"):
        Recordings.from_wfdb(tmp_path / "wfdb", "#Dx", classes=("a", "b"))
    with pytest.raises(UsageError, match=f"classes: {says.replace('5', '6')}"):
        _folder(tmp_path, lambda path, signal: _text(path, signal), classes=("a", "b"))


def test_one_record_under_two_names_is_refused(tmp_path: Path) -> None:
    _records(tmp_path / "wfdb")
    names = [*(f"r{n}" for n in range(12)), "r3.mat"]
    table = pd.DataFrame({"file": names, "label": [*"pq" * 6, "p"]})
    with pytest.raises(UsageError, match=r"name: 'r3' and 'r3.mat' are one file, .*r3\.hea; keep one of the rows"):
        Recordings.from_wfdb(tmp_path / "wfdb", "label", table=table, name="file")
    for folder in ("a", "b"):
        _records(tmp_path / "wfdb" / folder, 1, name="s")
    with pytest.raises(UsageError, match=r"name: 's' may be a/s\.hea, b/s\.hea; give one of these paths"):
        Recordings.from_wfdb(tmp_path / "wfdb", "label", table=table.replace("r5", "s"), name="file")
    table["file"] = [f"./r{n}.dat" for n in range(12)] + ["r3"]
    assert len(Recordings.from_wfdb(tmp_path / "wfdb", "label", table=table[:12], name="file")) == 12


@pytest.mark.parametrize("ending", ["txt", "tsv", "dat", "TXT"])
def test_text_of_other_endings(ending: str, tmp_path: Path) -> None:
    frames = _folder(tmp_path, lambda path, signal: _text(path, signal, separator="\t"), ending)
    np.testing.assert_allclose(frames.signal(slice(None)), X, atol=1e-6)


ALIKE = [
    "ecg\n1,5\n2,7\n3,1\n",
    "0,05\n0,12\n1,50\n",
    "1,512\n1,498\n1,501\n",
    "# ecg\n1,5\n2,25\n",
    "ecg\n1\n1,5\n2\n",
]


@pytest.mark.parametrize("text", ALIKE)
def test_a_decimal_comma_that_may_be_a_separator_is_asked_for(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(UsageError, match=r"may be 1 column with decimal commas, or 2 with .*; give decimal=\",\""):
        read_signal(tmp_path / "x.csv", None)
    found = read_signal(tmp_path / "x.csv", None, TextOptions(decimal=","))
    expected = [float(line.replace(",", ".")) for line in text.splitlines() if line[0].isdigit()]
    np.testing.assert_array_equal(found, [expected])


def test_two_columns_that_may_be_four_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("ecg,ppg\n0,512,1,498\n0,513,1,497\n")
    with pytest.raises(UsageError, match=r"may be 2 columns with decimal commas, or 4 .*; put another mark between"):
        read_signal(tmp_path / "x.csv", None)


@pytest.mark.parametrize("text", ["1,500\n-2,7\n3,11\n", "a,b\n1,5\n2,7\n", "512,-498\n513,497\n514,496\n"])
def test_whole_numbers_between_commas_are_columns(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    assert read_signal(tmp_path / "x.csv", None).shape == (2, text.count("\n") - text.startswith("a"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ecg,ppg\n" + "".join(f"{n}\t{n % 7}\n" for n in range(9)), r'tabs make 2 columns .*give delimiter="\\t"'),
        ("A, recorder\nof,ten,words\n" + "1\t2\n" * 9, r'give delimiter="\\t" and skip_lines=2'),
        ("one\ntwo\na,b,c\n" + "1,2,3\n" * 9, r"give skip_lines=2"),
        ("ecg\n" + "1\n" * 40 + "1,5\n" + "2\n" * 20, r'has 2 cells; expected 1: if its comma .* decimal=","'),
    ],
)
def test_a_message_about_cells_names_what_would_fit(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(UsageError, match=says):
        read_signal(tmp_path / "x.csv", None)


def test_a_ragged_last_line_is_noted_and_another_is_refused(tmp_path: Path) -> None:
    notes: list[str] = []
    (tmp_path / "x.txt").write_text("a b c\n" + "1 2 3\n" * 20 + "4 5")
    assert read_signal(tmp_path / "x.txt", None, notes=notes).shape == (3, 20)
    assert notes == ["the last line has 2 of 3 cells and is left out"]
    (tmp_path / "x.txt").write_text("a,b,c\n" + "1,2,3\n" * 20 + "4,5\n" + "1,2,3\n")
    with pytest.raises(UsageError, match="line 22 has 2 cells; expected 3"):
        read_signal(tmp_path / "x.txt", None)


@pytest.mark.parametrize(
    "head",
    [
        '# {"00:07": {"column": ["ecg", "ppg"], "sampling rate": 1000}}\n',
        "# Sampling Rate (Hz):= 1000.00\n# Labels:= ecg, ppg\n",
        "% Sample rate = 1 kHz\necg\tppg\n",
    ],
)
def test_what_a_header_says_of_the_rate_must_be_right(head: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="header says 1000 samples a second; expected sampling_rate=1000, not 80"):
        _folder(tmp_path, lambda path, signal: _text(path, signal, separator="\t", head=head), "txt")
    fitting = head.replace("1000.00", "80").replace("1000", "80").replace("1 kHz", "0.08 kHz")
    _folder(tmp_path, lambda path, signal: _text(path, signal, separator="\t", head=fitting), "txt")


def test_binary_files_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_bytes(np.arange(999, dtype=np.int16).tobytes())
    with pytest.raises(UsageError, match="is no text; expected lines of numbers"):
        read_signal(tmp_path / "x.dat", None)


@pytest.mark.parametrize(
    ("comment", "name"), [("# Labels:= ECG", "ECG"), ("# ECG (mV)", "ECG (mV)"), ("# x y", "channel 1")]
)
def test_names_of_one_column_in_a_comment(comment: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(comment + "\n1.5\n2.5\n3.5\n")
    assert text_layout(tmp_path / "x.txt", TextOptions()).titles == [name]


@pytest.mark.parametrize("skipped", [0, 2000])
def test_a_header_of_many_lines(skipped: int, tmp_path: Path) -> None:
    line = "# a line of a long header, of a recorder\n" if not skipped else "a line of a long header, of a recorder\n"
    (tmp_path / "x.txt").write_text(line * 2000 + "ecg\tppg\n1\t2.5\n3\t4.5\n")
    options = TextOptions(skip_lines=skipped or None)
    np.testing.assert_array_equal(read_signal(tmp_path / "x.txt", ["ppg"], options), [[2.5, 4.5]])


def test_a_short_line_between_tabs_is_named_without_another_separator(tmp_path: Path) -> None:
    lines = [f"{number}.5\t{-number}.25" for number in range(40)]
    (tmp_path / "x.txt").write_text("\n".join(["a\tb", *lines, "0.5", *lines]))
    layout = text_layout(tmp_path / "x.txt", TextOptions())
    with pytest.raises(UsageError, match=r"line 42 has 1 cells; expected 2$"):
        text_columns(tmp_path / "x.txt", layout, [0, 1])
