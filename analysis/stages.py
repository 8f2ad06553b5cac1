"""The stages of a run: after each, it has a model that was trained on further tasks."""

from __future__ import annotations

from clops_sweep.store.run_store import RunStore


def has_update(store: RunStore, run_id: str) -> bool:
    """Return whether a finished run has a model before its last task, with which the one after it can be compared.

    A run on a single task has none, nor has one that was trained on all tasks at once.
    """
    stages = store.read("r_matrix", run_id, ["trained_on"])["trained_on"]
    return stages.nunique() > 1
