"""Speed of a network on CPU and GPU: training steps, timed once per network, batch size and machine, and cached."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clops_sweep.data.origins import ORIGINS
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.learning.lockstep import is_alone
from clops_sweep.machine import installed_version, usable_gpus

if TYPE_CHECKING:
    import torch

    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.scenarios import Scenario

GPU = "cuda"
_FILE = ".speeds.json"
_IN_LOCKSTEP = 8
"""Runs that are timed in lockstep on a GPU. Larger locksteps are faster per run, but take longer to measure."""

_STEPS, _SECONDS = 8, 0.3
"""Steps of a timed epoch, and the seconds for which epochs are repeated, without the first (warm-up)."""


@dataclass(frozen=True)
class Speed:
    """Time and memory of a training step.

    Attributes:
        cpu: seconds per step of one run on one core.
        gpu: seconds per step and run on a GPU: the step of a lockstep, divided by its runs.
        run_bytes: GPU memory of a run without the frames, which all runs share.
    """

    cpu: float
    gpu: float
    run_bytes: int


def _one_at_a_time(config: RunConfig) -> bool:
    """Return whether runs are computed one after another, even within a lockstep."""
    return is_alone(config) or config.augment is not None


def speed_key(config: RunConfig, frames: FrameSet) -> str:
    """Return the cache key of a speed, such as "clops_cnn, batch 16, 1 x 2500"."""
    options = [f"{name}={value}" for name, value in sorted(config.network_options.items())]
    if frames.encoded is not None and config.lora_rank:
        options += [f"encoder={frames.encoded.encoder_hash[:8]}", f"lora_rank={config.lora_rank}"]
    shape = f"batch {config.batch_size}, {frames.channels} x {frames.samples}"
    more = [config.precision] * (config.precision != "float32") + ["one run at a time"] * _one_at_a_time(config)
    origin = ORIGINS.get(("network", config.network))  # a user's network is timed again after its code changes
    return ", ".join([config.network, *options, shape, *more, *([f"code {str(origin.code)[:8]}"] if origin else [])])


def known_speeds(prepared_root: Path) -> dict[str, Speed]:
    """Return the speeds measured on this machine, by `speed_key`; empty if the cache file cannot be read."""
    of_machine = _machine()
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        found = json.loads((prepared_root / _FILE).read_text())
        return {key.removeprefix(of_machine): Speed(*it) for key, it in found.items() if key.startswith(of_machine)}
    return {}


def keep_speeds(prepared_root: Path, speeds: Mapping[str, Speed]) -> None:
    """Write speeds of this machine to the cache file; entries of other machines stay.

    Nothing is written if the folder is read-only.
    """
    path, everything = prepared_root / _FILE, {}
    with contextlib.suppress(OSError, ValueError):
        everything = dict(json.loads(path.read_text()))
    everything |= {_machine() + key: astuple(speed) for key, speed in speeds.items()}
    with contextlib.suppress(OSError):
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(json.dumps(everything, indent=1))
        new.replace(path)


def _machine() -> str:
    gpus = usable_gpus()
    return f"{socket.gethostname()}, {gpus[0].name if gpus else 'no GPU'}, PyTorch {installed_version('torch')}: "


def measure(config: RunConfig, frames: FrameSet, device: str) -> Speed:
    """Time training steps of a config's network on one core and on a device. This takes some seconds.

    Raises:
        RuntimeError: the device cannot be used; PyTorch says why.
    """
    import torch

    scenario = scenario_of(config, frames)
    runs = 1 if _one_at_a_time(config) else _IN_LOCKSTEP
    of_one, _ = _step(config, frames, scenario, torch.device("cpu"), 1)
    of_all, run_bytes = _step(config, frames, scenario, torch.device(device), runs)
    return Speed(of_one, of_all / runs, run_bytes)


def _step(
    config: RunConfig, frames: FrameSet, scenario: Scenario, device: torch.device, runs: int
) -> tuple[float, int]:
    """Return the seconds of a training step of `runs` runs in lockstep, and the GPU memory of each run in bytes."""
    import torch

    from clops_sweep.learning import streams
    from clops_sweep.learning.batches import Instances
    from clops_sweep.learning.frame_bank import FrameBank
    from clops_sweep.learning.global_streams import GlobalStreams
    from clops_sweep.learning.process_state import torch_state_kept
    from clops_sweep.learning.run import learner_of
    from clops_sweep.learning.threads import one_thread

    train, on_gpu = scenario.tasks[0].train, device.type == "cuda"
    count = min(len(train.rows), _STEPS * config.batch_size)
    with torch_state_kept(), one_thread(), GlobalStreams(device).kept():
        bank = FrameBank(frames, device, train.rows[:count])
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device) if on_gpu else 0
        configs = [config.replace(seed=seed) for seed in range(runs)]
        learner = learner_of(configs, scenario, frames, bank)
        rows, targets = torch.from_numpy(train.rows[:count]), torch.from_numpy(train.targets[:count])
        task = Instances(rows.to(device).expand(runs, -1), targets.to(device).expand(runs, -1, -1))
        order = streams.permutations(range(runs), count, "speed").to(device)
        keys = streams.keys(range(runs), "speed").to(device)

        def epoch() -> float:
            learner.train_epoch(task, None, order, config.batch_size, keys)
            if on_gpu:
                torch.cuda.synchronize(device)
            return time.perf_counter()

        ends = [epoch()]  # warm-up
        while ends[-1] - ends[0] < _SECONDS:
            ends.append(epoch())
        learner.logits(task.rows)  # evaluation may need more memory than training
        taken = torch.cuda.max_memory_allocated(device) - before if on_gpu else 0
    steps = (len(ends) - 1) * -(-count // config.batch_size)
    return (ends[-1] - ends[0]) / steps, taken // runs
