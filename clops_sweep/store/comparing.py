"""Comparison of the numbers of one run in two stores, or in two parts of a store."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from clops_sweep.experiment.columns import PHASES, RESULTS
from clops_sweep.store.parts import Part, owners_of, sorted_by_key
from clops_sweep.store.stored_parts import StoredParts

NUMBERS = ("run_id", *(name for name in RESULTS if name not in ("seconds", "cpu_seconds", *PHASES)))
"""Columns of `runs` that are equal whenever the same run is computed again."""


def with_other_numbers(stored: StoredParts, parts: Sequence[Part]) -> dict[str, set[str]]:
    """Return the finished runs of each part that are read from another part, where they have other numbers.

    Args:
        stored: all parts of the store.
        parts: its live parts.

    Returns:
        Runs by the name of the part; only parts with such runs.
    """
    owners = owners_of(parts)
    schema = stored.schema("runs", parts)
    differing: dict[str, set[str]] = {}
    for part in parts:
        of_owners: dict[str, set[str]] = {}
        for run_id in part.finished:
            owner = owners[run_id].name
            if owner != part.name:
                of_owners.setdefault(owner, set()).add(run_id)
        for owner, run_ids in of_owners.items():
            ours = stored.read_part("runs", part.name, schema, NUMBERS, run_ids)
            theirs = stored.read_part("runs", owner, schema, NUMBERS, run_ids)
            if same_rows(sorted_by_key(ours), sorted_by_key(theirs)):
                continue
            for run_id in run_ids:
                one = ours.filter(pc.equal(ours["run_id"], run_id))
                other = theirs.filter(pc.equal(theirs["run_id"], run_id))
                if not same_rows(one, other):
                    differing.setdefault(part.name, set()).add(run_id)
    return differing


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Return whether two tables have equal values in equal order; nan equals nan, and a missing column null."""
    if one.num_rows != other.num_rows:
        return False
    names = frozenset(one.column_names)  # pyarrow makes a new list at each call
    names_of_other = frozenset(other.column_names)
    for name in names | names_of_other:
        ours = one[name] if name in names else None
        theirs = other[name] if name in names_of_other else None
        if not _same(ours, theirs):
            return False
    return True


def _same(one: pa.ChunkedArray | None, other: pa.ChunkedArray | None) -> bool:
    """Return whether two columns have equal values; None is a missing column."""
    if one is None or other is None:
        present = one or other
        return present is None or present.null_count == len(present)
    if one.type != other.type:
        other = other.cast(one.type)
    if one.equals(other):
        return True
    if pa.types.is_list(one.type):
        have_equal_lengths = _same(pc.list_value_length(one), pc.list_value_length(other))
        return have_equal_lengths and _same(pc.list_flatten(one), pc.list_flatten(other))
    if not pa.types.is_floating(one.type) or len(one) != len(other):
        return False
    is_nan = pc.fill_null(pc.is_nan(one), False)
    is_nan_in_other = pc.fill_null(pc.is_nan(other), False)
    if not is_nan.equals(is_nan_in_other):
        return False
    return bool(pc.if_else(is_nan, 0, one).equals(pc.if_else(is_nan, 0, other)))
