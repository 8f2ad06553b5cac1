"""Conditions that select exactly some runs of a store, as `--where` takes them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from clops_sweep.experiment.columns import CONFIG
from clops_sweep.experiment.fields import REPLICATES, is_missing
from clops_sweep.experiment.plugins.options import OPTIONS

Row = Mapping[str, Any]
"""A row of `runs`: `run_id`, config fields and options."""


def columns_of_conditions() -> list[str]:
    """Return the columns of `runs` that a condition may name: those in which runs are most likely to differ first."""
    return list(dict.fromkeys(("run_id", *REPLICATES, *CONFIG, *OPTIONS)))


def exact_condition(run_ids: Collection[str], rows: Sequence[Row], sides: Sequence[str], places: Sequence[str]) -> str:
    """Return a condition that selects some runs and no others of the rows; empty if fields cannot tell them apart.

    Args:
        run_ids: the ids of the runs.
        rows: the rows of all runs on their data set and scenario.
        sides: the fields that the side of a contrast names, which are used first.
        places: the fields that its places name. Without a condition on all runs, each place has its own.
    """
    wanted = frozenset(run_ids)
    ours = [row for row in rows if row["run_id"] in wanted]
    others = [row for row in rows if row["run_id"] not in wanted]
    names = list(dict.fromkeys((*sides, *places, *columns_of_conditions()[1:])))
    if len(ours) < len(wanted):
        return ""
    together = _telling(ours, others, names, sides)
    if together or not places:
        return together
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in ours:
        groups.setdefault(tuple(literal(row.get(name)) for name in places), []).append(row)
    conditions = [_telling(of_place, others, names, sides) for of_place in groups.values()]
    return " or ".join(f"({condition})" for condition in conditions) if all(conditions) else ""


def _telling(ours: Sequence[Row], others: Sequence[Row], names: Sequence[str], always: Sequence[str]) -> str:
    """Return the condition that rows have one of our values in some fields, which no other row meets; or empty.

    Fields that are always named say what the runs are; of the rest, those are named that exclude a row.
    """
    conditions = []
    for name in names:
        values = [row.get(name) for row in ours]
        if all(map(is_missing, values)):
            theirs = dict.fromkeys(literal(row[name]) for row in others if not is_missing(row.get(name)))
            others = [row for row in others if is_missing(row.get(name))]
            if theirs:
                conditions.append(f"not {one_of(name, _also_as_config(name, theirs))}")
            continue
        if any(map(is_missing, values)):
            continue  # a condition cannot ask for fields that are not set
        known = dict.fromkeys(map(literal, values))
        left = [row for row in others if not is_missing(row.get(name)) and literal(row[name]) in known]
        if len(left) < len(others) or name in always:
            conditions.append(one_of(name, _also_as_config(name, known)))
            others = left
    if others:
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
