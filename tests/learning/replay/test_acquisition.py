"""Acquisition functions on real networks, against a plain float64 network and loops over Python floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep.learning import streams
from clops_sweep.learning.replay import acquisition
from clops_sweep.learning.replay.acquisition import AcquisitionContext
from tests.learning.layer_masks import layer_masks

KINDS = ("class_il", "time_il", "domain_il")
COUNTERS = (2, 1, 0)
SAMPLES = 6
SIGMA = 0.4


def h(kind: str, p: list[float]) -> float:
    if kind == "softmax":
        return -sum(v * math.log(v) for v in p if v > 0)
    return -sum(v * math.log(v) + (1 - v) * math.log(1 - v) for v in p) / len(p)


def mean_of(samples: list[list[float]]) -> list[float]:
    return [sum(sample[c] for sample in samples) / len(samples) for c in range(len(samples[0]))]


def bald(kind: str, samples: list[list[float]]) -> float:
    return h(kind, mean_of(samples)) - sum(h(kind, sample) for sample in samples) / len(samples)


def variation(kind: str, samples: list[list[float]]) -> float:
    mean = mean_of(samples)
    if kind == "softmax":
        return 1 - max(mean)
    return sum(1 - max(v, 1 - v) for v in mean) / len(mean)


def divergence(kind: str, clean: list[list[float]], perturbed: list[list[float]]) -> float:
    """Return the divergence by torch.distributions, with NumPy's moments in C - 1, 1, or C times 1 dimensions."""
    groups = [slice(0, -1)] if kind == "softmax" else [slice(c, c + 1) for c in range(len(clean[0]))]
    total = 0.0
    for group in groups:
        both = []
        for samples in (clean, perturbed):
            part = np.array(samples)[:, group]
            covariance = np.atleast_2d(np.cov(part.T)) + 1e-6 * np.eye(part.shape[1])
            both.append(torch.distributions.MultivariateNormal(torch.tensor(part.mean(0)), torch.tensor(covariance)))
        total += float(torch.distributions.kl_divergence(*both))
    return total


class Samples:
    """Samples of a plain float64 network over which the acquisition functions average."""

    def __init__(self, setting: Any, rows: torch.Tensor, paper_network: Any) -> None:
        self.setting, self.rows = setting, rows
        self.network = paper_network.of(setting.learner)

    def probabilities(self, signal: torch.Tensor, masks: Any) -> list[list[float]]:
        with torch.no_grad():
            logits = self.network.masked(masks)(signal)
        softmax = self.setting.scenario.kind == "softmax"
        return (logits.softmax(1) if softmax else logits.sigmoid()).tolist()

    def dropout(self, place: int, keys: torch.Tensor, noise: torch.Tensor | None = None) -> list[list[float]]:
        masks = layer_masks(keys, torch.arange(place * SAMPLES, (place + 1) * SAMPLES))
        signal = self.setting.signal(self.rows[place : place + 1])
        if noise is not None:
            signal = signal + noise.double()
        return self.probabilities(signal.expand(SAMPLES, -1, -1), masks)


@pytest.fixture
def sampled(trained: Callable[..., Any], paper_network: Any) -> Callable[[str], tuple[AcquisitionContext, Samples]]:
    def make(kind: str) -> tuple[AcquisitionContext, Samples]:
        setting = trained(kind)
        config = setting.config.replace(mc_samples=SAMPLES, perturbation_std=SIGMA)
        rows = setting.tasks[0].rows[3:8]
        config = config.replace(seed=setting.seed)
        return AcquisitionContext(setting.learner, config, COUNTERS), Samples(setting, rows, paper_network)

    return make


def scored(name: str, context: AcquisitionContext, rows: torch.Tensor) -> torch.Tensor:
    """Return the scores of a function with the options that it uses."""
    options = context.config.replace(acquisition=name).options_of("acquisition")
    return getattr(acquisition, name)(context, rows, **options)


