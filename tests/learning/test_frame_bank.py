"""The frame bank: a CPU reads frames in place; other devices hold only the rows in use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun
from clops_sweep.learning.frame_bank import FrameBank, LastBank, rows_in_use
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference

CPU = torch.device("cpu")


def test_rows_are_read_where_they_lie_on_a_cpu() -> None:
    frames = tiny_frames("class_il")
    side_by_side = np.arange(len(frames) // 4, len(frames) // 2)
    for used in (None, np.arange(0, len(frames), 2)[:-1], side_by_side):
        bank = FrameBank(frames, CPU, used)
        assert bank.stored.data_ptr() == frames.frames.__array_interface__["data"][0]
        assert len(bank.stored) == len(frames.frames)
        assert bank.members is None


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
    assert places is not None
    wanted = signals[used][:, None] if members is None else signals[members[used]]
    np.testing.assert_array_equal(signals[rows][places[used]], wanted)
    assert len(signals[rows]) == len(np.unique(wanted))
    assert (np.delete(places, used, axis=0) == -1).all()
    everything = rows_in_use(None, np.arange(50), 50, 50)
    assert everything == (slice(None), None)


def test_the_last_bank_is_shared_by_runs_that_want_the_same() -> None:
    frames, others = tiny_frames("class_il"), tiny_frames("time_il")
    bank_of, config = LastBank(), tiny_config("class_il", strategy="finetune", epochs_per_task=1)
    runs = [ContinualRun(config.replace(seed=seed), frames, bank_of=bank_of) for seed in (0, 1)]
    banks = [run._training.learner.bank for run in runs]
    assert banks[0] is banks[1]
    assert result_difference(runs[1].run(), ContinualRun(config.replace(seed=1), frames).run()) is None
    used = np.arange(5)
    one = bank_of(frames, CPU, used)
    assert bank_of(frames, CPU, used.copy()) is one
    for other in ((frames, CPU, used[:4]), (others, CPU, used), (frames, torch.device("meta"), used)):
        assert bank_of(*other) is not one
        one = bank_of(frames, CPU, used)
