"""Titles of tasks: the names of their classes, leads or terms instead of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios.tasks import Scenario, Task
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import BY_DIFFICULTY, RunConfig
from clops_sweep.experiment.fields import OF_TASKS, any_replicate
from clops_sweep.experiment.tasks import built_tasks, scenario_of

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
        self._frames = {of_data.data_hash: of_data for of_data in frames if isinstance(of_data, FrameSet)}
        self._found: dict[tuple[str, str], Mapping[str, str]] = {}
        self._classes: dict[tuple[object, ...], tuple[int, ...]] = {}
        self._built: dict[tuple[object, ...], Scenario | None] = {}

    def of(self, experiment: Experiment, cell: int) -> Mapping[str, str]:
        """Return the titles of the tasks of a cell's runs by name; empty if unknown."""
        frames = self.frames_of(experiment, cell)
        if frames is None:
            return {}
        config = experiment.cells[cell].config
        key = frames.data_hash, repr(any_replicate(config))
        if key not in self._found:
            self._found[key] = task_titles(frames, config)
        return self._found[key]

    def classes_per_task(self, experiment: Experiment, cell: int) -> tuple[int, ...]:
        """Return the number of classes in the training set of each task of a cell's runs; empty if unknown."""
        frames = self.frames_of(experiment, cell)
        if frames is None:
            return ()
        config = experiment.cells[cell].config
        key = frames.data_hash, *(repr(getattr(config, name)) for name in OF_TASKS)
        if key not in self._classes:
            tasks = _tasks(frames, config)
            self._classes[key] = tuple(_class_count(frames, task.train.rows) for task in tasks)
        return self._classes[key]

    def frames_of(self, experiment: Experiment, cell: int) -> FrameSet | None:
        """Return the frames that runs of a cell were computed on; None if they are not prepared here."""
        return next(iter(self.every_frames_of(experiment, cell)), None)

    def built(self, frames: FrameSet, config: RunConfig) -> Scenario | None:
        """Return the tasks of a config in the order of training; None if they cannot be built here.

        An order that follows from an earlier run is replaced by the natural one.
        """
        if config.task_order in BY_DIFFICULTY:
            config = config.model_copy(update={"task_order": "sequential", "first_tasks": None})
        key = frames.data_hash, *(repr(getattr(config, name)) for name in (*OF_TASKS, "task_order"))
        if key not in self._built:
            try:
                self._built[key] = built_tasks(config, frames)
            except (UsageError, KeyError):  # tasks that cannot be built here were built where the run took place
                self._built[key] = None
        return self._built[key]

    def every_frames_of(self, experiment: Experiment, cell: int) -> list[FrameSet]:
        """Return the frames of each patient split of a cell's runs that are prepared here."""
        hashes = experiment.data_hashes.get(cell, ())
        return [self._frames[data_hash] for data_hash in hashes if data_hash in self._frames]

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
    tasks = _tasks(frames, config)
    times = Counter(task.title for task in tasks)
    papers = DATASET_OF_SCENARIO.get(config.scenario) == config.dataset
    titles = {}
    for task in tasks:
        both = (papers or times[task.title] > 1) and task.title and not task.title.startswith(task.name)
        titles[task.name] = f"{task.name}: {task.title}" if both else task.title or task.name
    return titles


def _tasks(frames: FrameSet, config: RunConfig) -> tuple[Task, ...]:
    """Return all tasks of a config; none if its scenario is not registered or does not fit the frames."""
    every = config.model_copy(update={"task_order": "sequential", "first_tasks": None})
    try:
        return scenario_of(every, frames).tasks
    except (UsageError, KeyError):  # tasks that cannot be built here were built where the run took place
        return ()


def _class_count(frames: FrameSet, rows: npt.NDArray[np.generic]) -> int:
    labels = frames.labels[rows]
    if frames.multi_label:
        return int(labels.any(axis=0).sum())
    return len(np.unique(labels))
