"""Conditions that select exactly some runs of a store, as `--where` takes them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clops_sweep.experiment.columns import CONFIG
from clops_sweep.experiment.fields import REPLICATES, is_missing
from clops_sweep.experiment.plugins.options import OPTIONS

_MISSING = -1
"""Code of a value that is missing."""


def columns_of_conditions() -> list[str]:
    """Return the columns of `runs` that a condition may name: those in which runs are most likely to differ first."""
    return list(dict.fromkeys(("run_id", *REPLICATES, *CONFIG, *OPTIONS)))


@dataclass(frozen=True)
class _Column:
    """A column with a code for each value.

    Attributes:
        codes: int64 [runs], positions in `literals`; -1 where a value is missing.
        literals: the values as they stand in a condition, each once.
    """

    codes: npt.NDArray[np.int64]
    literals: tuple[str, ...]

    @classmethod
    def of(cls, values: Sequence[Any]) -> _Column:
        """Return the column of some values."""
        code_of: dict[str, int] = {}
        codes = np.full(len(values), _MISSING)
        for position, value in enumerate(values):
            if not is_missing(value):
                codes[position] = code_of.setdefault(literal(value), len(code_of))
        return cls(codes, tuple(code_of))

    @classmethod
    def of_arrow(cls, array: pa.ChunkedArray) -> _Column:
        """Return a column of a store: each value is converted once, however many runs have it."""
        encoded = array.combine_chunks().dictionary_encode()
        distinct = cls.of(encoded.dictionary.to_pylist())
        positions = encoded.indices.fill_null(_MISSING).to_numpy(zero_copy_only=False)
        of_value = np.append(distinct.codes, _MISSING)  # position -1 is a null
        return cls(of_value[positions], distinct.literals)

    def some(self, codes: npt.NDArray[np.int64]) -> list[str]:
        """Return the literals of some codes."""
        return [self.literals[code] for code in codes.tolist()]


class CodedRuns:
    """The runs of a store on one data set and scenario, with the columns that a condition may name.

    Args:
        columns: the columns by name, `run_id` among them.
    """

    def __init__(self, columns: Mapping[str, pa.ChunkedArray]) -> None:
        self._columns = columns
        self._coded: dict[str, _Column] = {}
        self._position_of = {run_id: position for position, run_id in enumerate(columns["run_id"].to_pylist())}

    def __len__(self) -> int:
        return len(self._position_of)

    def positions(self, run_ids: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the positions of some runs, ascending; those that are not there are left out."""
        known = {self._position_of[run_id] for run_id in run_ids if run_id in self._position_of}
        return np.array(sorted(known), np.int64)

    def column(self, name: str) -> _Column:
        """Return a column; all its values are missing if no run has it."""
        if name not in self._coded:
            array = self._columns.get(name)
            self._coded[name] = _Column.of([None] * len(self)) if array is None else _Column.of_arrow(array)
        return self._coded[name]


def exact_condition(run_ids: Collection[str], runs: CodedRuns, sides: Sequence[str], places: Sequence[str]) -> str:
    """Return a condition that selects some runs and no others; empty if fields cannot tell them apart.

    Args:
        run_ids: the ids of the runs.
        runs: all runs on their data set and scenario.
        sides: the fields that the side of a contrast names, which are used first.
        places: the fields that its places name. Without a condition on all runs, each place has its own.
    """
    ours = runs.positions(run_ids)
    if len(ours) < len(frozenset(run_ids)):
        return ""
    is_other = np.ones(len(runs), bool)
    is_other[ours] = False
    others = np.flatnonzero(is_other)
    names = list(dict.fromkeys((*sides, *places, *columns_of_conditions()[1:])))
    together = _telling(runs, ours, others, names, sides)
    if together or not places:
        return together
    codes = np.stack([runs.column(name).codes[ours] for name in places])
    _, place_of_run = np.unique(codes, axis=1, return_inverse=True)
    conditions = []
    for place in dict.fromkeys(place_of_run.ravel().tolist()):
        of_place = ours[place_of_run.ravel() == place]
        conditions.append(_telling(runs, of_place, others, names, sides))
    return " or ".join(f"({condition})" for condition in conditions) if all(conditions) else ""


def _telling(
    runs: CodedRuns,
    ours: npt.NDArray[np.int64],
    others: npt.NDArray[np.int64],
    names: Sequence[str],
    always: Sequence[str],
) -> str:
    """Return the condition that runs have one of our values in some fields, which no other run meets; or empty.

    Fields that are always named say what the runs are; of the rest, those are named that exclude a run.
    """
    conditions = []
    for name in names:
        column = runs.column(name)
        values = column.codes[ours]
        of_others = column.codes[others]
        if (values == _MISSING).all():
            theirs = np.unique(of_others[of_others != _MISSING])
            others = others[of_others == _MISSING]
            if len(theirs):
                conditions.append(f"not {one_of(name, _also_as_config(name, column.some(theirs)))}")
            continue
        if (values == _MISSING).any():
            continue  # a condition cannot ask for fields that are not set
        known = np.unique(values)
        left = others[np.isin(of_others, known)]
        if len(left) < len(others) or name in always:
            conditions.append(one_of(name, _also_as_config(name, column.some(known))))
            others = left
    if len(others):
        return ""
    return " and ".join(conditions)


def _also_as_config(name: str, literals: Iterable[str]) -> list[str]:
    """Return literals of stored values, and of JSON text the value itself, which a config has: "1" and 1."""
    values = list(literals)
    if CONFIG.get(name) is str:
        for text in tuple(values):
            with suppress(ValueError):  # the name of an order, for example
                value = json.loads(json.loads(text))
                values.append(json.dumps(value))
    return values


def condition_of(settings: Sequence[Mapping[str, Any]]) -> str:
    """Return the condition that fields have one of the values in some settings; None cannot be asked for."""
    parts = []
    for name in settings[0]:
        values = [of_place[name] for of_place in settings if of_place[name] is not None]
        if values:
            parts.append(one_of(name, map(literal, values)))
    return " and ".join(parts) or "True"


def condition_of_ids(run_ids: Iterable[str]) -> str:
    """Return the condition that lists the ids of runs."""
    return one_of("run_id", map(literal, sorted(run_ids)))


def one_of(name: str, literals: Iterable[str]) -> str:
    """Return the condition that a field has one of some values, given as literals; numbers ascend, then texts."""
    values = sorted(set(literals), key=_order)
    return f"{name} == {values[0]}" if len(values) == 1 else f"{name} in [{', '.join(values)}]"


def _order(literal_of_value: str) -> tuple[bool, float, str]:
    """Return the key that sorts the literal of a value: numbers by value, before all others by their text."""
    try:
        return False, float(literal_of_value), literal_of_value
    except ValueError:
        return True, 0.0, literal_of_value


def literal(value: object) -> str:
    """Return a value as it stands in a condition."""
    return json.dumps(value) if isinstance(value, str | tuple | list) else repr(value)
