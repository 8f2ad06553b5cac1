"""Difficulty and similarity of tasks from the area s under their instances' beta, and the curriculum that follows.

Loads no matplotlib, torch or Ray. Kiyasseh, Zhu and Clifton (CLOPS), "Validation of Interpretation of Task-Instance
Parameters"; the formulas are those by which a sweep orders tasks (`clops_sweep.learning.difficulty`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.learning.difficulty import chain, hellinger_similarity

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TaskGaussians:
    """A Gaussian fitted to the s of each task of one run: maximum likelihood, so n in the variance's denominator.

    `tasks` in the order of training; `mean`, `sd` and `n` have one entry per task. s has the unit of epochs.
    """

    tasks: tuple[str, ...]
    mean: Floats
    sd: Floats
    n: npt.NDArray[np.int64]

    @property
    def difficulty(self) -> Floats:
        """1 / mean of s: the higher, the harder."""
        return 1 / self.mean


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
    """Fits every task of one run.

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
    return TaskGaussians(
        tasks,
        np.array([v.mean() for v in values]),
        np.array([v.std() for v in values]),
        np.array([v.size for v in values], dtype=np.int64),
    )


def similarity_matrix(gaussians: TaskGaussians) -> Floats:
    """Similarities of all pairs of tasks, shape (tasks, tasks)."""
    pairs = list(zip(gaussians.mean, gaussians.sd, strict=True))
    return np.array([[hellinger_similarity(*a, *b) for b in pairs] for a in pairs])


def task_similarity(instances: pd.DataFrame, runs: Sequence[str] | None = None) -> TaskSimilarity:
    """Similarity of tasks and the curriculum: from the easiest task along the most similar ones.

    The anti-curriculum starts at the hardest. Similarities and means are averaged over runs before the chain is made.

    Args:
        instances: rows of the table `instances`: columns `run_id`, `task`, `s`.
        runs: which runs to average over; default: all that have an s.

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
    if len({fit.tasks for fit in fits}) > 1:
        raise ValueError("the runs have different tasks, or the same in a different order")
    matrix = np.mean([similarity_matrix(fit) for fit in fits], axis=0)
    mean = np.mean([fit.mean for fit in fits], axis=0)
    easiest, hardest = int(np.argmax(mean)), int(np.argmin(mean))
    return TaskSimilarity(fits[0].tasks, matrix, mean, chain(matrix, easiest), chain(matrix, hardest), len(fits))
