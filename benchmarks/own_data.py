"""Own data: preparing arrays, beside copying their file, and opening 100,000 frames of 12 channels."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.timing import table
from clops_sweep import Recordings, dataset
from clops_sweep.data.prepare import data_hash, open_frames, prepare

CHANNELS, SAMPLES = 12, 250


@dataset("benchmark_own_data", files=["frames.npy"])
def own_data(data_root: Path) -> Recordings:
    """Whole numbers, read through a memory map."""
    frames = np.load(data_root / "frames.npy", mmap_mode="r")
    number = np.arange(len(frames))
    channels = [f"channel {channel + 1}" for channel in range(CHANNELS)]
    return Recordings(frames, 100, channels, "mV", number % 4, ("a", "b", "c", "d"), number // 5)


def run(*, quick: bool) -> str:
    """The section of the results."""
    count = 5_000 if quick else 100_000
    rows: list[list[str]] = []

    def measure(what: str, work: Callable[[], object]) -> None:
        wall, used = time.perf_counter(), time.process_time()
        work()
        rows.append([what, f"{time.perf_counter() - wall:.2f}", f"{time.process_time() - used:.2f}"])

    with tempfile.TemporaryDirectory() as folder:
        root, prepared = Path(folder) / "data", Path(folder) / "prepared"
        root.mkdir()
        stream = np.random.default_rng(0)
        np.save(root / "frames.npy", stream.integers(-2000, 2000, (count, CHANNELS, SAMPLES), dtype=np.int16))
        measure("copy the file, to the disk", lambda: (shutil.copyfile(root / "frames.npy", root / "copy"), os.sync()))
        measure("prepare", lambda: prepare("benchmark_own_data", prepared_root=prepared, data_root=root))
        for leads in ("all", "one"):
            measure(
                f'open, leads="{leads}", zscore',
                lambda leads=leads: open_frames(  # type: ignore[misc]
                    "benchmark_own_data", prepared_root=prepared, leads=leads, normalize="zscore"
                ),
            )
        measure("data hash", lambda: data_hash("benchmark_own_data", prepared_root=prepared, leads="all"))
    title = f"## Own data\n\n{count:,} frames of {CHANNELS} channels and {SAMPLES} samples of 16 bits."
    return f"{title}\n\n{table(['what', 'seconds', 'of processor'], rows)}"
