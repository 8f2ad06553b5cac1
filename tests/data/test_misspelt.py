"""Which names of domains are taken for other spellings of a name."""

from __future__ import annotations

import pytest

from clops_sweep.data.misspelt import likely_meant, respelt


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("genral", "general"),
        ("genreal", "general"),
        ("icu", "ICU"),
        ("ward genral", "ward general"),
        ("paediatric", "pediatric"),
        ("step-down", "Step Down"),
        ("ward 01", "ward 1"),
    ],
)
def test_another_spelling_is_found(name: str, other: str) -> None:
    assert respelt(name, ["B", other]) == other


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("ward 1", "ward 2"),
        ("ward 12", "ward 1"),
        ("A", "B"),
        ("wardA", "wardB"),
        ("MICU", "SICU"),
        ("inpatient", "outpatient"),
        ("nonsurgical", "surgical"),
        ("prenatal", "perinatal"),
        ("general", "general"),
    ],
)
def test_different_names_are_not_taken_for_spellings(name: str, other: str) -> None:
    assert respelt(name, [other]) is None
    assert respelt(other, [name]) is None


@pytest.mark.parametrize(
    ("rare", "frequent", "is_meant"), [(1, 3, True), (1, 2, False), (3, 7, True), (4, 79, False), (4, 80, True)]
)
def test_only_a_rare_name_is_taken_for_a_misspelling(rare: int, frequent: int, is_meant: bool) -> None:
    counts = {"genral": rare, "general": frequent, "ICU": 100}
    assert likely_meant("genral", counts) == ("general" if is_meant else None)
    assert likely_meant("general", counts) is None
