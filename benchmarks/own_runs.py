"""Whole runs of the data set `wearable` of docs/own_data.md, by the native kernels and by PyTorch."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from benchmarks.timing import table
from clops_sweep import ContinualRun, Recordings, RunConfig, dataset, native
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames, prepare

WINDOWS, CHANNELS, SAMPLES, PEOPLE = 2_000, 3, 100, 40
CLASSES = ("rest", "walk", "run", "stairs")
METHODS = ("finetune", "er", "ewc")


@dataset("benchmark_wearable", files=["wearable.npz"])
def wearable(data_root: Path) -> Recordings:
    """Return noise with a sine wave whose frequency depends on the class."""
    file = np.load(data_root / "wearable.npz")
    return Recordings(
        signals=file["x"],
        sampling_rate=50,
        channels=("ax", "ay", "az"),
        units="g",
        labels=file["y"],
        classes=CLASSES,
        patients=file["subject"],
    )


def _write(path: Path) -> None:
    stream = np.random.default_rng(0)
    labels = np.arange(WINDOWS) % len(CLASSES)
    time_of_sample = np.arange(SAMPLES) / 50
    waves = np.sin(2 * np.pi * (1 + labels)[:, None, None] * time_of_sample)
    noise = stream.standard_normal((WINDOWS, CHANNELS, SAMPLES))
    np.savez(path, x=(waves + noise).astype(np.float32), y=labels, subject=np.arange(WINDOWS) * PEOPLE // WINDOWS)


@contextmanager
def kernels_set_to(choice: str) -> Iterator[None]:
    """Return a context in which runs use the kernels with this name, or PyTorch for "off"."""
    before = os.environ.get(native.ENVIRONMENT)
    os.environ[native.ENVIRONMENT] = choice
    try:
        yield
    finally:
        os.environ.pop(native.ENVIRONMENT)
        if before is not None:
            os.environ[native.ENVIRONMENT] = before


def _seconds(config: RunConfig, frames: FrameSet, choice: str) -> float:
    with kernels_set_to(choice):
        began = time.process_time()
        result = ContinualRun(config, frames).run()
        taken = time.process_time() - began
    expected = "torch" if choice == "off" else f"native-{choice}"
    assert result.runs["backend"].tolist() == [expected]
    return taken


def run(*, quick: bool = False) -> str:
    """Return the section of results.md."""
    variant = native.available()[0]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _write(root / "wearable.npz")
        prepare("benchmark_wearable", prepared_root=root / "prepared", data_root=root)
        for method in METHODS:
            config = RunConfig(
                dataset="benchmark_wearable",
                network="small_cnn",
                strategy=method,
                epochs_per_task=1 if quick else 10,
            )
            frames = open_frames(config.dataset, prepared_root=root / "prepared", leads=config.leads)
            taken: dict[str, list[float]] = {variant: [], "off": []}
            for _ in range(1 if quick else 3):
                for choice, of_choice in taken.items():
                    of_choice.append(_seconds(config, frames, choice))
            kernels, pytorch = min(taken[variant]), min(taken["off"])
            rows.append([f"`{method}`", f"{pytorch:.1f}", f"{kernels:.2f}", f"{pytorch / kernels:.1f}"])
    header = ["method", "PyTorch, s", f"{variant}, s", "times as fast"]
    return (
        f"## Whole runs on own data\n\n`small_cnn`, {WINDOWS:,} windows of {CHANNELS} x {SAMPLES}, four classes in two "
        "tasks, ten epochs per task: processor seconds of a run with evaluation and metrics, the best of three in "
        "turn.\n\n" + table(header, rows)
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(run())
