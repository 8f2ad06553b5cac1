"""How many runs a GPU holds, found out by trying."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from clops_sweep.data.frames import FRAME_LENGTH, TEST, TRAINING, VALIDATION, FrameSet
from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning.run import ContinualRun

_FEW, _MANY = 8, 32
_CONFIG = RunConfig(epochs_per_task=1, storage_fraction=1.0, mc_samples=16)
_FRAMES = 4000
"""With these, so many Monte-Carlo passes are asked for that as many are computed at a time as ever are."""


@dataclass(frozen=True)
class Fit:
    """Runs that fit a device in lockstep, what each takes, and what they share."""

    runs: int
    bytes_per_run: float
    bytes_shared: float


def runs_that_fit(device: torch.device) -> Fit:
    """Trains 8 runs and then 32 in lockstep for two epochs on noise, and extrapolates from their peaks of memory.

    Frames are shared by all runs of a lockstep, so a larger data set takes its size once from what is left.
    """
    few, many = peak_of_memory(device, _FEW), peak_of_memory(device, _MANY)
    each = max(1.0, (many - few) / (_MANY - _FEW))
    shared = max(0.0, few - _FEW * each)
    torch.cuda.empty_cache()
    free = torch.cuda.mem_get_info(device)[0]
    return Fit(max(0, int((free * 0.9 - shared) / each)), each, shared)


def peak_of_memory(device: torch.device, runs: int) -> int:
    """The bytes that runs in lockstep make PyTorch take from a GPU.

    These are more than what tensors hold: what a captured step computes with stays its own.
    """
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    run = ContinualRun([_CONFIG.replace(seed=seed) for seed in range(runs)], _noise(), device)
    for _ in range(2):
        run.advance()
    return torch.cuda.max_memory_reserved(device)


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
