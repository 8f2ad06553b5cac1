"""Difficulty and similarity of the tasks of runs in the store, and the curriculum that follows.

Loads no matplotlib, torch or Ray. Kiyasseh, Zhu and Clifton (CLOPS), "Validation of Interpretation of Task-Instance
Parameters". Sweeps order tasks by the same computation (`clops_sweep.learning.metrics.difficulty`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.learning.metrics.difficulty import TaskDistribution, chain, similarity_matrix

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TaskGaussians:
    """A Gaussian fitted to the s of each task of one run.

    `tasks` are in training order; `fits` and `n`, the number of instances, have one entry per task. The unit of s is
    epochs.
    """

    tasks: tuple[str, ...]
    fits: tuple[TaskDistribution, ...]
    n: tuple[int, ...]


@dataclass(frozen=True)
class TaskSimilarity:
    """Similarities of all pairs of tasks, averaged over runs.

    `matrix` has shape (tasks, tasks), 1 on its diagonal. `mean` is the mean of s over runs, by task. `curriculum` and
    `anti_curriculum` hold positions in `tasks`, in the order of training. `n` counts the runs.
    """

    tasks: tuple[str, ...]
    matrix: Floats
    mean: Floats
    curriculum: tuple[int, ...]
    anti_curriculum: tuple[int, ...]
    n: int


def fit_gaussians(instances: pd.DataFrame) -> TaskGaussians:
    """Fit a Gaussian to the s of every task of one run.

    Args:
        instances: rows of the store's table `instances` of one run: columns `task` and `s`.

    Raises:
        ValueError: no row has an s, as in runs whose strategy has no beta.
    """
    known = instances[np.isfinite(instances["s"].to_numpy(dtype=float))]
    if known.empty:
        raise ValueError("no instance has an s: the strategy of this run learns no beta")
    tasks = tuple(str(task) for task in dict.fromkeys(known["task"]))
    values = [known.loc[known["task"] == task, "s"].to_numpy(dtype=float) for task in tasks]
    return TaskGaussians(tasks, tuple(map(TaskDistribution.of, values)), tuple(map(len, values)))


def task_similarity(instances: pd.DataFrame, runs: Sequence[str] | None = None) -> TaskSimilarity:
    """Similarity of tasks and the curriculum: from the easiest task along the most similar ones.

    The anti-curriculum starts at the hardest. Similarities and means are averaged over runs before the chain is made.

    Args:
        instances: rows of the table `instances`: columns `run_id`, `task`, `s`.
        runs: runs to average over; by default all that have an s.

    Raises:
        ValueError: no run has an s, or the runs have different tasks.
    """
    wanted = list(dict.fromkeys(instances["run_id"])) if runs is None else list(runs)
    fits = []
    for run_id in wanted:
        rows = instances[instances["run_id"] == run_id]
        if rows["s"].notna().any():
            fits.append(fit_gaussians(rows))
    if not fits:
        raise ValueError("no instance has an s: the strategy of these runs learns no beta")
    if len({gaussians.tasks for gaussians in fits}) > 1:
        raise ValueError("the runs have different tasks, or the same in a different order")
    matrix = np.mean([similarity_matrix(gaussians.fits) for gaussians in fits], axis=0)
    means = []
    for gaussians in fits:
        means.append([fit.mean for fit in gaussians.fits])
    mean = np.mean(means, axis=0)
    easiest, hardest = int(np.argmax(mean)), int(np.argmin(mean))
    return TaskSimilarity(fits[0].tasks, matrix, mean, chain(matrix, easiest), chain(matrix, hardest), len(fits))
