"""BALC's Gaussians: moments by loops, the divergence against torch.distributions."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from clops_sweep.learning.replay.gaussian import RIDGE, divergence_of_probabilities, gaussian_kl, gaussian_of


def samples_of(seed: int, shape: tuple[int, ...]) -> torch.Tensor:
    stream = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(shape, generator=stream, dtype=torch.float64)).softmax(-1)


def test_mean_and_covariance_by_loops() -> None:
    samples = samples_of(0, (7, 3))
    mean, covariance = gaussian_of(samples)
    for i in range(3):
        mu_i = sum(float(samples[t, i]) for t in range(7)) / 7
        assert float(mean[i]) == pytest.approx(mu_i, abs=1e-15)
        for j in range(3):
            mu_j = sum(float(samples[t, j]) for t in range(7)) / 7
            total = sum((float(samples[t, i]) - mu_i) * (float(samples[t, j]) - mu_j) for t in range(7))
            assert float(covariance[i, j]) == pytest.approx(total / 6 + RIDGE * (i == j), abs=1e-15)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_divergence_is_that_of_torch_distributions(dimensions: int, seed: int) -> None:
    one = gaussian_of(samples_of(seed, (5, 20, dimensions + 1))[..., :-1])
    other = gaussian_of(samples_of(seed + 50, (5, 20, dimensions + 1))[..., :-1])
    expected = kl_divergence(MultivariateNormal(*one), MultivariateNormal(*other))
    torch.testing.assert_close(gaussian_kl(*one, *other), expected, rtol=1e-8, atol=1e-9)
    assert (expected > 1e-4).all()


def test_divergence_of_a_gaussian_from_itself_is_zero() -> None:
    one = gaussian_of(samples_of(3, (20, 4))[..., :-1])
    assert gaussian_kl(*one, *one).item() == pytest.approx(0, abs=1e-12)


def test_divergence_in_one_dimension_has_its_closed_form() -> None:
    m0, v0, m1, v1 = 0.3, 0.02, 0.5, 0.05
    expected = 0.5 * (v0 / v1 - 1 + (m1 - m0) ** 2 / v1 + math.log(v1 / v0))
    column = [torch.tensor(value, dtype=torch.float64) for value in ([m0], [[v0]], [m1], [[v1]])]
    assert gaussian_kl(*column).item() == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("dropped", range(4))
def test_it_does_not_matter_which_coordinate_of_a_softmax_is_left_out(dropped: int) -> None:
    clean, perturbed = samples_of(1, (30, 4)), samples_of(2, (30, 4))
    kept = [c for c in range(4) if c != dropped]
    reference = divergence_of_probabilities("softmax", clean, perturbed)
    other = gaussian_kl(*gaussian_of(clean[:, kept]), *gaussian_of(perturbed[:, kept]))
    # exact up to the ridge, which is small against these covariances
    assert other.item() == pytest.approx(reference.item(), rel=1e-3)


def test_sigmoids_are_summed_over_labels() -> None:
    clean, perturbed = samples_of(4, (6, 20, 3)), samples_of(5, (6, 20, 3))
    expected = torch.zeros(6, dtype=torch.float64)
    for instance in range(6):
        for label in range(3):
            moments = []
            for samples in (clean, perturbed):
                values = [float(samples[instance, t, label]) for t in range(20)]
                mean = sum(values) / 20
                moments.append((mean, sum((value - mean) ** 2 for value in values) / 19 + 1e-6))
            (m0, v0), (m1, v1) = moments
            expected[instance] += 0.5 * (v0 / v1 - 1 + (m1 - m0) ** 2 / v1 + math.log(v1 / v0))
    torch.testing.assert_close(
        divergence_of_probabilities("multilabel", clean, perturbed), expected, rtol=1e-10, atol=1e-12
    )


def test_samples_that_do_not_vary_have_a_finite_divergence() -> None:
    clean = torch.tensor([[1.0, 0.0]]).expand(20, -1)
    found = divergence_of_probabilities("softmax", clean, clean.flip(-1))
    assert found.item() == pytest.approx(0.5 / RIDGE, rel=1e-9)
    assert torch.isfinite(divergence_of_probabilities("softmax", clean[:1], clean[:1]))
