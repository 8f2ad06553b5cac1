"""Titles of tasks: the names of their classes, leads or terms instead of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import any_replicate
from clops_sweep.experiment.tasks import scenario_of

from ..collect import Experiment
from ..published import DATASET_OF_SCENARIO
from .frames import Frames

_COLUMNS = ("task", "training_task")


class TaskTitles:
    """Titles of the tasks of runs, from the prepared frames that the runs were computed on.

    Args:
        frames: the available prepared frames. Tasks of other data keep their names in the store.
    """

    def __init__(self, frames: Sequence[Frames] = ()) -> None:
        self._frames = {it.data_hash: it for it in frames if isinstance(it, FrameSet)}
        self._found: dict[tuple[str, str], Mapping[str, str]] = {}

    def of(self, experiment: Experiment, cell: int) -> Mapping[str, str]:
        """Return the titles of the tasks of a cell's runs by name; empty if unknown."""
        runs = experiment.runs
        hashes = runs.loc[runs["cell"] == cell, "data_hash"].dropna().unique() if "data_hash" in runs else ()
        config = experiment.cells[cell].config
        for data_hash in map(str, hashes):
            if data_hash in self._frames:
                key = data_hash, repr(any_replicate(config))
                if key not in self._found:
                    self._found[key] = task_titles(self._frames[data_hash], config)
                return self._found[key]
        return {}

    def named(self, rows: pd.DataFrame, experiment: Experiment, cell: int) -> pd.DataFrame:
        """Replace task names by titles in rows of a table for runs of a cell."""
        titles = self.of(experiment, cell)
        if not titles:
            return rows
        return rows.assign(
            **{name: rows[name].map(lambda task: titles.get(task, task)) for name in _COLUMNS if name in rows}
        )


def task_titles(frames: FrameSet, config: RunConfig) -> dict[str, str]:
    """Return the titles of the tasks of a config by name.

    On the paper's own data, and if two titles would be equal, the task's name precedes the title: "0-1: AFIB / AFL".
    Empty if the scenario is not registered or does not fit the frames.
    """
    try:
        tasks = scenario_of(config.model_copy(update={"task_order": "sequential", "first_tasks": None}), frames).tasks
    except (UsageError, KeyError):  # tasks that cannot be built here were built where the run took place
        return {}
    times = Counter(task.title for task in tasks)
    papers = DATASET_OF_SCENARIO.get(config.scenario) == config.dataset
    titles = {}
    for task in tasks:
        both = (papers or times[task.title] > 1) and task.title and not task.title.startswith(task.name)
        titles[task.name] = f"{task.name}: {task.title}" if both else task.title or task.name
    return titles
