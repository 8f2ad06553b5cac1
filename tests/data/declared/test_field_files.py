"""Files as recorders, spreadsheets and pandas write them: read rightly, or refused with a remedy."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from clops_sweep import Recordings
from clops_sweep.cli.data import data
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.prepared_folder import is_to_be_made_again
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, forget, waves, write_notes, write_wfdb

X = np.round(waves(12, 2, 160), 3).astype(float)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


def _frames(tmp_path: Path, call: str, **options: Any) -> FrameSet:
    declare(tmp_path / "space.py", f'@dataset("own")\ndef own(data_root):\n    return Recordings.{call}\n')
    prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1, **options)
    return open_frames("own", prepared_root=tmp_path / "prepared", leads="all")


def _notes(tmp_path: Path) -> tuple[str, ...]:
    return prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest.notes


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
) -> None:
    lines = [
        form.format(*(str(each).replace(".", decimal) for each in row), s=separator, n=n)
        for n, row in enumerate(signal.T)
    ]
    content = head.replace(",", separator) + "".join(line + end for line in lines)
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
    "an index": {"form": "{n}{s}{0}{s}{1}", "head": ",ecg,ppg\n"},
}


@pytest.mark.parametrize("form", FORMS)
def test_text_in_many_forms(form: str, tmp_path: Path) -> None:
    frames = _folder(tmp_path, lambda path, signal: _text(path, signal, **FORMS[form]))
    np.testing.assert_allclose(frames.signal(slice(None)), X, atol=1e-6)
    assert len(frames.lead_names) == 2
    named = "names" if form == "no names" else frames.lead_names[0][:3]
    assert named in ("ecg", "names")


LINES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a title": ({"head": "Report of X; 2020\necg,ppg\n"}, {"skip_lines": 1}),
    "a start time and a rate": ({"head": "1551285712.0,1551285712.0\n80,80\n"}, {"skip_lines": 2}),
    "text beside the signals": (
        {"form": "2021-03-04 10:00:{n:02d}{s}{0}{s}{1}{s}rest", "head": "when,ecg,ppg,state\n"},
        {"channels": ["ecg", "ppg"]},
    ),
    "channels by position": ({"form": "{n}{s}{0}{s}{1}", "head": ""}, {"channels": [1, 2]}),
    "a unit and a gain": ({"head": "ecg,ppg\nuV,uV\n"}, {"gain": 1}),
}  # fmt: skip


@pytest.mark.parametrize("what", LINES)
def test_what_an_argument_makes_readable(what: str, tmp_path: Path) -> None:
    form, options = LINES[what]
    frames = _folder(tmp_path, lambda path, signal: _text(path, signal, **form), **options)
    np.testing.assert_allclose(frames.signal(slice(None)), X, atol=1e-6)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a start time and a rate": ({"head": "1551285712.0,1551285712.0\n80,80\n"}, {}, "sample 2 is 80.*skip_lines=2"),
    "a rate": ({"head": "80,80\n"}, {}, "sample 1 is 80.*skip_lines=1"),
    "a start time": ({"head": "1551285712000,1551285712000\n"}, {}, "sample 1 is 1551285712000.*skip_lines=1"),
    "one of two lines": ({"head": "1551285712,1551285712\n80,80\n"}, {"skip_lines": 1}, "sample 1 is 80.*skip_lines=2"),
    "a rate in named channels": ({"head": "80,80\n"}, {"channels": [0, 1]}, "sample 1 is 80"),
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
    with pytest.raises(UsageError, match=says) as caught:
        _folder(tmp_path, lambda path, signal: _text(path, signal, **form), **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_swapped_axes_of_files(ending: str, tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        np.save(path, signal.T) if ending == "npy" else _text(path, signal.T, form="{0}" + "{s}0.1" * 159, head="")

    with pytest.raises(UsageError, match=r"as if its axes were swapped|transpose"):
        _folder(tmp_path, write, ending)
    if ending == "npy":
        with pytest.raises(UsageError, match=r"there are 2 where .* has 160; transpose it"):
            _folder(tmp_path, write, ending, channels=["ecg", "ppg"])
        np.testing.assert_allclose(
            _folder(tmp_path, lambda path, signal: np.save(path, signal), ending, channels=[1]).signal(slice(None)),
            X[:, 1], atol=1e-6,
        )  # fmt: skip


def test_swapped_axes_of_arrays_and_generators(tmp_path: Path) -> None:
    given: dict[str, Any] = {"labels": [n % 2 for n in range(12)], "classes": ("p", "q"), "patients": range(12)}
    for signals in (X.swapaxes(1, 2), list(X.swapaxes(1, 2))):
        with pytest.raises(UsageError, match=r"signals\[0\]: has 160 channels; expected 2.*transpose it"):
            Recordings(signals, 80, ["ecg", "ppg"], "mV", **given)
    with pytest.raises(UsageError, match="has 1 samples; expected two at least; transpose it"):
        Recordings(X[:, :1].swapaxes(1, 2), 80, ["ecg"], "mV", **given)
    declare(
        tmp_path / "space.py",
        """
        @dataset("own", classes=("p", "q"), channels=["ecg", "ppg"], units="mV", sampling_rate=80)
        def own(data_root):
            for n in range(12):
                yield Recording(np.zeros((160, 2)), n % 2, n)
        """,
    )
    with pytest.raises(UsageError, match=r"signal: has 160 channels; expected 2.*transpose it"):
        prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path)


def test_parquet_files_of_pandas(tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray, **more: Any) -> None:
        index = pd.Index(np.arange(160) / 80, name="seconds" if path.stem == "r3" else None)
        pd.DataFrame({"ecg": signal[0], "ppg": signal[1], **more}, index=index).to_parquet(path)

    frames = _folder(tmp_path, write, "parquet")
    assert frames.lead_names == ("ecg", "ppg")
    np.testing.assert_allclose(frames.signal(slice(None)), X, atol=1e-6)
    with pytest.raises(UsageError, match="column 'y' looks like a label"):
        _folder(tmp_path, lambda path, signal: write(path, signal, y=True), "parquet")
    with pytest.raises(UsageError, match=r"holds values that are not numbers.*channels="):
        _folder(tmp_path, lambda path, signal: write(path, signal, y=pd.Timestamp("2020-01-01")), "parquet")


@pytest.mark.parametrize("bad", ["r0", "r5"])
def test_any_file_can_be_left_out_and_hidden_ones_are_no_recordings(bad: str, tmp_path: Path) -> None:
    def write(path: Path, signal: np.ndarray) -> None:
        _text(path, signal, form="{0}" if path.stem == bad else "{0}{s}{1}")
        (path.parent / f"._{path.name}").write_bytes(bytes(4096))

    with pytest.raises(UsageError, match=f"{bad}.csv: .* --on-error skip"):
        _folder(tmp_path, write)
    assert len(_frames(tmp_path, _call(tmp_path), on_error="skip")) == 11
    manifest = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest
    assert [name for name, _ in manifest.skipped] == [bad]
    assert not [name for name in manifest.sources if "._" in name]


def _call(tmp_path: Path) -> str:
    return (tmp_path / "space.py").read_text().partition("Recordings.")[2].rpartition("Recordings.")[2].strip()


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
    assert (made.frames, dict(made.dropped), made.skipped) == (2 * 34, {"missing samples": 4}, ())
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


def test_channels_of_one_record_have_one_unit(tmp_path: Path) -> None:
    _records(tmp_path / "wfdb")
    for header in (tmp_path / "wfdb").glob("*.hea"):
        lines = header.read_text().splitlines()
        lines[2] = lines[2].replace("1000.0(0)/mV", "-1(0)/uV")
        header.write_text("\n".join(lines))
    frames = _frames(tmp_path, 'from_wfdb(data_root / "wfdb", "#Dx", channels=[1, 0])')
    assert (frames.unit, frames.lead_names) == ("uV", ("V", "II"))
    np.testing.assert_allclose(frames.signal(slice(None)), 1000 * X[:, ::-1] * [[-1], [1]], rtol=1e-5, atol=1e-3)


def test_a_wide_record_among_narrow_ones(tmp_path: Path) -> None:
    _records(tmp_path / "wfdb")
    header = tmp_path / "wfdb" / "r5.hea"
    np.rint(1000 * X[5]).T.astype("<i4").tofile(tmp_path / "wfdb" / "r5.dat")
    header.write_text(header.read_text().replace(" 16 1000", " 32 1000"))
    frames = _frames(tmp_path, 'from_wfdb(data_root / "wfdb", "#Dx")')
    assert frames.frames.dtype == np.float32
    np.testing.assert_allclose(frames.signal(slice(None)), X, atol=1e-6)


def test_records_without_signals_or_a_comment_are_left_out_and_counted(tmp_path: Path) -> None:
    _records(tmp_path / "wfdb", comments=lambda n: ["69 M", f"Dx: {'pq'[n % 2]}"] if n != 3 else ["Age: 3"])
    (tmp_path / "wfdb" / "n1.hea").write_text("n1 0 80 0\n")
    (tmp_path / "t.csv").write_text(
        "".join(f"{name},{'pq'[n % 2]}\n" for n, name in enumerate(["n1", "r0.dat", "r1", "r2", "r5"]))
    )
    found = Recordings.from_wfdb(tmp_path / "wfdb", "#Dx")
    assert dict(found.common.left_out) == {"recordings without a label": 1, "records without signals": 1}
    listed = Recordings.from_wfdb(tmp_path / "wfdb", 1, table=tmp_path / "t.csv")
    assert (list(listed.columns.names), dict(listed.common.left_out)) == (
        ["r0.dat", "r1", "r2", "r5"],
        {"records without signals": 1},
    )
    with pytest.raises(UsageError, match=r"has no comment '#Rhythm: ...', which label names"):
        Recordings.from_wfdb(tmp_path / "wfdb", "#Rhythm")


def test_a_record_of_other_rhythms_does_not_lose_the_rest(tmp_path: Path) -> None:
    for number in range(9):
        write_wfdb(tmp_path / "wfdb", f"r{number}", np.rint(1000 * waves(1, 1, 1000, seed=number)[0]), 100)
        write_notes(tmp_path / "wfdb", f"r{number}", [0, 500], ["(P"] * 2 if number == 4 else ["(N", "(AFIB"])
    frames = _frames(tmp_path, 'from_wfdb(data_root / "wfdb", ".atr", classes=["(N", "(AFIB"], window_seconds=1)')
    assert len(frames) == 80
    assert prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path).manifest.dropped == {
        "no label that is used": 1
    }


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
    assert found.columns.times is not None
    assert str(found.columns.times[3]) == "2019-12-31T23:03:00"
    (tmp_path / "t.csv").write_text(ONE_HOT.format(*[int(n == 5) for n in range(12)]).replace(",", ";"))
    given: dict[str, Any] = {"table": tmp_path / "t.csv", "name": "file", "classes": ["AF", "N", "ST"]}
    with pytest.raises(UsageError, match='line 7 has the labels AF, ST; give separator=","'):
        Recordings.from_wfdb(tmp_path / "wfdb", ["AF", "N", "ST"], **given)
    several = Recordings.from_wfdb(tmp_path / "wfdb", ["AF", "N", "ST"], separator=",", **given)
    assert np.asarray(several.columns.labels)[5].tolist() == [1, 0, 1]
    with pytest.raises(UsageError, match="line 2: label: expected 0 or 1 in each of the columns"):
        Recordings.from_wfdb(tmp_path / "wfdb", ["AF", "day"], **given)


def test_names_that_suggest_people_and_recordings_without_dates_are_noted(tmp_path: Path) -> None:
    _records(tmp_path / "wfdb", name=lambda n: f"{84 + n // 3}_{n % 3 + 8}")
    _frames(tmp_path, 'from_wfdb(data_root / "wfdb", "#Dx")')
    assert any("such as 84_8 suggest several recordings of one" in note for note in _notes(tmp_path))
    records = pd.read_parquet(tmp_path / "prepared" / "own" / "index.parquet")["record"]
    assert list(records.unique())[:3] == ["84_8", "84_9", "84_10"]
    table = pd.DataFrame({"file": [f"{84 + n // 3}_{n % 3 + 8}" for n in (2, 0, 1, *range(3, 12))]})
    table["who"], table["label"] = table["file"].str[:2], [*"pqppqpqpqpqp"]
    table.to_csv(tmp_path / "t.csv", index=False)
    call = 'from_wfdb(data_root / "wfdb", "label", table=data_root / "t.csv", patient="who", window_seconds=0.2)'
    frames = _frames(tmp_path, call)
    assert not any("suggest several" in note for note in _notes(tmp_path))
    assert any("in natural order of their names" in note for note in _notes(tmp_path))
    assert frames.recordings is not None
    assert frames.recordings[frames.patients == 0].tolist() == [2] * 10 + [0] * 10 + [1] * 10


def test_windows_left_out_under_skip_are_not_kept_by_a_strict_preparation(tmp_path: Path) -> None:
    signals = X.copy()
    signals[4, 1, 7] = np.nan
    np.save(tmp_path / "x.npy", signals)
    declare(
        tmp_path / "space.py",
        """
        @dataset("own")
        def own(data_root):
            given = np.arange(12) % 2, ("p", "q"), range(12)
            return Recordings(np.load(data_root / "x.npy"), 80, "ab", "mV", *given, window_seconds=1)
        """.replace('"ab"', '("a", "b")'),
    )
    where: dict[str, Any] = {"prepared_root": tmp_path / "prepared", "data_root": tmp_path}
    prepare("own", on_error="skip", **where)
    assert not is_to_be_made_again("own", on_error="skip", **where)
    assert is_to_be_made_again("own", on_error="stop", **where)


def test_one_record_under_two_names_is_refused(tmp_path: Path) -> None:
    _records(tmp_path / "wfdb")
    names = [*(f"r{n}" for n in range(12)), "r3.mat"]
    table = pd.DataFrame({"file": names, "label": [*"pq" * 6, "p"]})
    with pytest.raises(UsageError, match=r"name: 'r3' and 'r3.mat' are one file, .*r3\.hea; keep one of the rows"):
        Recordings.from_wfdb(tmp_path / "wfdb", "label", table=table, name="file")
    table["file"] = [f"./r{n}.dat" for n in range(12)] + ["r3"]
    assert len(Recordings.from_wfdb(tmp_path / "wfdb", "label", table=table[:12], name="file")) == 12


def test_dates_with_and_without_a_zone_are_refused(tmp_path: Path) -> None:
    given: dict[str, Any] = {"labels": [n % 2 for n in range(12)], "classes": ("p", "q"), "patients": range(12)}
    zoned = [pd.Timestamp(f"2020-01-{n + 1:02} 01:00", tz="Europe/Paris") for n in range(12)]
    found = Recordings(X, 80, ["a", "b"], "mV", times=zoned, **given)
    assert str(np.asarray(found.columns.times)[0]) == "2020-01-01T00:00:00"
    with pytest.raises(UsageError, match=r"^times: some have a time zone and others none; expected one kind"):
        Recordings(X, 80, ["a", "b"], "mV", times=[*zoned[:11], "2020-01-12"], **given)


def test_annotations_of_edf_files_are_no_channel(tmp_path: Path) -> None:
    _records(tmp_path / "wfdb")
    for header in (tmp_path / "wfdb").glob("*.hea"):
        header.write_text(header.read_text().replace(" V\n", " EDF Annotations\n"))
    assert Recordings.from_wfdb(tmp_path / "wfdb", "#Dx").common.channels == ("II",)
