"""A whole sweep on a workstation with eight pretended GPUs, whose runs are computed on its CPUs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tests.helpers.launching import Sweep
from tests.helpers.preloaded import Preloaded

pytestmark = pytest.mark.nightly

Launch = Callable[..., Sweep]

SPACE = '''
import os
import time
from pathlib import Path

from clops_sweep import RunConfig, SearchSpace, acquisition_function, machine
from clops_sweep.execution import devices
from clops_sweep.execution.cluster import start

USED = Path({folder!r}) / "used"
for module in (machine, devices, start):
    module.usable_gpus = lambda: (machine.Gpu("pretended", 2**36),) * 8
devices.gpus_of_driver = lambda: 8
start.available_cores = lambda: 8


def device(runner):
    """Where a worker computes: it notes its GPU and its niceness, and waits until eight workers have done so."""
    import torch

    assert runner._workplace.on_gpu
    with USED.open("a") as file:
        file.write(f"{{os.environ['CUDA_VISIBLE_DEVICES']}} {{os.nice(0)}}\\n")
    end = time.monotonic() + 120
    while len(set(USED.read_text().splitlines())) < 8 and time.monotonic() < end:
        time.sleep(0.02)
    return torch.device("cpu")


def arrive():
    from clops_sweep.execution.worker.lockstep_runner import LockstepRunner

    LockstepRunner._device = device


class Luggage:
    def __call__(self, context, rows):
        raise AssertionError("no run asks for it")

    def __reduce__(self):
        return arrive, ()


acquisition_function("luggage")(Luggage())
SPACE = SearchSpace("eight", RunConfig(strategy="finetune", network="mlp", epochs_per_task=1), seeds=range(16))
'''


def test_eight_gpus_are_all_used(launch: Launch, tmp_path: Path, forked: Preloaded) -> None:
    (tmp_path / "space.py").write_text(SPACE.format(folder=str(tmp_path)))
    changes = {"RAY_OVERRIDE_RESOURCES": '{"CPU": 8, "GPU": 8}'}  # as if Ray had found them
    sweep = launch("space.py", "--no-report", "--nice", "3", changes=changes, script=forked)
    assert sweep.wait() == 0, sweep.errors
    (line,) = (line for line in sweep.output.splitlines() if line.startswith("device:"))
    assert line == "device: gpu; a trial takes 1 GPU and up to 2 runs in lockstep"
    used = set((tmp_path / "used").read_text().splitlines())
    assert used == {f"{gpu} {os.nice(0) + 3}" for gpu in range(8)}
    runs = pd.read_parquet(tmp_path / "results" / "runs")
    assert (len(runs), set(runs["device"]), set(runs["lockstep"])) == (16, {"cuda"}, {2})

    other = launch("space.py", "--seeds", "17", "--device", "cpu", script=forked)
    assert other.wait() == 2
    assert "were computed on GPUs; expected --device gpu or auto" in other.errors
