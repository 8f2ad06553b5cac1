"""Whatever a declared function returns, yields, raises or does to the process gives one sentence, or no harm."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.errors import UsageError
from tests.conftest import Command
from tests.data.declared_files import declare, forget

RETURNING = """
import sys
X = np.random.default_rng(0).normal(size=(12, 1, 8)).astype(np.float32)
Y, P = np.arange(12) % 2, np.arange(12)

def good(signals=X, sampling_rate=8, channels=("a",), units="g", labels=Y, classes=("p", "q"), patients=P, **more):
    return Recordings(signals, sampling_rate, channels, units, labels, classes, patients, **more)

calls = []

@dataset("own")
def own(data_root):
    calls.append(1)
    BODY
"""

YIELDING = """
import sys
X = np.random.default_rng(0).normal(size=(12, 1, 8)).astype(np.float32)

@dataset("own", classes=("p", "q"), channels=("a",), units="g", sampling_rate=8)
def own(data_root):
    for n in range(12):
        BODY
"""

Made = Callable[[str, str], PreparedSet]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """Declare and prepare a data set whose function has the given body."""
    forget()
    (tmp_path / "data").mkdir()

    def make(template: str, body: str) -> PreparedSet:
        depth = " " * (4 if template is RETURNING else 8)
        declare(tmp_path / "own.py", template.replace("BODY", textwrap.indent(body, depth).lstrip()))
        return prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path / "data")

    yield make
    forget()


def _refused(made: Made, template: str, body: str, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        made(template, body)
    said = str(caught.value)
    assert "\n" not in said
    assert "own" in said
    assert len(said) < 400


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("sys.exit(0)", r"^dataset 'own': the function raises SystemExit in line 16: 0$"),
        ("sys.exit('enough')", "the function raises SystemExit in line 16: enough"),
        ("raise GeneratorExit", "the function raises GeneratorExit"),
        ("raise type('Mine', (BaseException,), {})('x')", "the function raises Mine in line 16: x"),
    ],
)
def test_a_function_that_leaves(made: Made, body: str, says: str) -> None:
    _refused(made, RETURNING, body, says)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("yield Recording(X[n], n % 2, n) if n != 8 else None", r"recording 8: is None; expected Recording\(...\)"),
        ("yield Recording(X[n], n % 2, n) if n else None", r"yields None; expected Recording\(...\)"),
        ("yield Recording(X[n], n % 2, n) if n < 8 else sys.exit(0)", "the function raises SystemExit"),
        ("yield Recording(X[n], n % 2, n)\nif n == 8: raise GeneratorExit", "the function raises GeneratorExit"),
    ],
)
def test_a_generator_that_stops_midway(made: Made, body: str, says: str) -> None:
    _refused(made, YIELDING, body, says)


def test_an_interrupt_passes(made: Made) -> None:
    with pytest.raises(KeyboardInterrupt):
        made(RETURNING, "raise KeyboardInterrupt")


def test_a_function_is_called_once(made: Made) -> None:
    assert made(RETURNING, "assert len(calls) == 1\nreturn good()").manifest.frames == 12


def test_a_function_that_closes_standard_output_does_no_harm(tmp_path: Path, clops_sweep: Command) -> None:
    text = "import numpy as np\nfrom clops_sweep import Recordings, dataset\n" + RETURNING
    (tmp_path / "own.py").write_text(text.replace("BODY", "sys.stdout.close(); return good()"))
    done = clops_sweep("data", "prepare", "own", "--plugins", "own.py", "--prepared-root", "prepared")
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert "12 frames in prepared/own" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("np.ma.masked_greater(X, 0.5)", "^dataset 'own': signals: has masked entries; expected a plain array"),
        ("[np.ma.masked_greater(x, 0.5) for x in X]", r"signals\[0\]: has masked entries"),
        ("labels=np.ma.array(Y, mask=P > 8)", "labels: has masked entries"),
        ("patients=np.ma.array(P, mask=P > 8)", "patients: has masked entries"),
        ("names=np.ma.array(P, mask=P > 8)", "names: has masked entries"),
        ("domains={'site': np.ma.array(P, mask=P > 8)}", r"domains\['site'\]: has masked entries"),
        ("times=np.ma.array(P.astype('M8[D]'), mask=P > 8)", "times: has masked entries"),
        ("gain=np.ma.array([2.0], mask=[True])", "gain: has masked entries"),
        ("patients=P + 0.5", r"patients: expected names or whole numbers, not 0\.5"),
        ("patients=[float('inf'), *P[1:]]", "patients: expected names or whole numbers, not inf"),
        ("patients=np.where(P == 3, np.nan, P)", "patients: expected names or whole numbers, not nan"),
        ("patients=(2**24 + P).astype(np.float32)", "patients: expected whole numbers below 16,777,216, from which"),
        ("patients=2.0**53 + P", "patients: expected whole numbers below 9,007,199,254,740,992"),
        ("patients=[name.encode('latin-1') for name in ('Müller', 'Möller', *'abcdefghij')]", "or bytes in UTF-8"),
        ("patients=['M\\ufffdller', *'abcdefghijk']", "patients: expected text that was decoded without loss"),
        ("patients=P[:, None]", r"patients: have the shape \[12, 1\]"),
        ("patients=set(map(str, P))", "patients: expected a list with one for each recording"),
        ("classes={'p', 'q'}", "classes: expected a list of names"),
        ("np.repeat(X, 2, 1), channels={'a', 'b'}", "channels: expected a list of names"),
        ("X.astype(np.longdouble)", "signals: expected numbers of 64 bits or less"),
        ("labels=np.where(P == 3, np.nan, Y)", r"labels: nan of recording 3 \(from 0\) is no whole number"),
        ("labels=np.where(P == 3, 1e30, Y)", "labels: expected whole numbers below"),
        ("times=2000 + P", "times: expected dates such as"),
        ("sampling_rate=1e300", r"sampling_rate: expected a number from 1e-09 to 1e\+09, not 1e\+300"),
        ("sampling_rate=10**400", "sampling_rate: expected a number from 1e-09"),
        ("sampling_rate=1e-300, resample_to=1e300", "sampling_rate: expected a number from 1e-09"),
        ("window_seconds=1e300", "window_seconds: expected a number from 1e-09"),
        ("resample_to=1e9", "resample_to: gives frames of 1,000,000,000 samples at 8 samples a second"),
        ("resample_to=1e-9", "resample_to: gives frames of 1 samples"),
        ("window_seconds=1e9, sampling_rate=1e9", "window_seconds: gives frames of 1,000,000,000,000,000,000 samples"),
        ("np.broadcast_to(X[:, :, :1], (12, 1, 10**10))", "signals: gives frames of 10,000,000,000 samples"),
        ("window_seconds=0.5, stride_seconds=1e-9", "stride_seconds: 1e-09 is less than a sample at 8 samples"),
        ("gain=1e308", r"gain: expected magnitudes from 1\.2e-38 to 3\.4e\+38, which float32 holds, not 1e\+308"),
        ("gain=1e-320", r"gain: expected magnitudes from 1\.2e-38"),
        ("X * 10, gain=3e38", "recording '0': has samples that are not finite as float32 once multiplied by gain"),
        ("X * 1e-20, gain=1e-30", "recording '0': all samples are 0 as float32 once multiplied by gain"),
        ("X.astype(float) * 1e-60", "recording '0': has samples that float32 rounds to 0; expected another unit"),
        ("np.where(Y[:, None, None] == 0, 1, X)", "no frame is of class 'p'; .*6 dropped as flat line"),
        ("np.where(Y[:, None, None] == 1, 1, X)", "no frame is of class 'q'; .*6 dropped as flat line"),
        ("np.where(Y[:, None, None] == 1, 1, X), labels=np.eye(2)[Y]", "no frame is of class 'q'"),
        (
            "[X[i][:, : 3 + 5 * Y[i]] for i in P], window_seconds=1",
            r"no frame is of class 'p'; .* window_seconds \(6 dropped as recording shorter than a frame\)",
        ),
        (
            "[X[i][:, : 8 - 5 * Y[i]] for i in P], window_seconds=1",
            r"no frame is of class 'q'; .* window_seconds \(6 dropped as recording shorter than a frame\)",
        ),
    ],
)
def test_what_would_be_merged_lost_or_rounded_is_refused(made: Made, arguments: str, says: str) -> None:
    _refused(made, RETURNING, f"return good({arguments})", says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("np.ma.masked_greater(X[n], 0.5), n % 2, n", "recording 0: signal: has masked entries"),
        ("X[n], n % 2, n, gain=1e308", "recording 0: gain: expected magnitudes from"),
        ("X[n], n % 2, n + 0.5", "recording 0: patient: expected names or whole numbers"),
        ("X[n], n % 2, np.float32(n + 2**24)", "recording 0: patient: expected whole numbers below 16,777,216"),
        ("X[n], n % 2, n, domains=[1]", r"recording 0: domains: expected a mapping such as"),
        ("X[n], n % 2, n, domains='x'", "recording 0: domains: expected a mapping such as"),
        ("X[n], float('nan'), n", "recording 0: labels: nan is no whole number"),
        (
            "X[n], n % 2, n, split=(None, 'train', 'validation', 'test')[n % 4]",
            "split: patient '0' is in none; expected one split for a",
        ),
    ],
)
def test_a_recording_that_would_be_merged_lost_or_rounded_is_refused(made: Made, arguments: str, says: str) -> None:
    _refused(made, YIELDING, f"yield Recording({arguments})", says)


def test_whole_numbers_as_floats_are_people_of_their_own(made: Made) -> None:
    people = made(RETURNING, "return good(patients=1234567890123.0 + P)").manifest.patient_names
    assert people == tuple(str(1234567890123 + number) for number in range(12))


def test_an_array_of_masked_type_without_masked_entries_is_as_good(made: Made) -> None:
    assert made(RETURNING, "return good(np.ma.array(X), patients=np.ma.array(P))").manifest.frames == 12
