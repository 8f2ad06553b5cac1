"""A recording that exists twice under two names, and a person who would be in two splits."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.data.prepared.prepared_folder import PreparedSet, is_to_be_made_again
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.preparing.verify import verify
from clops_sweep.errors import UsageError
from tests.data import published_formats
from tests.data.declared_files import declare, forget
from tests.data.published_formats import write_diagnostics, write_ecg


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    forget()


def _prepare(name: str, tmp_path: Path, **options: Any) -> PreparedSet:
    return prepare(name, prepared_root=tmp_path / "prepared", data_root=tmp_path / "data", workers=1, **options)


def _problems(name: str, tmp_path: Path) -> tuple[str, ...]:
    return verify(name, prepared_root=tmp_path / "prepared", data_root=tmp_path / "data").problems


def _copied(folder: Path, record: str, other: str, suffixes: tuple[str, ...]) -> None:
    """Copy a record under another name."""
    for suffix in suffixes:
        shutil.copy(folder / f"{record}{suffix}", folder / f"{other}{suffix}")
    header = folder / f"{other}.hea"
    header.write_text(header.read_text().replace(record, other))


def _mitbih(root: Path) -> tuple[str, str]:
    _copied(published_formats.small_mitbih(root) / "mitdb", "103", "140", (".hea", ".dat", ".atr"))
    return "103.dat", "140.dat"


def _chapman_csv(root: Path) -> tuple[str, str]:
    published_formats.chapman_csv(root)
    folder = root / "chapman" / "ECGDataDenoised"
    names = sorted(path.stem for path in folder.glob("*.csv"))
    other = "MUSE_20180401_120000_9000"
    # equal numbers, written with other digits
    np.savetxt(folder / f"{other}.csv", np.loadtxt(folder / f"{names[2]}.csv", delimiter=","), delimiter=",")
    write_diagnostics(root / "chapman", [(name, "SB") for name in (*names, other)])
    return f"{names[2]}.csv", f"{other}.csv"


def _cardiology(root: Path) -> tuple[str, str]:
    published_formats.cardiology(root)
    write_ecg(root / "cardiology", "ff_0001", [(1, 6000, "VT")])
    shutil.copy(root / "cardiology" / "0003_0001.ecg", root / "cardiology" / "ff_0001.ecg")
    return "0003_0001.ecg", "ff_0001.ecg"


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("mitbih", _mitbih),
        ("chapman", _chapman_csv),
        ("cardiology", _cardiology),
    ],
)
@pytest.mark.nightly
def test_a_recording_under_two_names_is_refused_or_the_first_one_stays(
    name: str, write: Callable[[Path], tuple[str, str]], tmp_path: Path
) -> None:
    first, second = write(tmp_path / "data")
    sentence = rf"{second}: holds the same samples as \S+{first}; keep one of the two records"
    with pytest.raises(UsageError, match=rf"{sentence}; or leave such records out with data prepare --on-error skip$"):
        _prepare(name, tmp_path)
    prepared = _prepare(name, tmp_path, on_error="skip")
    ((record, reason),) = prepared.manifest.skipped
    assert record == Path(second).stem
    assert reason.endswith("keep one of the two records")
    records = set(pd.read_parquet(prepared.folder / "index.parquet")["record"])
    assert Path(first).stem in records
    assert record not in records
    (problem,) = _problems(name, tmp_path)
    assert problem == reason


def test_ptbxl_is_published_with_such_recordings_which_are_kept_and_noted(tmp_path: Path) -> None:
    published_formats.ptbxl(tmp_path / "data")
    table = tmp_path / "data" / "ptbxl" / "ptbxl_database.csv"
    for record, other in (("00003_hr", "00002_hr"), ("00030_hr", "00029_hr")):
        _copied(table.parent / "records500" / "00000", other, record, (".hea", ".dat"))
    manifest = _prepare("ptbxl", tmp_path).manifest
    assert manifest.skipped == ()
    assert manifest.frames == 30 * 24
    assert manifest.notes == (
        "records with the samples of an earlier record: 2 (3 repeats 2, 30 repeats 29); 1 of them is of another "
        "patient than the earlier one; leave them out with data prepare --on-error skip",
    )
    assert _problems("ptbxl", tmp_path) == ()
    folders: dict[str, Any] = {"prepared_root": tmp_path / "prepared", "data_root": tmp_path / "data"}
    assert not is_to_be_made_again("ptbxl", on_error="stop", **folders)
    assert is_to_be_made_again("ptbxl", on_error="skip", **folders), "or the advice of the note would do nothing"
    skipped = _prepare("ptbxl", tmp_path, on_error="skip", anew=True).manifest
    assert [record for record, _ in skipped.skipped] == ["3", "30"]
    assert (skipped.notes, skipped.frames) == ((), 28 * 24)
    assert not is_to_be_made_again("ptbxl", on_error="skip", **folders)


@pytest.mark.parametrize("written", ["28", "28.00", " 28.0 ", "028"])
def test_a_patient_is_one_however_the_number_is_written(tmp_path: Path, written: str) -> None:
    published_formats.ptbxl(tmp_path / "data")
    table = tmp_path / "data" / "ptbxl" / "ptbxl_database.csv"
    expected = _prepare("ptbxl", tmp_path).manifest
    head, _, tail = table.read_text().rpartition(",28.0,")
    table.write_text(f"{head},{written},{tail}")
    again = _prepare("ptbxl", tmp_path, anew=True)
    assert again.manifest.data_hash == expected.data_hash
    frames = open_frames("ptbxl", prepared_root=tmp_path / "prepared")
    assert len(np.unique(frames.split[frames.patients == frames.patient_names.index("28")])) == 1
    table.write_text(f"{head},28.5,{tail}")
    with pytest.raises(UsageError, match=r"patient_id of 30 is '28\.5', expected a whole number; use the table as"):
        _prepare("ptbxl", tmp_path, anew=True)


def test_swapped_recordings_are_noticed_by_what_the_publisher_says_of_them(tmp_path: Path) -> None:
    folder = published_formats.small_mitbih(tmp_path / "data") / "mitdb"
    listed = sorted(folder.iterdir())
    sums = "".join(f"{file_sha256(path)} {path.name}\n" for path in listed)

    def swap(suffix: str) -> None:
        one, other = folder / f"102{suffix}", folder / f"104{suffix}"
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)

    swap(".dat")  # the header has the sum of each lead
    with pytest.raises(UsageError, match=r"102\.dat: lead MLII does not have the checksum that 102\.hea gives"):
        _prepare("mitbih", tmp_path)
    swap(".dat")
    for name in ("102", "104"):
        header = folder / f"{name}.hea"
        header.write_text(header.read_text().replace(name, "NAME"))
    swap(".hea")
    swap(".dat")
    for name in ("102", "104"):
        header = folder / f"{name}.hea"
        header.write_text(header.read_text().replace("NAME", name))
    _prepare("mitbih", tmp_path)
    assert _problems("mitbih", tmp_path) == ()  # without people's names
    (folder / "SHA256SUMS.txt").write_text(sums)
    problems = _problems("mitbih", tmp_path)
    assert {Path(problem.split(": ")[0]).name for problem in problems} == {"102.hea", "102.dat", "104.hea", "104.dat"}
    assert all(problem.endswith("its SHA-256 is not the publisher's; download it again") for problem in problems)


def _declared(tmp_path: Path, body: str, rate: int = 10) -> PreparedSet:
    """Prepare a declared data set whose recordings of five frames have samples `s`, of person `p0` to `p11`."""
    declare(
        tmp_path / "space.py",
        f"""