def compare(found: torch.Tensor, expected: list[float], atol: float) -> None:
    torch.testing.assert_close(found.double(), torch.tensor(expected, dtype=torch.float64), rtol=2e-3, atol=atol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["bald_mcd", "entropy", "variation_ratio"])
def test_functions_of_dropout_samples(name: str, kind: str, sampled: Any) -> None:
    context, samples = sampled(kind)
    keys = streams.keys(context.seed, "acquisition dropout", *COUNTERS)
    oracle = {
        "bald_mcd": bald,
        "entropy": lambda loss, p: h(loss, mean_of(p)),
        "variation_ratio": variation,
    }[name]
    expected = [oracle(context.learner.kind, samples.dropout(place, keys)) for place in range(5)]
    found = scored(name, context, samples.rows)
    assert found.dtype == torch.float64
    compare(found, expected, 2e-6)
    assert found.std() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_bald_mcp(kind: str, sampled: Any) -> None:
    context, samples = sampled(kind)
    expected = []
    stream = streams.generator(context.seed, "acquisition perturbation", *COUNTERS)
    drawn = [torch.from_numpy(stream.standard_normal((5, 2500), dtype=np.float32)) for _ in range(SAMPLES)]
    for place in range(5):
        clean = samples.setting.signal(samples.rows[place : place + 1])
        z = torch.cat([clean + SIGMA * noise[place].double() for noise in drawn])
        expected.append(bald(context.learner.kind, samples.probabilities(z, None)))
    compare(scored("bald_mcp", context, samples.rows), expected, 2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_balc_kld(kind: str, sampled: Any) -> None:
    context, samples = sampled(kind)
    keys = streams.keys(context.seed, "acquisition dropout", *COUNTERS, 0)
    expected = []
    stream = streams.generator(context.seed, "acquisition perturbation", *COUNTERS)
    noise = SIGMA * torch.from_numpy(stream.standard_normal((5, 2500), dtype=np.float32))
    for place in range(5):
        clean = samples.dropout(place, keys)
        perturbed = samples.dropout(place, keys, noise[place])
        expected.append(divergence(context.learner.kind, clean, perturbed))
    found = scored("balc_kld", context, samples.rows)
    torch.testing.assert_close(found.double(), torch.tensor(expected).double(), rtol=0.02, atol=1e-3)
    assert (found > 0).all()


def test_without_perturbation_balc_is_zero(sampled: Any) -> None:
    context, samples = sampled("time_il")
    still = replace(context, config=context.config.replace(perturbation_std=1e-30))
    assert scored("balc_kld", still, samples.rows).abs().max() < 1e-6
    assert scored("bald_mcp", still, samples.rows).abs().max() < 1e-12


def test_one_sample_has_no_mutual_information(sampled: Any) -> None:
    context, samples = sampled("time_il")
    single = replace(context, config=context.config.replace(mc_samples=1))
    assert (scored("bald_mcd", single, samples.rows) == 0).all()
    assert (scored("bald_mcp", single, samples.rows) == 0).all()
    assert torch.isfinite(scored("balc_kld", single, samples.rows)).all()


def test_random_scores_are_those_of_the_stream(sampled: Any) -> None:
    context, samples = sampled("class_il")
    found = acquisition.random(context, samples.rows)
    assert found.tolist() == streams.generator(context.seed, "random acquisition", *COUNTERS).random(5).tolist()


def test_large_portions_are_scored_in_chunks_with_noise_of_their_own(
    sampled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, samples = sampled("class_il")
    rows = samples.rows.repeat(3)
    for name in ("bald_mcp", "balc_kld"):
        monkeypatch.setattr(acquisition, "PERTURBED_CHUNK", 4)
        scores = scored(name, context, rows)
        assert scores.shape == rows.shape
        assert len(scores.unique()) == len(rows)  # each instance has its own noise
