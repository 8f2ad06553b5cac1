"""Task orders that follow from the difficulty found in an earlier run."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from clops_sweep.experiment.config import BY_DIFFICULTY, RunConfig
from clops_sweep.learning.metrics.difficulty import TaskDistribution, curriculum
from clops_sweep.store.run_store import RunStore


def source_config(config: RunConfig) -> RunConfig:
    """Return the config of the run whose s determines a task order by difficulty.

    It is CLOPS on all tasks with the same settings and patient split, seed 0, the scenario's task order and storage by
    s. All seeds share its order.
    """
    order = "top" if config.storage_order == "random" else config.storage_order
    whole = config.replace(strategy="clops", task_order="sequential", storage_order=order, first_tasks=None)
    return whole.replace(seed=0, weight_seed=None)


def orders_by_difficulty(
    configs: Iterable[RunConfig], store: RunStore, data_hash: Callable[[RunConfig], str | None]
) -> dict[RunConfig, RunConfig | None]:
    """Map each config with a task order by difficulty to the config with the resulting permutation.

    The permutation is part of the run's identity. The value is None while the source run (`source_config`) is pending.

    Args:
        configs: any configs; those with other task orders are skipped.
        store: the store with the finished runs.
        data_hash: returns the content hash of a config's data, None if they are not prepared.
    """
    wanted = [config for config in configs if config.task_order in BY_DIFFICULTY]
    statuses = store.statuses() if wanted else {}
    known: dict[RunConfig, list[TaskDistribution] | None] = {}
    resolved: dict[RunConfig, RunConfig | None] = {}
    for config in wanted:
        source = source_config(config)
        if source not in known:
            content = data_hash(source)
            run_id = "" if content is None else source.run_id(content)
            known[source] = _distributions(store, run_id) if statuses.get(run_id) == "finished" else None
        tasks = known[source]
        resolved[config] = None
        if tasks is not None:
            order = curriculum(tasks, easiest_first=config.task_order == "curriculum")
            resolved[config] = config.replace(task_order=order)
    return resolved


def _distributions(store: RunStore, run_id: str) -> list[TaskDistribution]:
    """Return the distribution of s in each task of a run, in training order."""
    instances = store.read("instances", [run_id])
    return [TaskDistribution.of(np.asarray(group["s"])) for _, group in instances.groupby("task", sort=False)]
