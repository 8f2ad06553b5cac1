"""Columns for subgroups of built-in data sets: publishers' notations, and missing values."""

from __future__ import annotations

import pytest

from clops_sweep.data.published.sex_and_age import sex_and_age


@pytest.mark.parametrize(
    ("sex", "age", "expected"),
    [
        ("M", "69", ("male", "60 to 79")),
        ("Female", "39", ("female", "under 40")),
        ("female", "300.0", ("female", "80 and older")),
        ("f", "40", ("female", "40 to 59")),
        ("", "", ("unknown", "unknown")),
        ("?", "-1", ("unknown", "unknown")),
        ("male", "nan", ("male", "unknown")),
    ],
)
def test_sex_and_age(sex: str, age: str, expected: tuple[str, str]) -> None:
    assert tuple(sex_and_age(sex, age).values()) == expected
