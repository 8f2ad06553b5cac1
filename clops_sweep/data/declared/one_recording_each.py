"""People with one recording each: their column may number recordings, so that one person is in two splits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from clops_sweep.data.files.folder import natural, shorten
from clops_sweep.data.recording_facts import PEOPLE_MAY_BE_RECORDINGS
from clops_sweep.data.records import Index
from clops_sweep.errors import shown

_SERIES: Final = re.compile(r"[-_. ][0-9A-Za-z]{1,4}$")
"""The number of a recording after the name of its person."""
_MANY: Final = 10
"""Recordings from which people with one recording each are noted."""
_MOST_GAPS: Final = 2
"""Numbers from the first to the last one, for each recording, up to which people are numbered as recordings are."""
_REMEDY: Final = "if each recording is of another person, state @dataset(..., one_recording_per_person=True)"


def names_of_series(names: Sequence[str]) -> list[str]:
    """Return the names of two recordings that suggest one person, such as P01_1 and P01_2; none if all are distinct.

    Args:
        names: names of all recordings.
    """
    first: dict[str, str] = {}
    of_one = list[list[str]]()
    for name in names:
        other = first.setdefault(_SERIES.sub("", name), name)
        if other != name:
            of_one.append([other, name])
    has_several_people = len(first) > 1
    return of_one[0] if of_one and has_several_people else []


def people_with_one_recording(index: Index, column: str | int | None) -> str | None:
    """Return a note if each person of many has one recording; None otherwise.

    It begins with `PEOPLE_MAY_BE_RECORDINGS` if something suggests that people are recordings: names of recordings, or
    people that are numbered as the recordings are.

    Args:
        index: the frames.
        column: the column of a table that names the people; None if recordings or arrays do.
    """
    count = len(index.patient_names)
    if count < _MANY or count != len(index.record_names):
        return None
    given = "patient" if column is None else f"patient={shown(column)}"
    series = names_of_series(index.record_names)
    why = ""
    if series:
        one, other = (shorten(name) for name in series)
        why = f"although names such as {one} and {other} suggest several of one person"
    elif (ends := _numbered(index)) is not None:
        why = f"and people are numbered from {ends[0]:,} to {ends[1]:,} in the order of the recordings"
    has_one = f"each of the {count:,} people of {given} has one"
    if why:
        return (
            f"{PEOPLE_MAY_BE_RECORDINGS}: {has_one}, {why}; if {given} numbers recordings, a person is in two splits "
            f"and scores are too high: give the column of the person; {_REMEDY}"
        )
    return f"{has_one} recording; check that {given} names people and not recordings; {_REMEDY}"


def _numbered(index: Index) -> tuple[int, int] | None:
    """Return the first and the last number if people are numbered in the order of their recordings; None otherwise.

    The order is that in which recordings were read, or that of their names. Numbers may be missing, as of recordings
    that are left out.
    """
    if not all(name.isascii() and name.isdigit() for name in index.patient_names):
        return None
    records, first_frames = np.unique(index.records, return_index=True)
    names = [index.record_names[record] for record in records.tolist()]
    numbers = [int(index.patient_names[person]) for person in index.patients[first_frames].tolist()]
    order = sorted(range(len(names)), key=lambda position: natural(names[position]))
    for in_order in (numbers, [numbers[position] for position in order]):
        rises = all(one < other for one, other in pairwise(in_order))
        if rises and in_order[-1] - in_order[0] < _MOST_GAPS * len(in_order):
            return in_order[0], in_order[-1]
    return None