@dataset("own", classes=("a", "b"), channels=("ECG",), units="mV", sampling_rate={rate}, window_seconds=2)
def own(data_root):
    stream = np.random.default_rng(0)
    for number in range(12):
        s = stream.normal(size=(1, 10 * {rate})).astype("f4")
        yield Recording(s, number % 2, f"p{{number}}", name=f"r{{number}}")
        if number < 4:
            yield Recording({body})
""",
    )
    return _prepare("own", tmp_path)


def test_recordings_in_memory_that_are_there_twice_are_noted(tmp_path: Path) -> None:
    prepared = _declared(tmp_path, 's, number % 2, f"q{number}", name=f"again {number}"')
    assert prepared.manifest.frames == 16 * 5
    assert (
        "records with the samples of an earlier record: 4 (again 0 repeats r0, again 1 repeats r1, again 2 repeats r2, "
        "again 3 repeats r3); 4 of them are of another patient than the earlier one; leave them out with data prepare "
        "--on-error skip"
    ) in prepared.manifest.notes
    assert not [note for note in prepared.manifest.notes if note.startswith("frames with")]
    skipped = _prepare("own", tmp_path, on_error="skip", anew=True).manifest
    assert [record for record, _ in skipped.skipped] == [f"again {number}" for number in range(4)]
    assert (
        skipped.skipped[0][1]
        == "recording 'again 0': holds the same samples as recording 'r0'; keep one of the two records"
    )


def test_rows_of_an_array_that_are_there_twice_are_noted(tmp_path: Path) -> None:
    declare(
        tmp_path / "space.py",
        """
@dataset("own")
def own(data_root):
    x = np.random.default_rng(0).normal(size=(12, 1, 20))
    x[9] = x[2]
    return Recordings(x, 10, ["x"], "mV", labels=[n % 2 for n in range(12)], classes=("a", "b"), patients=range(12))
