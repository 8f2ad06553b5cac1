"""Which rows of an experiment were trained in an order by difficulty, and the run whose s that order comes from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.learning.metrics.difficulty import TaskDistribution, curriculum
from clops_sweep.planning.curriculum import source_config
from clops_sweep.store.run_store import RunStore

from .collect import Experiment
from .selection import cell_name
from .statistics import split_of, splits_of


@dataclass(frozen=True)
class OrdersByDifficulty:
    """One run that decided orders of tasks, its rows of the table `instances`, and those orders.

    `orders` maps the name of a configuration to its tasks in the order in which it was trained on them.
    """

    run_id: str
    instances: pd.DataFrame
    orders: dict[str, tuple[str, ...]]

    def renamed(self, titles: Mapping[str, str]) -> OrdersByDifficulty:
        """The same with titles in the place of tasks' names, as far as there are titles."""
        instances = self.instances.assign(task=self.instances["task"].map(lambda task: titles.get(task, task)))
        orders = {name: tuple(titles.get(task, task) for task in order) for name, order in self.orders.items()}
        return OrdersByDifficulty(self.run_id, instances, orders)


def orders_by_difficulty(experiment: Experiment, store: RunStore) -> OrdersByDifficulty | None:
    """The first run that decided the order of some configuration with finished runs, and all orders it decided.

    A configuration holds the order that came out, not that it did: it counts as one by difficulty if the run that a
    sweep would ask (`clops_sweep.planning.curriculum.source_config`) is in the store and gives this very order, from
    the easiest or from the hardest task. None where there is no such configuration.
    """
    found: dict[str, OrdersByDifficulty | None] = {}
    for name, order, run_id in _ordered(experiment):
        if run_id not in found and not any(source and source.orders for source in found.values()):
            found[run_id] = _read(store, run_id)
        source = found.get(run_id)
        if source is None:
            continue
        tasks = tuple(str(task) for task in dict.fromkeys(source.instances["task"]))
        groups = [source.instances.loc[source.instances["task"] == task, "s"] for task in tasks]
        distributions = [TaskDistribution.of(np.asarray(s)) for s in groups]
        if order in (curriculum(distributions), curriculum(distributions, easiest_first=False)):
            source.orders[name] = tuple(tasks[position] for position in order)
    return next((source for source in found.values() if source is not None and source.orders), None)


def orders_in_words(orders: dict[str, tuple[str, ...]]) -> str:
    """Every order once, with the configurations that were trained in it."""
    names: dict[Sequence[str], list[str]] = {}
    for name, order in orders.items():
        names.setdefault(order, []).append(f'"{name}"')
    return "; ".join(f"{' and '.join(which)}: {', '.join(order)}" for order, which in names.items())


def _ordered(experiment: Experiment) -> Iterator[tuple[str, tuple[int, ...], str]]:
    """Configurations trained in a permutation of their own: name, permutation, the run that may have decided it.

    Patient splits have frames of their own, and so orders of their own.
    """
    finished = experiment.runs[experiment.runs["status"] == "finished"].drop_duplicates(["cell", "split_seed", "split"])
    several = len(set(splits_of(finished))) > 1
    columns = ("cell", "split_seed", "split", "task_order", "data_hash", "semantics_version")
    for index, seed, fold, order, data_hash, version in zip(*(finished.get(c, ()) for c in columns), strict=True):
        split = split_of(fold, seed)
        cell = experiment.cells[index]
        asked = cell.config.task_order
        if isinstance(asked, tuple) and order == "sequential":  # that run was asked for under its shorter name
            order = json.dumps(list(range(len(asked))))
        if not str(order).startswith("["):
            continue
        name = (cell_name(cell) or experiment.name) + (f" (patient split {split})" if several else "")
        try:
            source = source_config(
                cell.config.replace(split_seed=int(seed), split=fold if isinstance(fold, str) else None)
            )
        except UsageError:  # of a plug-in that is not known here
            continue
        yield name, tuple(json.loads(order)), source.run_id(str(data_hash), int(version))


def _read(store: RunStore, run_id: str) -> OrdersByDifficulty | None:
    instances = store.read("instances", [run_id])
    if instances.empty or instances["s"].isna().any():
        return None
    return OrdersByDifficulty(run_id, instances, {})
