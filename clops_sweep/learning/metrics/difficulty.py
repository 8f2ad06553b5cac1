"""Difficulty and similarity of tasks, from the s of their instances, and curricula.

Uses only NumPy, so that plans do not need torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class TaskDistribution:
    """N(mean, standard_deviation^2), fitted to the s of a task's instances by maximum likelihood."""

    mean: float
    standard_deviation: float

    @classmethod
    def of(cls, s: ArrayLike) -> TaskDistribution:
        """Return the fit to values of s, [n]."""
        values = np.asarray(s, dtype=np.float64)
        return cls(float(values.mean()), float(values.std()))

    @property
    def difficulty(self) -> float:
        """1 / mean: an instance that is easy to learn has a large area under its beta (CLOPS, section 6.5).

        Infinite if the area is 0, as after a single epoch.
        """
        return 1 / self.mean if self.mean else math.inf


def similarity(one: TaskDistribution, other: TaskDistribution) -> float:
    """Return S = 1 - D_H of two tasks, in [0, 1], with the Hellinger distance D_H of their Gaussians.

        D_H = sqrt(1 - sqrt(2 s0 s1 / (s0^2 + s1^2)) exp(-(m0 - m1)^2 / (4 (s0^2 + s1^2)))).

    The paper prints products instead of sums; equal Gaussians would then not have distance 0. A Gaussian without spread
    is a point, which is similar only to the same point.
    """
    variances = one.standard_deviation**2 + other.standard_deviation**2
    if variances == 0:
        return float(one.mean == other.mean)
    ratio = 2 * one.standard_deviation * other.standard_deviation / variances
    affinity = np.sqrt(ratio) * np.exp(-((one.mean - other.mean) ** 2) / (4 * variances))
    return float(1 - np.sqrt(max(0.0, 1 - affinity)))


def similarity_matrix(tasks: Sequence[TaskDistribution]) -> NDArray[np.float64]:
    """Return S of every pair of tasks, [N, N]; symmetric, with ones on the diagonal."""
    matrix = np.empty((len(tasks), len(tasks)))
    for row, one in enumerate(tasks):
        for column, other in enumerate(tasks):
            matrix[row, column] = similarity(one, other)
    return matrix


def chain(similarities: ArrayLike, start: int) -> tuple[int, ...]:
    """Return a greedy order of tasks: next comes the one most similar to the last; ties go to the lower index.

    Args:
        similarities: [N, N].
        start: the first task.

    Returns:
        A permutation of 0 .. N - 1.
    """
    matrix = np.asarray(similarities, dtype=np.float64)
    order = [start]
    while len(order) < len(matrix):
        last = order[-1]
        remaining = [task for task in range(len(matrix)) if task not in order]
        order.append(max(remaining, key=lambda task: (matrix[last, task], -task)))
    return tuple(order)


def curriculum(tasks: Sequence[TaskDistribution], *, easiest_first: bool = True) -> tuple[int, ...]:
    """Return an order of the tasks: a chain of similar tasks that starts at the easiest, or at the hardest.

    Returns:
        A permutation of 0 .. N - 1.
    """
    ease = [task.mean for task in tasks]
    start = int(np.argmax(ease) if easiest_first else np.argmin(ease))
    return chain(similarity_matrix(tasks), start)
