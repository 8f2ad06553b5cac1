"""Entropies and BALD against loops over Python floats and closed forms."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clops_sweep.learning.replay.entropy import mutual_information, predictive_entropy


def term(p: float) -> float:
    return -p * math.log(p) if p > 0 else 0.0


def entropy_of(kind: str, p: list[float]) -> float:
    if kind == "softmax":
        return sum(term(value) for value in p)
    return sum(term(value) + term(1 - value) for value in p) / len(p)


def bald_of(kind: str, samples: list[list[float]]) -> float:
    count = len(samples)
    mean = [sum(sample[c] for sample in samples) / count for c in range(len(samples[0]))]
    return entropy_of(kind, mean) - sum(entropy_of(kind, sample) for sample in samples) / count


@st.composite
def sample_sets(draw: st.DrawFn) -> tuple[str, list[list[float]]]:
    kind = draw(st.sampled_from(["binary", "softmax", "multilabel"]))
    classes = {"binary": 1, "softmax": draw(st.integers(2, 6)), "multilabel": draw(st.integers(2, 5))}[kind]
    numbers = st.lists(st.floats(0, 1), min_size=classes, max_size=classes)
    samples = draw(st.lists(numbers.filter(lambda row: sum(row) > 1e-6), min_size=1, max_size=8))
    if kind == "softmax":
        samples = [[value / sum(row) for value in row] for row in samples]
    return kind, samples


@settings(max_examples=300)
@given(sample_sets())
def test_bald_follows_its_formula_and_stays_within_its_bounds(drawn: tuple[str, list[list[float]]]) -> None:
    kind, samples = drawn
    found = float(mutual_information(kind, torch.tensor(samples, dtype=torch.float64)))
    assert found == pytest.approx(max(0.0, bald_of(kind, samples)), abs=1e-12)
    assert 0 <= found <= math.log(max(2, len(samples[0]) if kind == "softmax" else 2)) + 1e-12


@settings(max_examples=100)
@given(sample_sets(), st.randoms(use_true_random=False))
def test_the_order_of_samples_and_instances_does_not_matter(
    drawn: tuple[str, list[list[float]]], shuffler: object
) -> None:
    kind, samples = drawn
    tensor = torch.tensor([samples, samples[::-1]], dtype=torch.float64)
    shuffled = list(range(len(samples)))
    shuffler.shuffle(shuffled)  # type: ignore[attr-defined]
    scores = mutual_information(kind, tensor)
    assert torch.allclose(mutual_information(kind, tensor[:, shuffled]), scores, atol=1e-13)
    assert torch.equal(mutual_information(kind, tensor.flip(0)), scores.flip(0))


@pytest.mark.parametrize("kind", ["binary", "softmax", "multilabel"])
@pytest.mark.parametrize("samples", [1, 2, 5, 50])
def test_equal_samples_have_no_mutual_information(kind: str, samples: int) -> None:
    p = torch.tensor([0.2, 0.7, 0.1] if kind != "binary" else [0.3])
    found = mutual_information(kind, p.expand(samples, -1))
    assert found.item() == pytest.approx(0, abs=1e-15)
    assert found.item() >= 0


def test_two_certain_samples_that_disagree_have_ln_2() -> None:
    for kind, samples in (
        ("binary", [[0.0], [1.0]]),
        ("softmax", [[1.0, 0.0], [0.0, 1.0]]),
        ("multilabel", [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
    ):
        assert mutual_information(kind, torch.tensor(samples)).item() == pytest.approx(math.log(2), abs=1e-15)


@pytest.mark.parametrize("classes", [2, 3, 9])
def test_certain_samples_of_every_class_have_ln_c(classes: int) -> None:
    assert mutual_information("softmax", torch.eye(classes)).item() == pytest.approx(math.log(classes), abs=1e-14)


def test_edges_are_exact() -> None:
    assert predictive_entropy("softmax", torch.tensor([0.0, 1.0])).item() == 0
    assert predictive_entropy("binary", torch.tensor([[0.0], [1.0]])).tolist() == [0, 0]
    assert predictive_entropy("softmax", torch.full((4,), 0.25)).item() == pytest.approx(math.log(4), abs=1e-7)
    assert predictive_entropy("multilabel", torch.tensor([0.5, 1.0])).item() == pytest.approx(math.log(2) / 2)


def test_nearly_certain_float32_samples_give_no_negative_or_undefined_score() -> None:
    logits = torch.linspace(-110, 110, 45)[:, None] * torch.tensor([1.0, -1.0, 0.5])
    for kind, probabilities in (("softmax", logits.softmax(-1)), ("multilabel", logits.sigmoid())):
        scores = mutual_information(kind, probabilities[:, None])
        assert scores.isfinite().all()
        assert (scores >= 0).all()
