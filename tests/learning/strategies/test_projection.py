"""GEM's projection: feasible, identity without violated constraints, nearest; failures are reported."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clops_sweep.learning.strategies.projection import project, projected

MARGIN, REGULARIZATION = 0.5, 1e-3
Vector = NDArray[np.float64]


def random_problem(seed: int, past: int, size: int) -> tuple[Vector, Vector]:
    stream = np.random.default_rng(seed)
    return stream.standard_normal(size), stream.standard_normal((past, size))


def dual_by_enumeration(quadratic: Vector, linear: Vector, margin: float) -> Vector:
    """Return the best v of min 1/2 v'Pv + q'v, v >= margin, over all sets of entries at the margin."""
    count, best, lowest = len(linear), None, np.inf
    for held_count in range(count + 1):
        for held in combinations(range(count), held_count):
            free = [i for i in range(count) if i not in held]
            v = np.full(count, margin)
            if free:
                pull = linear[free] + quadratic[np.ix_(free, list(held))].sum(1) * margin
                v[free] = np.linalg.solve(quadratic[np.ix_(free, free)], -pull)
            value = 0.5 * v @ quadratic @ v + linear @ v
            if (v >= margin - 1e-12).all() and value < lowest:
                best, lowest = v, value
    return best


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(6, 12))
def test_without_margin_the_result_satisfies_every_constraint(seed: int, past: int, size: int) -> None:
    g, G = random_problem(seed, past, size)
    found = project(g, G, margin=0, regularization=0)
    assert found.solved
    assert found.violated == bool((G @ g < 0).any())
    assert (G @ found.gradient >= -1e-6).all()


@pytest.mark.parametrize("seed", range(10))
def test_no_feasible_vector_of_a_random_search_is_nearer(seed: int) -> None:
    g, G = random_problem(seed, 3, 6)
    found = project(g, G, margin=0, regularization=0)
    distance = np.linalg.norm(found.gradient - g)
    stream = np.random.default_rng(seed + 100)
    around = found.gradient + stream.standard_normal((20000, 6)) * stream.choice([1e-3, 1e-2, 0.1, 1.0], (20000, 1))
    anywhere = g + stream.standard_normal((20000, 6)) * (1 + distance)
    candidates = np.concatenate([around, anywhere])
    feasible = candidates[(candidates @ G.T >= 0).all(1)]
    assert len(feasible) > 100
    assert (np.linalg.norm(feasible - g, axis=1) >= distance - 1e-9).all()


def test_nothing_objects_so_nothing_changes() -> None:
    stream = np.random.default_rng(0)
    g = stream.standard_normal(8)
    G = np.stack([g + 0.1 * stream.standard_normal(8) for _ in range(4)])
    found = project(g, G)
    assert (found.violated, found.solved) == (False, True)
    assert np.array_equal(found.gradient, g)


def test_one_constraint_has_the_closed_form_of_a_gem() -> None:
    g, G = np.array([1.0, -2.0, 0.5]), np.array([[0.5, 1.0, 0.0]])
    found = project(g, G, margin=0, regularization=0)
    expected = g - (g @ G[0]) / (G[0] @ G[0]) * G[0]
    np.testing.assert_allclose(found.gradient, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_margin_and_regularisation_are_those_of_the_dual(seed: int, scale: float) -> None:
    g, G = random_problem(seed, 4, 9)
    g, G = g * scale, G * scale
    if (G @ g >= 0).all():
        g = -g
    found = project(g, G)
    v = dual_by_enumeration(G @ G.T + REGULARIZATION * np.eye(4), G @ g, MARGIN)
    assert found.solved
    np.testing.assert_allclose(found.gradient, G.T @ v + g, rtol=1e-6, atol=1e-6 * scale)
    assert (v >= MARGIN - 1e-12).all()


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_gradients_that_are_not_finite_are_a_failure_that_is_told(broken: float) -> None:
    g, G = random_problem(1, 2, 5)
    G[1, 3] = broken
    found = project(g, G)
    assert (found.violated, found.solved) == (True, False)
    assert np.array_equal(found.gradient, g)


def test_a_programme_without_a_unique_solution_is_a_failure_that_is_told() -> None:
    g = np.array([-1.0, 0.0, 0.0])
    G = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])  # equal rows: without regularisation P is singular
    found = project(g, G, margin=0, regularization=0)
    assert (found.violated, found.solved) == (True, False)
    assert np.array_equal(found.gradient, g)
    assert project(g, G).solved


def test_outcomes_of_tensors_say_what_happened() -> None:
    stream = np.random.default_rng(0)
    gradient = torch.from_numpy(stream.standard_normal(6))
    memory = -gradient[None] + 0.1 * torch.from_numpy(stream.standard_normal((2, 6)))
    found, outcomes = projected(gradient, memory)
    assert outcomes.tolist() == [True, False]
    np.testing.assert_array_equal(found, project(gradient.numpy(), memory.numpy()).gradient)
    found, outcomes = projected(gradient, -memory)
    assert outcomes.tolist() == [False, False]
    assert found is gradient
    memory[0, 0] = torch.nan
    found, outcomes = projected(gradient, memory)
    assert outcomes.tolist() == [True, True]
    assert found is gradient
