"""Declared files that are invalid as tables or recordings give one sentence, without delay."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from clops_sweep import Recordings
from clops_sweep.cli.command import main
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, forget, waves, write_wfdb


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve recordings as CSV files of two channels, and a table with labels and people."""
    folder = tmp_path / "files"
    folder.mkdir()
    lines = ["record,rhythm,person"]
    for number in range(12):
        pd.DataFrame(waves(1, 2, 16, number)[0].T, columns=["a", "b"]).to_csv(folder / f"r{number}.csv", index=False)
        lines.append(f"r{number},{'pq'[number % 2]},s{number}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder


def _recordings(folder: Path, **changes: object) -> Recordings:
    given = {"table": "labels.csv", "label": "rhythm", "patient": "person", "sampling_rate": 8, "units": "g"}
    return Recordings.from_folder(folder, **(given | changes))


def _refused(folder: Path, says: str, **changes: object) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        _recordings(folder, **changes)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def _replace(file: Path, old: str, new: str, encoding: str = "utf-8") -> None:
    file.write_bytes(file.read_text(encoding="utf-8").replace(old, new).encode(encoding))


def test_a_table_in_latin_1_names_its_line(folder: Path) -> None:
    _replace(folder / "labels.csv", ",s3", ",Müller", "latin-1")
    _refused(
        folder, r"labels\.csv: line 5, patient: 'M.ller' is not UTF-8; save the table as UTF-8, or give table=pandas"
    )
    table = pd.read_csv(folder / "labels.csv", encoding="latin-1")
    assert _recordings(folder, table=table).columns.patients[3] == "Müller"
    assert len(_recordings(folder, patient=None)) == 12  # an unused column


def test_a_comment_of_a_header_in_latin_1(tmp_path: Path) -> None:
    for number in range(6):
        comments = [f"Dx: {'pq'[number % 2]}", f"Name: M{'üöäéèà'[number]}ller"]
        write_wfdb(tmp_path, f"r{number}", 1000 * waves(1, 1, 16, number)[0], 8, comments=comments)
        header = tmp_path / f"r{number}.hea"
        header.write_bytes(header.read_text(encoding="utf-8").encode("latin-1"))
    found = Recordings.from_wfdb(tmp_path, label="#Dx", patient="#Name")
    assert found.columns.patients == [f"M{each}ller" for each in "üöäéèà"]


@pytest.mark.parametrize(("column", "argument"), [("person", "patient"), ("rhythm", "label")])
def test_a_column_of_the_table_that_is_there_twice(folder: Path, column: str, argument: str) -> None:
    lines = (folder / "labels.csv").read_text().splitlines()
    (folder / "labels.csv").write_text("\n".join(f"{line},{column if not n else 'p'}" for n, line in enumerate(lines)))
    _refused(folder, rf"{argument}: .*labels\.csv has 2 columns '{column}'; rename one of them")


def test_a_column_of_a_recording_that_is_there_twice(folder: Path) -> None:
    for file in folder.glob("r*.csv"):
        _replace(file, "a,b\n", "a,a\n")
    _refused(folder, r"r0\.csv: has 2 columns 'a'; rename one of them", channels=["a"])


def test_a_table_without_header_is_asked_by_position(folder: Path) -> None:
    _replace(folder / "labels.csv", "record,rhythm,person\n", "")
    _refused(folder, r"label: .*labels\.csv has no column 'rhythm'; it has r0, p, s0 .* as in label=1\)")
    assert len(_recordings(folder, label=1, patient=2)) == 12


def test_a_frame_with_the_missing_value_of_pandas(folder: Path) -> None:
    table = pd.read_csv(folder / "labels.csv", dtype="string")
    table.loc[3, "rhythm"] = pd.NA
    found = _recordings(folder, table=table)
    assert len(found) == 11
    assert found.common.left_out == {"recordings without a label": 1}


@pytest.mark.parametrize("pattern", ["**x/*.csv", "/tmp/*.csv"])
def test_a_pattern_that_leads_nowhere(folder: Path, pattern: str) -> None:
    _refused(folder, "^pattern: expected a pattern of files in the folder|no file there matches", pattern=pattern)


@pytest.mark.parametrize("kind", ["table", "recording", "first recording"])
@pytest.mark.parametrize("what", ["fifo", "zero", "loop"])
def test_what_is_no_file_never_holds_a_preparation_up(folder: Path, kind: str, what: str) -> None:
    place = folder / {"table": "labels.csv", "recording": "r5.csv", "first recording": "r0.csv"}[kind]
    place.unlink()
    if what == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/zero" if what == "zero" else place.name)
    declare(
        folder.parent / "own.py",
        """
        @dataset("own", files=["files"])
        def own(data_root):
            return Recordings.from_folder(data_root / "files", table="labels.csv", label="rhythm", patient="person",
                                          sampling_rate=8, units="g")
        """,
    )
    with pytest.raises(UsageError, match=place.name) as caught:
        prepare("own", prepared_root=folder.parent / "prepared", data_root=folder.parent, workers=1)
    assert "\n" not in str(caught.value)


DECLARED = """
import os
import re
@dataset("own", files=["files"])
def own(data_root):
    n = np.arange(12)
    BODY
    return Recordings(np.random.default_rng(0).normal(size=(12, 1, 8)), 8, ["a"], "g", n % 2, ("p", "q"), n)
"""


def test_a_declared_file_that_vanishes(folder: Path) -> None:
    declare(
        folder.parent / "own.py", DECLARED.replace("BODY", "(data_root / 'files' / 'r3.csv').unlink(missing_ok=True)")
    )
    with pytest.raises(UsageError, match=r"files/r3\.csv: has vanished while own was made from it; start again"):
        prepare("own", prepared_root=folder.parent / "prepared", data_root=folder.parent)
    assert list((folder.parent / "prepared").glob("*")) == []


def test_a_fifo_in_a_declared_folder_is_not_a_file_of_it(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    declare(folder.parent / "own.py", DECLARED.replace("BODY", ""))
    prepared = prepare("own", prepared_root=folder.parent / "prepared", data_root=folder.parent)
    assert "files/pipe" not in (prepared.folder / "manifest.json").read_text()
    assert prepare("own", prepared_root=folder.parent / "prepared", data_root=folder.parent) == prepared


def test_links_planted_beside_a_preparation_are_not_followed(folder: Path) -> None:
    root, kept = folder.parent / "prepared", folder.parent / "kept"
    root.mkdir()
    kept.mkdir()
    for name in ("frames.npy", "manifest.json", "index.parquet"):
        (kept / name).write_text("theirs")
    (root / "own").symlink_to(kept)
    declare(folder.parent / "own.py", DECLARED.replace("BODY", ""))
    prepare("own", prepared_root=root, data_root=folder.parent)
    assert [(place.name, place.is_symlink()) for place in root.iterdir()] == [("own", False)]
    assert {file.read_text() for file in kept.iterdir()} == {"theirs"}


def test_a_pattern_of_files_that_glob_cannot_read(folder: Path) -> None:
    declare(folder.parent / "own.py", DECLARED.replace("BODY", "").replace('["files"]', '["**x/["]'))
    with pytest.raises(UsageError, match=r"dataset 'own': files: ('|.* has no )\*\*x/\["):
        prepare("own", prepared_root=folder.parent / "prepared", data_root=folder.parent)


def test_a_data_root_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["data", "list", "--data-root", str(tmp_path / "nope")])
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (2, "")
    assert re.fullmatch(r"clops-sweep: --data-root \S*nope: there is no such folder; give .*\n", shown.err)
