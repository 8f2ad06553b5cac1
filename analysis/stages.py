"""The stages of a run: after each, it has a model that was trained on further tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clops_sweep.experiment.columns import origin_of
from clops_sweep.store.run_store import RunStore


def has_update(store: RunStore, run_id: str) -> bool:
    """Return whether a finished run has a model before its last task, with which the one after it can be compared.

    A run on a single task has none, nor has one that was trained on all tasks at once.
    """
    stages = store.read("r_matrix", run_id, ["trained_on"])["trained_on"]
    return stages.nunique() > 1


def stored_origin(store: RunStore, row: Mapping[str, Any]) -> str | None:
    """Return the id of the run that a run began from, with which its update report compares it.

    Args:
        store: the store.
        row: the row of the run in the table `runs`.

    Returns:
        None without such a run, or if its model or its predictions are missing.
    """
    origin = origin_of(row)
    if origin is None or origin not in store.predicted() or not store.models.has(origin, "last"):
        return None
    return origin