""",
    )
    (note,) = (note for note in _prepare("own", tmp_path).manifest.notes if "samples" in note)
    assert "records with the samples of an earlier record: 1 (9 repeats 2); 1 of them is of another patient" in note


@pytest.mark.parametrize(("part", "frames"), [("s[:, :99]", 16), ("s[:, 20:]", 16), ('s.astype("f8")', 20)])
def test_parts_of_a_recording_under_another_person_are_noted(tmp_path: Path, part: str, frames: int) -> None:
    prepared = _declared(tmp_path, f'{part}, number % 2, f"q{{number}}"')
    (note,) = (note for note in prepared.manifest.notes if note.startswith("frames with"))
    assert f"frames with the samples of one of another person: {frames}, such as p" in note
    assert note.endswith("and in two splits; leave them out, or give both one patient")


@pytest.mark.parametrize(
    "change",
    ["1000 * s", "s - 3", "np.round(s, 2)", "(s / 0.005).round().astype(int)", "np.float16(s)", "-1 + s.round(3) / 7"],
)
def test_a_recording_of_another_person_in_another_scale_or_rounding_is_noted(tmp_path: Path, change: str) -> None:
    prepared = _declared(tmp_path, f'{change}, number % 2, f"q{{number}}"', rate=100)
    (note,) = (note for note in prepared.manifest.notes if note.startswith("frames with"))
    assert note.startswith("frames with the shape of one of another person, in another scale, offset or rounding: ")
    assert "such as p" in note


@pytest.mark.parametrize(
    "change", ["s + 0.5 * stream.normal(size=s.shape)", "np.roll(s, 7) * 1.5", "np.cumsum(s * 0 + number + 1, 1)"]
)
def test_other_recordings_are_not_noted(tmp_path: Path, change: str) -> None:
    prepared = _declared(tmp_path, f'{change}, number % 2, f"q{{number}}"', rate=100)
    assert not [note for note in prepared.manifest.notes if note.startswith("frames with")]


@pytest.mark.parametrize("piece", ["np.roll(s, 7)", "s[:, 333:]", "(1000 * s).astype('i2')[:, 333:]"])
def test_overlapping_pieces_of_a_recording_under_two_people_are_noted(tmp_path: Path, piece: str) -> None:
    """Other windows have other samples, but runs of samples in common."""
    prepared = _declared(tmp_path, f'{piece}, number % 2, f"q{{number}}"', rate=100)
    if "1000" in piece:  # another scale
        assert not [note for note in prepared.manifest.notes if note.startswith("frames with a piece")]
        return
    (note,) = [note for note in prepared.manifest.notes if note.startswith("frames with a piece")]
    words, count = re.match(
        r"(.*): (\d+) or more, such as p\d and q\d: they may be cut from one recording", note
    ).groups()
    assert words == "frames with a piece of one of another person, at least 64 samples in a row"
    assert 16 <= int(count) <= 40


def test_parts_of_a_recording_of_one_person_are_not_noted(tmp_path: Path) -> None:
    prepared = _declared(tmp_path, 's[:, 20:], number % 2, f"p{number}"')
    assert not [note for note in prepared.manifest.notes if "with the samples" in note]


def test_a_launch_tells_what_was_dropped_and_who_may_be_in_two_splits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(
        tmp_path / "space.py",
        """
@dataset("own")
def own(data_root):
    x = np.random.default_rng(0).normal(size=(12, 1, 20))
    x[0, 0, 3] = np.nan
    people = [f"{'Pp'[n % 2]}{n // 2}" for n in range(12)]
    return Recordings(
        x, 10, ["x"], "mV", labels=[n % 2 for n in range(12)], classes=("a", "b"), patients=people, window_seconds=1,
        missing="drop_windows",
    )
""",
    )
    data = PreparedData(tmp_path / "prepared", tmp_path / "data")
    alike = "own: people with names that differ only in case, marks, spaces or leading zeros: 6, such as 'P0' and 'p0'"
    for lines in (["own: dropped: 1 frame (missing samples)", alike], [alike], [alike]):
        data.prepare([DataKey("own", 0, "none", "all")])
        told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("own: ")]
        assert [line.startswith(expected) for line, expected in zip(told, lines, strict=True)] == [True] * len(lines)


def test_the_launch_after_data_prepare_says_once_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declare(
        tmp_path / "space.py",
        """
@dataset("own", files=["labels.csv"], one_recording_per_person=True)
def own(data_root):
    return Recordings.from_folder(
        data_root, "*.npy", table="labels.csv", name="file", label="label", classes=["AF", "no"], sampling_rate=10,
        channels=["ECG"], units="mV",
    )
""",
    )
    labels = [*["AF", "no"] * 20, "AFF"]
    rows = [f"r{number},{label}" for number, label in enumerate(labels)]
    (tmp_path / "labels.csv").write_text("\n".join(["file,label", *rows]))
    for number in range(len(labels)):
        np.save(tmp_path / f"r{number}.npy", np.random.default_rng(number).normal(size=(1, 20)))
    root = tmp_path / "prepared"
    dropped = "own: dropped: 1 recording labelled AFF (did you mean AF?)"
    data = PreparedData(root, tmp_path)
    for expected in ([dropped], [], [dropped]):
        if expected:  # anew the second time
            shutil.rmtree(root, ignore_errors=True)
            prepare("own", prepared_root=root, data_root=tmp_path, workers=1)
        data.prepare([DataKey("own", 0, "none", "all")])
        told = capsys.readouterr().err.splitlines()
        assert [line for line in told if "dropped" in line] == expected
