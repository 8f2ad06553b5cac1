"""Notes on columns for subgroups: impossible ages, and words that mean the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from clops_sweep.data.declared.recording_checks import is_number
from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import listed, several, shown

_AGES: Final = frozenset({"age", "ages", "alter", "edad", "eta", "idade", "leeftijd"})
"""Words in names of columns of ages."""

_OLDEST: Final = 120
_BIRTH_YEARS: Final = (1850, 2100)

_MEAN_THE_SAME: Final = (
    frozenset({"f", "female", "w", "woman", "weiblich", "frau", "femme", "femenino", "mujer"}),
    frozenset({"m", "male", "man", "männlich", "mann", "homme", "masculino", "hombre"}),
    frozenset({"y", "yes", "true", "ja", "oui", "si"}),
    frozenset({"n", "no", "false", "nein", "non"}),
)
"""Words of one meaning, in lower case."""


def age_notes(column: str, recordings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return notes on values of a column of ages that are no ages in years: below 0, above 120, or years of birth.

    Args:
        column: the column for subgroups; of others than ages, nothing is said.
        recordings: the names of the recordings of each value.
    """
    if _AGES.isdisjoint(re.split(r"[^a-z]+", column.casefold())):
        return []
    births: list[str] = []
    others: list[str] = []
    for value in recordings:
        if not is_number(value):
            continue
        years = float(value)
        if _BIRTH_YEARS[0] <= years <= _BIRTH_YEARS[1]:
            births.append(value)
        elif not 0 <= years <= _OLDEST:
            others.append(value)
    notes = []
    for values, what in ((births, "look like years of birth"), (others, f"are no ages from 0 to {_OLDEST} years")):
        if values:
            names = [name for value in values for name in recordings[value]]
            many = several(len(names), "recording")
            in_order = sorted(values, key=float)
            notes.append(
                f"groups of {shown(column)} with values that {what}: {listed(in_order)} ({many}: "
                f"{listed(names)}); correct the table, or leave the cells empty"
            )
    return notes


def synonym_notes(column: str, recordings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note for words of a column that mean the same, such as "f" and "female".

    Those that differ in writing alone are left to `alike_groups`.

    Args:
        column: the column for subgroups.
        recordings: the names of the recordings of each group.
    """
    notes = []
    for meaning in _MEAN_THE_SAME:
        words = [name for name in recordings if name.strip().casefold() in meaning]
        if len({word.strip().casefold() for word in words}) < 2:
            continue
        counts = [f"{shown(shorten(word))} ({several(len(recordings[word]), 'recording')})" for word in words]
        notes.append(
            f"groups of {shown(column)} that probably are one: {listed(counts)}: each is a subgroup of its own; give "
            "each group one name"
        )
    return notes
