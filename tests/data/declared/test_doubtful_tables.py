"""Notes on tables that a spreadsheet or a program damaged: placeholder dates, numbers, and slow voltages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.declared.placeholder_dates import placeholder_dates
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.records import Index
from clops_sweep.errors import UsageError
from tests.data.declared_files import declare, forget

DECLARED = """
@dataset("own", scenarios=["class_il"])
def own(data_root):
    x = np.random.default_rng(0).normal(size=(24, 1, 40)).astype(np.float32)
    labels = np.arange(24) % 2
    sites = ["ICU" if i not in (3, 5) else "icu" for i in range(24)]
    return Recordings(x, RATE, ["II"], "UNIT", labels, ("a", "b"), PEOPLE, domains={"ward": sites},
                      names=[f"r{i}" for i in range(24)])
"""


def _prepare(folder: Path, people: str = "np.arange(24) // 2", rate: float = 100, unit: str = "mV") -> str:
    """Return the notes of `data prepare`, a line each."""
    forget("own")
    text = DECLARED.replace("PEOPLE", people).replace("RATE", str(rate)).replace("UNIT", unit)
    declare(folder / "own.py", text)
    try:
        made = prepare("own", prepared_root=folder / "prepared", data_root=None, anew=True)
        return "\n".join(made.manifest.notes)
    finally:
        forget("own")


def _dated(days: list[str]) -> list[str]:
    """Return the notes on recordings with these dates, two frames each; every two recordings are of one person."""
    records = np.repeat(np.arange(len(days), dtype=np.int32), 2)
    return placeholder_dates(
        Index(
            patient_names=tuple(f"P{i}" for i in range(len(days))),
            record_names=tuple(f"r{i}" for i in range(len(days))),
            patients=records // 2,
            records=records,
            leads=np.zeros(len(records), np.int16),
            start=np.zeros(len(records)),
            labels=np.zeros(len(records), np.int64),
            times=np.repeat(np.array(days, "datetime64[s]"), 2),
        )
    )


USUAL = [f"202{i % 3}-0{i % 9 + 1}-11T08:00" for i in range(12)]


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (["1900-01-01"], "1 recording of 1 person has 1900-01-01, which programs write for an unknown date: r12;"),
        (["1823-05-01"], "1 recording of 1 person has 1823-05-01, which is before all possible dates: r12;"),
        (["2999-12-31"] * 4, "4 recordings of 2 people have 2999-12-31, which is after all possible dates: r12, r13,"),
        (["2001-07-07"] * 4, "4 recordings of 2 people have 2001-07-07, far from all other dates, as a placeholder"),
    ],
)
def test_a_date_that_is_probably_a_placeholder_is_noted_with_its_recordings(days: list[str], said: str) -> None:
    (note,) = _dated(USUAL + days)
    assert note.startswith(f"dates: {said}")


@pytest.mark.parametrize(
    "days",
    [
        USUAL,
        [*USUAL, "2001-07-07", "2001-07-07"],  # one person, who came early
        [*USUAL, "2019-01-01", "2019-01-01", "2019-01-01"],  # near the others
        [f"21{i % 90 + 10}-05-05" for i in range(12)],  # all are shifted, as in published records of intensive care
        ["1970-01-01"] * 12,
    ],
)
def test_dates_that_may_be_right_have_no_note(days: list[str]) -> None:
    assert _dated(days) == []


@pytest.mark.parametrize("pair", [("1e3", "1000"), ("1.5E+2", "150")])
def test_ids_that_a_spreadsheet_wrote_as_other_numbers_are_refused_by_name(
    tmp_path: Path, pair: tuple[str, str]
) -> None:
    people = f"[{pair[0]!r} if i < 2 else {pair[1]!r} if i < 4 else 'P%d' % (i // 2) for i in range(24)]"
    with pytest.raises(UsageError) as refused:
        _prepare(tmp_path, people)
    assert f"patient: '{pair[0]}' and '{pair[1]}' are equal numbers, as a spreadsheet writes them" in str(refused.value)


def test_ids_with_points_are_people_of_their_own_and_rounded_ones_are_noted(tmp_path: Path) -> None:
    assert "spreadsheet" not in _prepare(tmp_path, "['%d.%d' % (i // 4, 10 * (i // 2 % 2) + 1) for i in range(24)]")
    notes = _prepare(tmp_path, "['1.23457E+11' if i < 4 else 'P%d' % (i // 2) for i in range(24)]")
    assert "people with names as a spreadsheet rounds long numbers: 1.23457E+11; several people" in notes


def test_names_that_look_alike_are_noted_with_the_recordings_of_the_rarer_one(tmp_path: Path) -> None:
    assert "such as 'ICU' and 'icu' ('icu' has 2 recordings: r3, r5): each is a task of its own" in _prepare(tmp_path)


def test_leads_of_less_than_one_sample_a_second_are_noted(tmp_path: Path) -> None:
    assert "0.25 samples a second, too few for an ECG; give the rate in Hz, not in kHz" in _prepare(tmp_path, rate=0.25)
    assert "too few for" not in _prepare(tmp_path, rate=0.25, unit="mmol/L")
    assert "too few for" not in _prepare(tmp_path, rate=100)
