"""People and domains whose names differ in writing alone, such as P7 and p07, and may be one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.misspelt import likely_meant, written
from clops_sweep.errors import listed, several, shown

_NUMBER: Final = re.compile(r"[-+]?[0-9]*[.,]?[0-9]+(e[-+]?[0-9]+)?", re.IGNORECASE)


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


def alike_domains(column: str, names: Iterable[str]) -> str | None:
    """Return a note on domains of a column whose names differ in writing alone; None if there are no such names."""
    pairs = _alike(names)
    if not pairs:
        return None
    return f"domains of {shown(column)} with {_in_words(pairs)}: each is a task of its own; give each domain one name"


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


def alike_groups(column: str, names: Iterable[str]) -> str | None:
    """Return a note on groups of a column whose names differ in writing alone; None if there are no such names.

    Numbers are left out: -5 and 5, or 1.05 and 1.5, are different.
    """
    pairs = _alike(name for name in names if not _NUMBER.fullmatch(name))
    if not pairs:
        return None
    return f"groups of {shown(column)} with {_in_words(pairs)}: each is a subgroup of its own; give each group one name"


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
    return f"names that differ only in case, marks, spaces or leading zeros: {len(pairs):,}, such as {one} and {other}"
