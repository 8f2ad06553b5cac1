"""Tables of folds: the fold of each person, as `clops-sweep data folds` writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.label_table import place_of
from clops_sweep.data.files.csv_table import table_lines
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.splits.fixed_folds import FixedFolds
from clops_sweep.errors import UsageError, listed, shown

TITLES: Final = ("person", "fold", "split_seed")
"""Columns of a table of folds."""
_FEWEST: Final = 3


def read_folds(path: Path, people: Sequence[str]) -> tuple[tuple[FixedFolds, ...], list[str]]:
    """Return the folds of each split seed in a table, and notes on people who are in one of table and data only.

    Args:
        path: a CSV file with the columns `TITLES`.
        people: names of the people of the data.

    Raises:
        UsageError: a column is missing, a cell is no whole number, a person has two folds, a fold has no one, or no
            person of the table is in the data.
    """
    folds_of_seeds = _rows(path)
    notes = []
    given = []
    for split_seed, fold_of in sorted(folds_of_seeds.items()):
        k = max(fold_of.values())
        what = f"folds: {path.name}, split_seed {split_seed}"
        empty = [str(fold) for fold in range(1, k + 1) if fold not in fold_of.values()]
        if k < _FEWEST or empty:
            lacking = f"no one is in fold {listed(empty)}" if empty else f"there are {k} folds"
            raise UsageError(f"{what}: {lacking}; expected three folds or more, numbered from 1, with people in each")
        parts = tuple(fold_of.get(person, 0) for person in people)
        known = sum(part > 0 for part in parts)
        if not known:
            raise UsageError(
                f"{what}: none of its {len(fold_of):,} people, such as {shown(next(iter(fold_of)))}, is in the data, "
                f"which have {shown(people[0])}"
            )
        if known < len(people):
            notes.append(f"{what}: {_people(len(people) - known)} without a fold, dealt by labels")
        if known < len(fold_of):
            notes.append(f"{what}: {_people(len(fold_of) - known)} of the table without recordings here")
        given.append(FixedFolds(split_seed, k, parts))
    return tuple(given), notes


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def _rows(path: Path) -> Mapping[int, dict[str, int]]:
    """Return the fold of each person, by split seed."""
    lines, _ = table_lines(path, "expected a table of folds, as 'clops-sweep data folds' writes it")
    if len(lines) < 2:
        raise UsageError(f"folds: {shorten(path)}: has no rows; expected the columns {', '.join(TITLES)}")
    titles = [title.strip() for title in lines[0][1]]
    positions = [place_of(f"folds: {shorten(path)}", title, titles, len(titles)) for title in TITLES]
    folds_of_seeds: dict[int, dict[str, int]] = {}
    for number, cells in lines[1:]:
        where = f"folds: {shorten(path)}, line {number}"
        if len(cells) < len(titles):
            raise UsageError(f"{where}: has {len(cells)} cells; expected {len(titles)}")
        person, fold, split_seed = (checks.identifier("folds", cells[position]) for position in positions)
        for title, cell in (("fold", fold), ("split_seed", split_seed)):
            if not (cell.isascii() and cell.isdigit()) or (title == "fold" and int(cell) == 0):
                least = 1 if title == "fold" else 0
                raise UsageError(f"{where}, {title}: expected a whole number from {least}, not {shown(cell)}")
        folds = folds_of_seeds.setdefault(int(split_seed), {})
        other = folds.setdefault(person, int(fold))
        if other != int(fold):
            raise UsageError(f"{where}: {shown(person)} is in fold {fold} and in fold {other}; expected one fold")
    return folds_of_seeds
