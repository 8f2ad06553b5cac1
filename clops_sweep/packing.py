"""How many runs a GPU holds, found out by trying."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from clops_sweep.config import RunConfig
from clops_sweep.data.frames import FRAME_LENGTH, TEST, TRAINING, VALIDATION, FrameSet
from clops_sweep.learning.run import ContinualRun

_FRAMES = 600


@dataclass(frozen=True)
class Fit:
    """Runs that fit a device in lockstep, what each takes, and what they share."""

    runs: int
    bytes_per_run: float
    bytes_shared: float


def runs_that_fit(device: torch.device) -> Fit:
    """Trains one run and then five in lockstep for two epochs on noise, and extrapolates from their peaks of memory.

    Frames are shared by all runs of a lockstep, so a larger data set takes its size once from what is left.
    """
    one, five = _peak(device, 1), _peak(device, 5)
    each = max(1.0, (five - one) / 4)
    shared = max(0.0, one - each)
    free = torch.cuda.mem_get_info(device)[0]
    return Fit(int((free * 0.9 - shared) / each), each, shared)


def _peak(device: torch.device, runs: int) -> int:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    configs = [RunConfig(epochs_per_task=1, seed=seed) for seed in range(runs)]
    run = ContinualRun(configs, _noise(), device)
    for _ in range(2):
        run.advance()
    return torch.cuda.max_memory_allocated(device)


def _noise() -> FrameSet:
    """Frames of nothing, in the shape of Class-IL: what they hold does not matter to memory."""
    generator = np.random.default_rng(0)
    rows = np.arange(_FRAMES)
    split = np.select([rows % 5 < 3, rows % 5 == 3], [TRAINING, VALIDATION], TEST).astype(np.int8)
    return FrameSet(
        name="synthetic",
        frames=generator.standard_normal((_FRAMES, FRAME_LENGTH), dtype=np.float32),
        gain=np.ones(_FRAMES, np.float32),
        offset=np.zeros(_FRAMES, np.float32),
        unit="mV",
        patients=rows.astype(np.int32),
        patient_names=tuple(map(str, rows)),
        labels=(rows // 5 % 4).astype(np.int64),
        classes=("0", "1", "2", "3"),
        split=split,
        leads=np.zeros(_FRAMES, np.int16),
        lead_names=("II",),
        times=None,
        data_hash="0" * 64,
    )
