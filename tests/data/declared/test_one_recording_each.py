"""People with one recording each, whose column may number recordings: noted, and silent where it is stated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.recording_facts import PEOPLE_MAY_BE_RECORDINGS
from tests.data.declared_files import declare, waves

SERIES = [f"P{number // 2:02d}_{number % 2}" for number in range(12)]
FILES = [f"rec{number}" for number in range(1, 13)]
LETTERS = [f"{letter}{letter}" for letter in "qwertzuiopas"]
TWO_EACH = [f"p{number // 2}" for number in range(12)]


def notes(folder: Path, names: Sequence[str], people: Sequence[object], stated: str = "") -> list[str]:
    """Return the notes on people and recordings of files with a table."""
    for name, signal in zip(names, waves(len(names), 1, 100), strict=True):
        np.save(folder / f"{name}.npy", signal)
    rows = [f"{name},{person},{'AB'[row % 2]}" for row, (name, person) in enumerate(zip(names, people, strict=True))]
    (folder / "table.csv").write_text("\n".join(["file,who,label", *rows]))
    declare(
        folder / "space.py",
        f"""
        @dataset("own"{stated})
        def own(data_root):
            columns = dict(table="table.csv", name="file", label="label", patient="who")
            return Recordings.from_folder(data_root, "*.npy", sampling_rate=50, units="mV", channels=["x"], **columns)
        """,
    )
    manifest = prepare("own", prepared_root=folder / "prepared", data_root=folder, workers=1).manifest
    return [note for note in manifest.notes if "people" in note or "person" in note]


@pytest.mark.parametrize(
    ("names", "people", "why"),
    [
        (SERIES, range(1, 13), "although names such as P00_0 and P00_1 suggest several of one person"),
        (SERIES, LETTERS, "although names such as P00_0 and P00_1 suggest several of one person"),
        (FILES, range(12), "and people are numbered from 0 to 11 in the order of the recordings"),
        (FILES, [3, *range(5, 16)], "and people are numbered from 3 to 15 in the order of the recordings"),
    ],
)
def test_people_that_may_be_recordings_are_noted(
    names: Sequence[str], people: Sequence[object], why: str, tmp_path: Path
) -> None:
    assert notes(tmp_path, names, people) == [
        f"{PEOPLE_MAY_BE_RECORDINGS}: each of the 12 people of patient='who' has one, {why}; if patient='who' numbers "
        "recordings, a person is in two splits and scores are too high: give the column of the person; if each "
        "recording is of another person, state @dataset(..., one_recording_per_person=True)"
    ]


@pytest.mark.parametrize("people", [LETTERS, [9, 7, 12, 1, 4, 2, 3, 11, 5, 6, 8, 10], range(0, 120, 10)])
def test_people_with_one_recording_each_are_noted_without_a_suspicion(people: Sequence[object], tmp_path: Path) -> None:
    assert notes(tmp_path, FILES, people) == [
        "each of the 12 people of patient='who' has one recording; check that patient='who' names people and not "
        "recordings; if each recording is of another person, state @dataset(..., one_recording_per_person=True)"
    ]


def test_the_order_of_names_counts_as_that_of_the_recordings(tmp_path: Path) -> None:
    order = np.random.default_rng(0).permutation(12)
    (note,) = notes(tmp_path, [FILES[row] for row in order], order)
    assert "numbered from 0 to 11 in the order of the recordings" in note


@pytest.mark.parametrize(
    ("names", "people", "stated"),
    [
        (SERIES, range(12), ", one_recording_per_person=True"),
        (FILES, LETTERS, ", one_recording_per_person=True"),
        (FILES[:9], range(9), ""),  # few
    ],
)
def test_stated_or_few_people_are_not_noted(
    names: Sequence[str], people: Sequence[object], stated: str, tmp_path: Path
) -> None:
    assert notes(tmp_path, names, people, stated) == []


def test_people_with_two_recordings_are_not_noted(tmp_path: Path) -> None:
    said = notes(tmp_path, SERIES, TWO_EACH)
    assert not any("has one" in note for note in said)


@pytest.mark.parametrize("given", ["np.arange(12)", "[f'r{n}' for n in range(12)]"])
def test_people_of_arrays_are_noted(given: str, tmp_path: Path) -> None:
    declare(
        tmp_path / "space.py",
        f"""
        @dataset("own")
        def own(data_root):
            x = np.random.default_rng(0).normal(size=(12, 1, 100)).astype("f4")
            return Recordings(x, 50, ["x"], "mV", np.arange(12) % 2, ["A", "B"], patients={given})
        """,
    )
    said = prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path, workers=1).manifest.notes
    (note,) = (note for note in said if "each of the 12 people of patient has one" in note)
    assert note.startswith(PEOPLE_MAY_BE_RECORDINGS) == ("arange" in given)
