"""Declared files that are invalid as tables or recordings give one sentence, without delay."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from clops_sweep import Recordings
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, waves


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


@pytest.mark.parametrize(("column", "argument"), [("person", "patient"), ("rhythm", "label")])
def test_a_column_of_the_table_that_is_there_twice(folder: Path, column: str, argument: str) -> None:
    lines = (folder / "labels.csv").read_text().splitlines()
    (folder / "labels.csv").write_text("\n".join(f"{line},{column if not n else 'p'}" for n, line in enumerate(lines)))
    _refused(folder, rf"{argument}: .*labels\.csv has 2 columns '{column}'; rename one of them")


def test_a_table_without_header_is_asked_by_position(folder: Path) -> None:
    _replace(folder / "labels.csv", "record,rhythm,person\n", "")
    _refused(folder, r"label: .*labels\.csv has no column 'rhythm'; it has r0, p, s0 .* as in label=1\)")
    assert len(_recordings(folder, label=1, patient=2)) == 12


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
