"""Named random streams are functions of (seed, name, counters) alone."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import chisquare

from clops_sweep.learning import streams


def test_a_stream_does_not_depend_on_what_was_drawn_before() -> None:
    first = streams.permutation(1, 30, "batch order", 3, 7)
    streams.permutation(1, 1000, "batch order", 0, 0)
    torch.manual_seed(0)
    np.random.default_rng(0).random(5)
    assert torch.equal(first, streams.permutation(1, 30, "batch order", 3, 7))


def test_seed_name_and_counters_all_matter() -> None:
    drawn = [
        tuple(streams.permutation(seed, 40, name, *counters).tolist())
        for seed in (0, 1)
        for name in ("batch order", "candidates")
        for counters in ((0, 1), (1, 0), (1, 1))
    ]
    assert len(set(drawn)) == 12


def test_permutations_and_choices_are_what_they_say() -> None:
    order = streams.permutation(5, 50, "order")
    assert sorted(order.tolist()) == list(range(50))
    chosen = streams.choice(5, 50, 12, "choice").tolist()
    assert chosen == sorted(set(chosen))
    assert len(chosen) == 12
    assert set(chosen) <= set(range(50))


def test_the_place_of_an_instance_in_a_permutation_is_uniform() -> None:
    counts = np.zeros(8)
    for epoch in range(1600):
        counts[int((streams.permutation(3, 8, "batch order", 0, epoch) == 0).nonzero())] += 1
    assert chisquare(counts).pvalue > 1e-4
