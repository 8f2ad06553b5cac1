"""Notes on columns for subgroups: ages that nobody has, and words that mean the same."""

from __future__ import annotations

import pytest

from clops_sweep.data.declared.odd_groups import age_notes, synonym_notes


@pytest.mark.parametrize("column", ["age", "Age (years)", "patient_age", "Alter"])
def test_ages_that_nobody_has_are_noted(column: str) -> None:
    recordings = {
        "61": ["a"],
        "150": ["b", "c"],
        "-1": ["d"],
        "1954": ["e"],
        "unknown": ["f"],
        "0.5": ["g"],
        "120": ["h"],
    }
    assert age_notes(column, recordings) == [
        f"groups of {column!r} with values that look like years of birth: 1954 (1 recording: e); correct the table, or "
        "leave the cells empty",
        f"groups of {column!r} with values that are no ages from 0 to 120 years: -1, 150 (3 recordings: b, c, d); "
        "correct the table, or leave the cells empty",
    ]


@pytest.mark.parametrize("column", ["dosage", "stage", "birth_year", "sex"])
def test_numbers_of_other_columns_are_no_ages(column: str) -> None:
    assert age_notes(column, {"150": ["a"], "1954": ["b"]}) == []


def test_ages_and_bands_of_ages_have_no_note() -> None:
    assert age_notes("age", {"0": ["a"], "89": ["b"], "60 to 79": ["c"], "nan": ["d"]}) == []


def test_words_of_one_meaning_are_noted() -> None:
    recordings = {"f": ["a", "b"], "male": ["c"], "Female": ["d"], "unknown": ["e"]}
    assert synonym_notes("sex", recordings) == [
        "groups of 'sex' that probably are one: 'f' (2 recordings), 'Female' (1 recording): each is a subgroup of its "
        "own; give each group one name"
    ]


@pytest.mark.parametrize("values", [("f", "m"), ("F", "f "), ("no", "yes"), ("ward f", "female"), ("w", "m", "x")])
def test_words_of_other_meanings_or_of_one_writing_have_no_note(values: tuple[str, ...]) -> None:
    assert synonym_notes("sex", {value: [value] for value in values}) == []
