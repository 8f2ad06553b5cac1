"""How difficult tasks are and how alike, from the s of their instances, and the curricula that follow.

NumPy alone, so that a plan can be made without torch.
"""

from __future__ import annotations

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
        """The fit to values of s, [n]."""
        values = np.asarray(s, dtype=np.float64)
        return cls(float(values.mean()), float(values.std()))

    @property
    def difficulty(self) -> float:
        """1 / mean: an instance that is easy to learn has a large area under its beta (CLOPS, section 6.5)."""
        return 1 / self.mean


def similarity(one: TaskDistribution, other: TaskDistribution) -> float:
    """S = 1 - D_H, in [0, 1], with the Hellinger distance D_H of two Gaussians.

        D_H = sqrt(1 - sqrt(2 s0 s1 / (s0^2 + s1^2)) exp(-(m0 - m1)^2 / (4 (s0^2 + s1^2)))).

    The paper prints products where the distance has sums; equal Gaussians would then not be at distance 0. Two tasks
    whose s do not vary at all are alike exactly when their means are equal.
    """
    variances = one.standard_deviation**2 + other.standard_deviation**2
    if variances == 0:
        return float(one.mean == other.mean)
    ratio = 2 * one.standard_deviation * other.standard_deviation / variances
    affinity = np.sqrt(ratio) * np.exp(-((one.mean - other.mean) ** 2) / (4 * variances))
    return float(1 - np.sqrt(max(0.0, 1 - affinity)))


def similarity_matrix(tasks: Sequence[TaskDistribution]) -> NDArray[np.float64]:
    """S of every pair of tasks, [N, N]; symmetric, with ones on the diagonal."""
    return np.array([[similarity(one, other) for other in tasks] for one in tasks])


def curriculum(tasks: Sequence[TaskDistribution], *, easiest_first: bool = True) -> tuple[int, ...]:
    """An order of the tasks: the easiest (or the hardest) first, then always the one most similar to the last.

    Ties go to the lower position.

    Returns:
        A permutation of 0 .. N - 1.
    """
    similarities = similarity_matrix(tasks)
    difficulties = np.array([task.difficulty for task in tasks])
    order = [int(np.argmin(difficulties) if easiest_first else np.argmax(difficulties))]
    while len(order) < len(tasks):
        left = [place for place in range(len(tasks)) if place not in order]
        order.append(max(left, key=lambda place: (similarities[order[-1], place], -place)))
    return tuple(order)
