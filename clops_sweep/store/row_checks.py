"""What the program never writes into a row: refused where rows are read, so that no reader has to expect it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, get_args

import pyarrow as pa
import pyarrow.compute as pc

from clops_sweep.errors import UsageError, shown
from clops_sweep.store.part_names import Status
from clops_sweep.store.tables import TableName


class _Rule(NamedTuple):
    """What a column holds, and a function from the column to a mask of the rows that hold anything else."""

    expected: str
    wrong: Callable[[pa.ChunkedArray], pa.ChunkedArray]


def _one_of(*values: str) -> _Rule:
    return _Rule(" or ".join(values), lambda column: pc.invert(_is_any(column, values)))


def _is_any(column: pa.ChunkedArray, values: Sequence[str]) -> pa.ChunkedArray:
    """Where a column holds one of a few texts; `pyarrow.compute.is_in` takes an array, and making one loads pandas."""
    found = pc.not_equal(column, column)  # nowhere
    for value in values:
        found = pc.or_(found, pc.equal(column, value))
    return pc.fill_null(found, False)


def _whole(least: int) -> _Rule:
    """Positions and numbers of tasks, epochs and instances; readers make arrays of so many entries."""
    return _Rule(
        f"a whole number from {least} to {_MOST}",
        lambda column: pc.fill_null(pc.or_(pc.less(column, least), pc.greater(column, _MOST)), False),
    )


def _json(expected: str, is_right: Callable[[Any], bool]) -> _Rule:
    def is_wrong(text: str) -> bool:
        try:
            return not is_right(json.loads(text))
        except (ValueError, RecursionError):
            return True

    def wrong(column: pa.ChunkedArray) -> pa.ChunkedArray:
        found = [text for text in column.unique().to_pylist() if text not in (None, *_ORDERS) and is_wrong(text)]
        return _is_any(column, found)

    return _Rule(expected, wrong)


def _is_order(value: Any) -> bool:
    return type(value) is int or (isinstance(value, list) and all(type(it) is int for it in value))


def _is_grouping(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(group, list) and all(isinstance(it, str | int) for it in group) for group in value
    )


def _are_origins(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(origin, list) and len(origin) <= _ENTRIES and all(isinstance(it, str | None) for it in origin)
        for origin in value.values()
    )


_MOST = 10**9
_ENTRIES = 3
_ORDERS = ("sequential", "curriculum", "anti_curriculum")
_PRESENT = _Rule("a value", pc.is_null)

_RULES: Mapping[TableName, Mapping[str, _Rule]] = {
    "runs": {
        **dict.fromkeys(("dataset", "scenario", "strategy", "seed", "split_seed"), _PRESENT),
        "status": _one_of(*get_args(Status)),
        "task_order": _json("the name of an order or a list of whole numbers, as JSON", _is_order),
        "task_classes": _json("a list of lists of classes, as JSON", _is_grouping),
        "plugins": _json("an object with a file and two hashes for each plug-in, as JSON", _are_origins),
    },
    "r_matrix": {
        "split": _one_of("validation", "test"),
        "trained_on": _whole(1),
        "evaluated_on": _whole(1),
    },
    "curves": {"epoch": _whole(0)},
    "instances": {"instance": _whole(0), "times_replayed": _whole(0)},
    "predictions": {"trained_on": _whole(1), "evaluated_on": _whole(1), "instance": _whole(0)},
}


def check_rows(name: TableName, rows: pa.Table, results: str) -> None:
    """Sees that the rows of a table hold what the program writes, as far as other code relies on it.

    Args:
        name: the table's.
        rows: some of its rows; some of its columns, with `run_id`.
        results: the store, as messages call it.

    Raises:
        UsageError: a row holds something else; names the run, the column and the value.
    """
    for column in rows.column_names:
        rule = _RULES[name].get(column)
        if rule is None or not pc.any(wrong := rule.wrong(rows[column])).as_py():
            continue
        at = pc.index(wrong, True).as_py()
        value = shown(rows[column][at].as_py())
        raise UsageError(
            f"results {results}: run {rows['run_id'][at]}: {column} = {value} in table {name}; "
            f"expected {rule.expected}; clops-sweep never writes that: move the run's part away"
        )
