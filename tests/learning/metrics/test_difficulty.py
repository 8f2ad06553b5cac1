"""Difficulty, similarity and the curricula, against the Hellinger distance by quadrature and loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from clops_sweep.learning.metrics.difficulty import TaskDistribution, curriculum, similarity, similarity_matrix

gaussians = st.builds(TaskDistribution, st.floats(15, 25), st.floats(0.01, 2))


def test_the_fit_is_maximum_likelihood() -> None:
    values = [18.7, 18.9, 19.0, 18.2, 18.95]
    mean = sum(values) / 5
    variance = sum((value - mean) ** 2 for value in values) / 5
    task = TaskDistribution.of(values)
    assert task.mean == pytest.approx(mean, rel=1e-15)
    assert task.standard_deviation == pytest.approx(math.sqrt(variance), rel=1e-13)
    assert task.difficulty == pytest.approx(1 / mean, rel=1e-15)


@pytest.mark.parametrize(
    ("m0", "s0", "m1", "s1"), [(0, 1, 0, 1), (0, 1, 1, 1), (18.85, 0.1, 18.95, 0.05), (2, 0.3, 0, 2), (5, 1, 0, 0.5)]
)
def test_similarity_is_one_minus_the_hellinger_distance_of_the_densities(
    m0: float, s0: float, m1: float, s1: float
) -> None:
    low, high = min(m0 - 12 * s0, m1 - 12 * s1), max(m0 + 12 * s0, m1 + 12 * s1)
    affinity, _ = quad(
        lambda x: math.sqrt(norm.pdf(x, m0, s0) * norm.pdf(x, m1, s1)), low, high, points=[m0, m1], limit=200
    )
    expected = 1 - math.sqrt(max(0.0, 1 - affinity))
    assert similarity(TaskDistribution(m0, s0), TaskDistribution(m1, s1)) == pytest.approx(expected, abs=1e-6)


@settings(max_examples=200)
@given(gaussians, gaussians)
def test_similarity_is_symmetric_within_bounds_and_follows_its_formula(
    one: TaskDistribution, other: TaskDistribution
) -> None:
    found = similarity(one, other)
    assert found == similarity(other, one)
    assert 0 <= found <= 1
    assert similarity(one, one) == pytest.approx(1, abs=1e-7)
    sums = one.standard_deviation**2 + other.standard_deviation**2
    affinity = math.sqrt(2 * one.standard_deviation * other.standard_deviation / sums) * math.exp(
        -((one.mean - other.mean) ** 2) / (4 * sums)
    )
    assert found == pytest.approx(1 - math.sqrt(max(0.0, 1 - affinity)), abs=1e-7)


def test_tasks_that_do_not_vary() -> None:
    point = TaskDistribution(19.0, 0.0)
    assert similarity(point, point) == 1
    assert similarity(point, TaskDistribution(18.0, 0.0)) == 0
    assert similarity(point, TaskDistribution(19.0, 0.1)) == 0


@settings(max_examples=100)
@given(st.lists(gaussians, min_size=1, max_size=7), st.booleans())
def test_a_curriculum_chains_the_most_similar(tasks: list[TaskDistribution], easiest_first: bool) -> None:
    order = curriculum(tasks, easiest_first=easiest_first)
    assert sorted(order) == list(range(len(tasks)))
    means = [task.mean for task in tasks]
    assert means[order[0]] == (max(means) if easiest_first else min(means))
    for place in range(1, len(order)):
        last, taken = tasks[order[place - 1]], tasks[order[place]]
        for candidate in order[place:]:
            assert similarity(last, taken) >= similarity(last, tasks[candidate])


def test_the_first_task_of_equals_is_the_one_that_comes_first() -> None:
    assert curriculum([TaskDistribution(19, 0.1)] * 4) == (0, 1, 2, 3)


def test_the_matrix_holds_every_pair() -> None:
    tasks = [TaskDistribution(18 + 0.1 * k, 0.1 + 0.05 * k) for k in range(4)]
    matrix = similarity_matrix(tasks)
    assert matrix.shape == (4, 4)
    assert np.array_equal(matrix, matrix.T)
    assert np.diag(matrix) == pytest.approx(np.ones(4), abs=1e-7)
    assert matrix[1, 3] == similarity(tasks[1], tasks[3])
