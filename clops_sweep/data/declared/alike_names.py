"""People and domains whose names differ in writing alone, such as P7 and p07, and may be one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.misspelt import latin, likely_meant, written
from clops_sweep.errors import listed, several, shown

_NUMBER: Final = re.compile(r"[-+]?[0-9]*[.,]?[0-9]+(e[-+]?[0-9]+)?", re.IGNORECASE)
_DAMAGED: Final = re.compile(r"[0-9]+([.][0-9]+)?e[+]?[0-9]{1,2}", re.IGNORECASE)
"""A number as a spreadsheet may write it: 1e3."""
_ROUNDED: Final = re.compile(r"[0-9]([.,][0-9]+)?e[+][0-9]{2}", re.IGNORECASE)


def alike_people(names: Iterable[str]) -> str | None:
    """Return a note on people whose names differ in writing alone; None if there are no such names."""
    pairs = _alike(names)
    if not pairs:
        return None
    return f"people with {_in_words(pairs)}: one person may be in two splits; give each person one name"


def people_with_lost_zeros(names: Iterable[str]) -> str | None:
    """Return the sentence about people whose names are numbers that differ in leading zeros alone; None without any."""
    numbers = [name for name in names if name.isascii() and name.isdigit()]
    pairs = _alike(numbers)
    if not pairs:
        return None
    short, long = sorted(pairs[0], key=len)
    return (
        f"patient: {shown(short)} and {shown(long)} differ only in leading zeros (such pairs: {len(pairs):,}), so one "
        "person may be in two splits; read the column as text, pandas.read_csv(..., dtype=str), or write the zeros, "
        f'f"{{number:0{len(long)}d}}"; if they are two people, give one another name, such as {shown("B" + short)}'
    )


def people_with_damaged_numbers(names: Iterable[str]) -> str | None:
    """Return the sentence about people whose ids a spreadsheet wrote as other numbers; None without any.

    Such is 1e3 beside 1000. (1.0 and 1 are one name, and 1.1 and 1.10 may be those of two people.)
    """
    whole = {}
    damaged = []
    for name in names:
        if name.isascii() and name.isdigit():
            whole[int(name)] = name
        elif _DAMAGED.fullmatch(name):
            damaged.append(name)
    pairs = [(name, whole[value]) for name in damaged if (value := _whole_value(name)) in whole]
    if not pairs:
        return None
    examples = [f"{shown(name)} and {shown(other)}" for name, other in pairs]
    return (
        f"patient: {listed(examples)} are equal numbers, as a spreadsheet writes them, so one person may be in two "
        "splits; write each person in one way, and read the column as text, pandas.read_csv(..., dtype=str); if they "
        f"are two people, give one another name, such as {shown('B' + pairs[0][1])}"
    )


def people_with_rounded_numbers(names: Iterable[str]) -> str | None:
    """Return a note on people with names such as 1.23457E+11, which a spreadsheet writes for long numbers."""
    rounded = [name for name in names if _ROUNDED.fullmatch(name)]
    if not rounded:
        return None
    return (
        f"people with names as a spreadsheet rounds long numbers: {listed(rounded)}; several people may have one name; "
        "write the column as text"
    )


def _whole_value(name: str) -> int | None:
    value = float(name)
    return int(value) if value.is_integer() else None


def alike_domains(column: str, recordings: Mapping[str, Sequence[str]]) -> str | None:
    """Return a note on domains of a column whose names differ in writing alone; None if there are no such names.

    Args:
        column: the column of domains.
        recordings: the names of the recordings of each domain.
    """
    pairs = _alike(recordings)
    if not pairs:
        return None
    return (
        f"domains of {shown(column)} with {_in_words(pairs)}{_rarer(pairs, recordings)}: each is a task of its own; "
        "give each domain one name"
    )


def _rarer(pairs: Sequence[tuple[str, str]], recordings: Mapping[str, Sequence[str]]) -> str:
    """Return the recordings of the rarer name of the first pair, as the end of a clause."""
    rare = min(pairs[0], key=lambda name: len(recordings[name]))
    return f" ({shown(shorten(rare))} has {several(len(recordings[rare]), 'recording')}: {listed(recordings[rare])})"


def misspelt_domains(column: str, recordings: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note on each domain that probably is a misspelling of another one, with its recordings.

    Those that differ in writing alone are left to `alike_domains`.

    Args:
        column: the column of domains.
        recordings: the names of the recordings of each domain.
    """
    counts = {name: len(names) for name, names in recordings.items()}
    notes = []
    for name, names in recordings.items():
        meant = likely_meant(name, counts)
        if meant is None or written(meant) == written(name):
            continue
        many = several(len(names), "recording")
        notes.append(
            f"domains of {shown(column)}: {shown(shorten(name))} (did you mean {shown(shorten(meant))}?) has {many}: "
            f"{listed(names)}; each is a task of its own; give each domain one name"
        )
    return notes


def alike_groups(column: str, recordings: Mapping[str, Sequence[str]]) -> str | None:
    """Return a note on groups of a column whose names differ in writing alone; None if there are no such names.

    Numbers are left out: -5 and 5, or 1.05 and 1.5, are different.

    Args:
        column: the column for subgroups.
        recordings: the names of the recordings of each group.
    """
    pairs = _alike(name for name in recordings if not _NUMBER.fullmatch(name))
    if not pairs:
        return None
    return (
        f"groups of {shown(column)} with {_in_words(pairs)}{_rarer(pairs, recordings)}: each is a subgroup of its own; "
        "give each group one name"
    )


def _alike(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return names with an earlier one that differs only in case, marks and spaces between words, or leading zeros."""
    first: dict[tuple[str, ...], str] = {}
    pairs = list[tuple[str, str]]()
    for name in names:
        other = first.setdefault(written(name), name)
        if other != name:
            pairs.append((other, name))
    return pairs


def _in_words(pairs: Sequence[tuple[str, str]]) -> str:
    one, other = (shown(shorten(name)) for name in pairs[0])
    how = "differ only in case, marks, spaces or leading zeros"
    if {latin(name) for name in pairs[0]} != set(pairs[0]):
        how = "look alike, with letters of two alphabets"
    return f"names that {how}: {len(pairs):,}, such as {one} and {other}"
