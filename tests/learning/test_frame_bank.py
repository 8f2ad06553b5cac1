"""The frame bank: a CPU reads frames in place; other devices hold only the rows in use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from clops_sweep.learning.frame_bank import FrameBank, rows_in_use
from clops_sweep.testing import tiny_frames

CPU = torch.device("cpu")


def test_another_device_gets_the_rows_in_use_alone() -> None:
    frames = tiny_frames("class_il")
    assert len(FrameBank(frames, torch.device("meta"), np.array([7, 3, 3])).stored) == 2
    pairs = replace(frames, members=np.stack([np.arange(10), np.arange(1, 11)], axis=1))
    bank = FrameBank(pairs, torch.device("meta"), np.array([7, 3, 4]))
    assert (len(bank.stored), bank.shape) == (5, (2, frames.samples))


@pytest.mark.parametrize("channels", [None, 1, 3])
def test_instances_are_made_of_the_same_rows(channels: int | None) -> None:
    stream = np.random.default_rng(0)
    signals = stream.standard_normal(50)
    members = None if channels is None else stream.integers(0, 50, (30, channels))
    instances = 50 if members is None else 30
    used = stream.permutation(instances)[:9]
    rows, places = rows_in_use(members, used, instances, 50)
    wanted = signals[used][:, None] if members is None else signals[members[used]]
    np.testing.assert_array_equal(signals[rows][places[used]], wanted)
    assert len(signals[rows]) == len(np.unique(wanted))
    assert (np.delete(places, used, axis=0) == -1).all()
    everything = rows_in_use(None, np.arange(50), 50, 50)
    assert everything == (slice(None), None)


@pytest.mark.parametrize("channels", [1, 3])
def test_rows_are_those_of_all_channels(channels: int) -> None:
    frames = tiny_frames("class_il")
    members = np.random.default_rng(1).permutation(len(frames.frames))[: 4 * channels].reshape(4, channels)
    bank = FrameBank(replace(frames, members=members), CPU)
    instances = torch.tensor([[3, 0], [2, 2]])
    rows = bank.rows(instances)
    assert rows.shape == (2, 2 * channels)
    assert torch.equal(FrameBank(frames, CPU).gather(rows).view(2, 2, *bank.shape), bank.gather(instances))
