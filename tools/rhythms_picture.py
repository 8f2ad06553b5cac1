"""The picture of the generated rhythms in docs/datasets.md: one frame of each class, lead II.

python tools/rhythms_picture.py docs/synthetic_rhythms.png
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.commands import default_prepared_root
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.data.scenarios import reference_lead_of


@dataclass(frozen=True, eq=False)
class Tracing:
    """One frame: class, patient, and the signal [2500] in the unit of the data set."""

    label: str
    patient: str
    signal: NDArray[np.float32]


def one_tracing_per_class(frames: FrameSet, seed: int = 0) -> list[Tracing]:
    """Draw one training frame of every class in the reference lead, each of another patient."""
    stream = np.random.default_rng(seed)
    chosen = reference_lead_of(frames)
    tracings, seen = [], set[int]()
    for code, label in enumerate(frames.classes):
        rows = stream.permutation(np.flatnonzero(chosen & (frames.labels == code) & (frames.split == 0)))
        row = next((row for row in rows if int(frames.patients[row]) not in seen), rows[0])
        seen.add(int(frames.patients[row]))
        tracings.append(Tracing(label, frames.patient_names[frames.patients[row]], frames.signal(row[None])[0]))
    return tracings


def draw_tracings(tracings: list[Tracing], seconds: float, unit: str) -> Figure:
    """Draw the tracings in two columns on an ECG grid: small squares of 0.2 s and 0.5 in the unit."""
    rows = -(-len(tracings) // 2)
    figure = Figure(figsize=(12, 1.45 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, sharex=True, squeeze=False)
    for axis, tracing in zip(axes.T.ravel(), tracings, strict=False):
        time = np.arange(len(tracing.signal)) * seconds / len(tracing.signal)
        axis.plot(time, tracing.signal, color="#1b1b1b", linewidth=0.7)
        axis.set_title(f"{tracing.label}  ({tracing.patient})", loc="left", fontsize=9)
        axis.xaxis.set_minor_locator(MultipleLocator(0.2))
        axis.yaxis.set_major_locator(MultipleLocator(1.0))
        axis.grid(which="both", color="#f0c8c8", linewidth=0.5)
        axis.set_xlim(0, seconds)
        axis.tick_params(labelsize=7)
    for axis in axes[-1]:
        axis.set_xlabel("seconds", fontsize=8)
    figure.supylabel(unit, fontsize=8)
    return figure


if __name__ == "__main__":
    drawn = one_tracing_per_class(open_frames("synthetic", prepared_root=default_prepared_root()), seed=1)
    draw_tracings(drawn, seconds=5.0, unit="mV").savefig(sys.argv[1], dpi=110)
