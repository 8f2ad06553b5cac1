"""The training instances of one run: which were hard, stored, replayed; and the tracing of one of them."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

PAGE = 25
"""Instances of a page."""

COLUMNS = ("instance", "task", "label", "patient", "s", "stored", "times_replayed")


@dataclass(frozen=True)
class InstancesTable:
    """A page of instances: `rows` have `COLUMNS`. `at` is the page, from 1, of `pages`; `total` counts instances."""

    rows: pd.DataFrame
    tasks: tuple[str, ...]
    total: int
    at: int
    pages: int


def instances_table(rows: pd.DataFrame, *, task: str = "", sort: str = "s", at: int = 1) -> InstancesTable:
    """A page of the instances of a run.

    Args:
        rows: rows of the store's table `instances`, of one run.
        task: of which task; all where it is none of theirs.
        sort: one of `COLUMNS`, with a minus before it for the highest first; the hardest first where it is none.
        at: the page, from 1; the last where there are not so many.
    """
    tasks = tuple(map(str, dict.fromkeys(rows["task"])))
    chosen = rows[rows["task"] == task] if task in tasks else rows
    column = sort.removeprefix("-")
    column, falling = (column, sort.startswith("-")) if column in COLUMNS else ("s", False)
    ordered = chosen.sort_values([column, "instance"], ascending=[not falling, True], na_position="last", kind="stable")
    pages = max(1, -(-len(ordered) // PAGE))
    at = min(max(at, 1), pages)
    return InstancesTable(ordered.iloc[(at - 1) * PAGE : at * PAGE][list(COLUMNS)], tasks, len(ordered), at, pages)
