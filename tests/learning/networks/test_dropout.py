"""Dropout masks: frequency, independence of keys, draws and units, and the definition of the hash by loops."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import binomtest

from clops_sweep.learning import streams
from clops_sweep.learning.networks import dropout

DRAWS = torch.arange(400)
PROBABILITY = 6554 / 65536


def dropped(keys: torch.Tensor, draws: torch.Tensor = DRAWS) -> torch.Tensor:
    """Return which units are dropped, bool [B, S, 3072]."""
    return torch.stack([dropout.masks(of_run, draws) == 0 for of_run in keys], dim=1)


def test_masks_follow_their_definition() -> None:
    keys = torch.tensor([[-123456789, 2**31 - 5], [77, -1]], dtype=torch.int32)
    draws = torch.tensor([0, 1, 2_000_000])
    found = dropped(keys, draws).tolist()
    wrap = 0xFFFFFFFF
    for place, draw in enumerate(draws.tolist()):
        for run in range(2):
            k0, k1 = (int(key) & wrap for key in keys[run])
            for unit in range(3072):
                word = (draw * 1536 + unit // 2 + k0) & wrap
                word ^= word >> 16
                word = word * 0x7FEB352D & wrap
                word ^= k1
                word ^= word >> 15
                word = word * 0x846CA68B & wrap
                word ^= word >> 16
                half = word & 0xFFFF if unit % 2 == 0 else word >> 16
                signed = half - 65536 if half >= 32768 else half
                assert found[place][run][unit] == (signed < -32768 + 6554)


@pytest.mark.parametrize("seed", range(3))
def test_a_tenth_of_the_units_is_dropped(seed: int) -> None:
    drops = dropped(streams.keys(seed, "training dropout", 0, 0)[None])
    assert binomtest(int(drops.sum()), drops.numel(), PROBABILITY).pvalue > 1e-4
    assert abs(PROBABILITY - 0.1) < 1e-5


def test_masks_do_not_depend_on_batching_or_on_the_other_runs() -> None:
    keys = torch.stack([streams.keys(seed, "training dropout", 0, 0) for seed in (1, 2, 3)])
    draws = torch.tensor([9, 0, 31, 4, 7])
    together = dropped(keys, draws)
    for place, draw in enumerate(draws):
        for run in range(3):
            alone = dropped(keys[run : run + 1], draw[None])
            assert torch.equal(alone[0, 0], together[place, run])


def test_layers_of_the_papers_network_take_their_masks_in_order() -> None:
    """One per instance in training; with more draws than instances, the first layer repeats its input."""
    keys, draws = streams.keys(4, "x"), torch.arange(6) + 2
    sizes = (4, 416), (16, 68), (32, 10)
    expected = dropout.masks(keys, draws).split(dropout.UNITS, dim=1)
    layer = torch.nn.Dropout(0.1)
    with dropout.PaperDropout(keys, draws):
        for size, mask in zip(sizes, expected, strict=True):
            assert torch.equal(layer(torch.ones(6, *size)), mask.view(6, *size))
    hidden = torch.arange(1.0, 4.0)[:, None, None].expand(-1, 4, 416)
    with dropout.PaperDropout(keys, draws):
        found = layer(hidden)
    assert torch.equal(found, hidden.repeat_interleave(2, 0) * expected[0].view(6, 4, 416))
    with dropout.PaperDropout(keys, draws):
        assert layer.eval()(hidden) is hidden
