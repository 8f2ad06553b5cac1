"""Dropout masks: frequency, independence of keys, draws and units, and the definition of the hash by loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, chisquare

from clops_sweep.learning import dropout, streams

DRAWS = torch.arange(400)
PROBABILITY = 6554 / 65536


def dropped(keys: torch.Tensor, draws: torch.Tensor = DRAWS) -> torch.Tensor:
    """bool [B, S, 3072], a unit is dropped."""
    runs = len(keys)
    parts = [mask.view(len(draws), runs, -1) == 0 for mask in dropout.masks(keys, draws)]
    return torch.cat(parts, dim=2)


def test_words_follow_their_definition() -> None:
    keys = torch.tensor([[-123456789, 2**31 - 5], [77, -1]], dtype=torch.int32)
    draws = torch.tensor([0, 1, 2_000_000])
    words = dropout.random_words(keys, draws)
    assert words.shape == (3, 2, 3072)
    wrap = 0xFFFFFFFF
    for place, draw in enumerate(draws.tolist()):
        for run in range(2):
            k0, k1 = (int(key) & wrap for key in keys[run])
            for unit in (0, 1, 2, 1663, 1664, 3071):
                word = (draw * 1536 + unit // 2 + k0) & wrap
                word ^= word >> 16
                word = word * 0x7FEB352D & wrap
                word ^= k1
                word ^= word >> 15
                word = word * 0x846CA68B & wrap
                word ^= word >> 16
                half = word & 0xFFFF if unit % 2 == 0 else word >> 16
                signed = half - 65536 if half >= 32768 else half
                assert int(words[place, run, unit]) == signed


@pytest.mark.parametrize("seed", range(3))
def test_a_tenth_of_the_units_is_dropped(seed: int) -> None:
    drops = dropped(streams.keys([seed], "training dropout", 0, 0))
    assert binomtest(int(drops.sum()), drops.numel(), PROBABILITY).pvalue > 1e-4
    assert abs(PROBABILITY - 0.1) < 1e-5


def test_every_layer_and_every_draw_drops_its_tenth() -> None:
    drops = dropped(streams.keys([11], "training dropout", 1, 2))[:, 0]
    start = 0
    for units in dropout.UNITS:
        part = drops[:, start : start + units]
        assert binomtest(int(part.sum()), part.numel(), PROBABILITY).pvalue > 1e-4
        start += units
    assert start == 3072
    for counts, trials in ((drops.sum(0).double(), len(drops)), (drops.sum(1).double(), drops.shape[1])):
        z = (counts - trials * PROBABILITY) / (trials * PROBABILITY * (1 - PROBABILITY)) ** 0.5
        assert z.abs().max() < 5.5
        assert 0.9 < z.std() < 1.1


def test_masks_of_different_keys_are_independent() -> None:
    keys = torch.cat([streams.keys([3, 4], "training dropout", 0, 0), streams.keys([3], "training dropout", 0, 1)])
    drops = dropped(keys)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        both = drops[:, one] & drops[:, other]
        assert binomtest(int(both.sum()), both.numel(), PROBABILITY**2).pvalue > 1e-4


def test_neighbouring_units_and_draws_are_independent() -> None:
    drops = dropped(streams.keys([5], "training dropout", 0, 0))[:, 0]
    for one, other in ((drops[:, 1:], drops[:, :-1]), (drops[:, 2:], drops[:, :-2]), (drops[1:], drops[:-1])):
        both = one & other
        assert binomtest(int(both.sum()), both.numel(), PROBABILITY**2).pvalue > 1e-4


def test_all_words_are_equally_likely() -> None:
    words = dropout.random_words(streams.keys([1], "x"), torch.arange(200)).view(-1).numpy()
    counts = np.bincount((words.astype(np.int64) + 32768) >> 8, minlength=256)
    assert chisquare(counts).pvalue > 1e-4


def test_masks_do_not_depend_on_batching_or_on_the_other_runs() -> None:
    keys = streams.keys([1, 2, 3], "training dropout", 0, 0)
    draws = torch.tensor([9, 0, 31, 4, 7])
    together = dropped(keys, draws)
    for place, draw in enumerate(draws):
        for run in range(3):
            alone = dropped(keys[run : run + 1], draw[None])
            assert torch.equal(alone[0, 0], together[place, run])


def test_kept_units_are_scaled_and_shapes_fit_the_network() -> None:
    masks = dropout.masks(streams.keys([1, 2], "x"), torch.arange(5))
    assert [tuple(mask.shape) for mask in masks] == [(5, 8, 416), (5, 32, 68), (5, 64, 10)]
    for mask in masks:
        assert torch.equal(mask.unique(), torch.tensor([0.0, 1 / 0.9]))
