"""The picture of the generated rhythms: one frame of each class, lead II."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import FrameSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Tracing:
    """One frame: its class, its patient, and the signal [2500] in the unit of the data set."""

    label: str
    patient: str
    signal: NDArray[np.float32]


def one_tracing_per_class(frames: FrameSet, seed: int = 0) -> list[Tracing]:
    """A frame drawn from the training frames of every class, in the reference lead, each of another patient."""
    stream = np.random.default_rng(seed)
    lead = DATASETS[frames.name].reference_lead
    chosen = np.ones(len(frames), bool) if lead is None else frames.leads == frames.lead_names.index(lead)
    tracings, seen = [], set[int]()
    for code, label in enumerate(frames.classes):
        rows = stream.permutation(np.flatnonzero(chosen & (frames.labels == code) & (frames.split == 0)))
        row = next((row for row in rows if int(frames.patients[row]) not in seen), rows[0])
        seen.add(int(frames.patients[row]))
        tracings.append(Tracing(label, frames.patient_names[frames.patients[row]], frames.signal(row[None])[0]))
    return tracings


def draw_tracings(tracings: list[Tracing], seconds: float, unit: str) -> Figure:
    """The tracings in two columns on ECG paper's grid: small squares of 0.2 s and 0.5 in the unit."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MultipleLocator

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
