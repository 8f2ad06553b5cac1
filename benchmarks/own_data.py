"""Custom data: preparing arrays, compared with copying their file, and opening 100,000 frames of 12 channels."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.timing import table
from clops_sweep import Recordings, dataset
from clops_sweep.data.files.folder import flush
from clops_sweep.data.preparing.prepare import data_hash, open_frames, prepare

CHANNELS, SAMPLES = 12, 250


@dataset("benchmark_own_data", files=["frames.npy"])
def own_data(data_root: Path) -> Recordings:
    """Return integer signals that are read through a memory map."""
    frames = np.load(data_root / "frames.npy", mmap_mode="r")
    number = np.arange(len(frames))
    channels = [f"channel {channel + 1}" for channel in range(CHANNELS)]
    return Recordings(frames, 100, channels, "mV", number % 4, ("a", "b", "c", "d"), number // 5)


def _copied(source: Path, copy: Path) -> None:
    shutil.copyfile(source, copy)
    flush(copy)


def run(*, quick: bool) -> str:
    """Return the section of results.md."""
    count = 5_000 if quick else 100_000
    rows: list[list[str]] = []

    def measure(what: str, work: Callable[[], object]) -> None:
        wall, used = time.perf_counter(), time.process_time()
        work()
        rows.append([what, f"{time.perf_counter() - wall:.2f}", f"{time.process_time() - used:.2f}"])

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "data"
        root.mkdir()
        stream = np.random.default_rng(0)
        np.save(root / "frames.npy", stream.integers(-2000, 2000, (count, CHANNELS, SAMPLES), dtype=np.int16))
        for turn in range(1 if quick else 3):  # kept until the end, so that each file is written to new disk space
            copy, prepared = Path(folder) / f"copy {turn}", Path(folder) / f"prepared {turn}"
            for place in ("a new place", "the place of one that was removed"):
                copy.unlink(missing_ok=True)
                shutil.rmtree(prepared, ignore_errors=True)
                os.sync()
                measure(f"copy the file to {place}, and flush it", partial(_copied, root / "frames.npy", copy))
                measure(
                    f"prepare to {place}",
                    partial(prepare, "benchmark_own_data", prepared_root=prepared, data_root=root),
                )
        for leads in ("all", "single"):
            measure(
                f'open, leads="{leads}", zscore',
                lambda leads=leads: open_frames(  # type: ignore[misc]
                    "benchmark_own_data", prepared_root=prepared, leads=leads, normalize="zscore"
                ),
            )
        measure("data hash", lambda: data_hash("benchmark_own_data", prepared_root=prepared, leads="all"))
    title = f"## Own data\n\n{count:,} frames of {CHANNELS} channels and {SAMPLES} samples of 16 bits."
    return f"{title}\n\n{table(['what', 'seconds', 'of processor'], rows)}"
