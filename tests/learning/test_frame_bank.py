"""The frame bank: a CPU reads frames where they lie or, of few of them, has a copy; elsewhere are the rows in use."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun, native
from clops_sweep.learning.frame_bank import FrameBank, LastBank, rows_in_use
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference

CPU = torch.device("cpu")


def test_rows_that_lie_side_by_side_are_read_there_on_a_cpu() -> None:
    frames = tiny_frames("class_il")
    side_by_side = np.arange(len(frames) // 4, len(frames) // 2)
    for used in (None, np.arange(0, len(frames), 2)[:-1], side_by_side):
        bank = FrameBank(frames, CPU, used)
        assert bank.stored.data_ptr() == frames.frames.__array_interface__["data"][0]
        assert len(bank.stored) == len(frames.frames)
        assert bank.members is None


@pytest.mark.parametrize("channels", [1, 3])
def test_few_scattered_rows_are_copied_on_a_cpu_and_are_the_same(channels: int) -> None:
    frames = tiny_frames("class_il", channels=channels)
    used = np.random.default_rng(0).permutation(len(frames))[: len(frames) // 3]
    few, whole = FrameBank(frames, CPU, used), FrameBank(frames, CPU)
    assert len(few.stored) == len(used) * channels
    for instances in (torch.from_numpy(used), torch.from_numpy(used[:6].reshape(2, 3))):
        assert torch.equal(few.gather(instances), whole.gather(instances))
        if channels == 1:
            assert torch.equal(few.stored[few.rows(instances)], whole.stored[whole.rows(instances)])


@pytest.mark.parametrize("strategy", ["clops", "gem", "mir"])
def test_a_run_is_the_same_whether_its_rows_are_copied_or_not(strategy: str) -> None:
    few = tiny_frames("class_il")
    names = ("gain", "offset", "patients", "labels", "split", "leads")
    thrice = replace(
        few, frames=np.repeat(few.frames, 3, axis=0), members=np.arange(len(few))[:, None] * 3,
        **{name: np.repeat(getattr(few, name), 3) for name in names[:2]},
    )  # fmt: skip
    config = tiny_config("class_il", strategy=strategy, epochs_per_task=1)
    alone, among = (ContinualRun(config, each).run() for each in (few, thrice))
    for table in ("curves", "r_matrix", "instances"):
        assert getattr(alone, table).equals(getattr(among, table))


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


ONE_LEAD = """
import sys
import numpy as np
from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import FrameSet

def held():  # MiB, with what is mapped of files and shared memory
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) / 1024

people, leads = 4000, 12
file = np.lib.format.open_memmap(sys.argv[1], "w+", np.int16, (people * leads, 2500))
del file  # a hole on the disk: 240 MB that take no room
frames = np.load(sys.argv[1], mmap_mode="r").view(np.ndarray)
who = np.repeat(np.arange(people, dtype=np.int32), leads)
of_rows = np.ones(len(frames), np.float32)
info = DATASETS["ptbxl"]
names = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")
every = FrameSet(
    "ptbxl", frames, of_rows, 0 * of_rows, "mV", who, tuple(map(str, range(people))), who % 4 + 0, tuple("abcd"),
    (who // 4 % 3).astype(np.int8), np.tile(np.arange(leads, dtype=np.int16), people), names, None, "0", info=info,
)
config = RunConfig(dataset="synthetic", scenario="class_il", strategy="finetune", epochs_per_task=1, batch_size=64)
small = np.flatnonzero(who < 48)
few = FrameSet(**{**vars(every), "frames": frames[small], "gain": of_rows[small], "offset": 0 * of_rows[small],
    **{name: getattr(every, name)[small] for name in ("patients", "labels", "split", "leads")}})
ContinualRun(config, few).run()  # what a run takes whatever the data
before = held()
run = ContinualRun(config, every)
assert sum(len(part.rows) for task in run.scenario.tasks for part in (task.train, task.validation, task.test)) == people
run.run()
print(held() - before, frames.nbytes / leads / 2**20)
"""


@pytest.mark.skipif(
    native.chosen() is None, reason="PyTorch's own memory is larger than that: needs the native kernels"
)
def test_a_run_holds_no_more_than_the_lead_that_it_uses(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ONE_LEAD, str(tmp_path / "frames.npy")]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    grown, lead = map(float, done.stdout.split())
    assert grown < 1.5 * lead  # read where it lies, by twelve times that: the system maps neighbouring pages along


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
