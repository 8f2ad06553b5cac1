"""ECG tracings of the instances with the lowest and the highest s, on the paper grid that clinicians read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clops_sweep.analysis.style import colour, decimals, new_figure, styled
from clops_sweep.analysis.task_styles import natural_order
from clops_sweep.errors import BadInput

MILLIVOLT = {"mV": 1.0, "millivolt": 1.0, "uV": 1e-3, "µV": 1e-3, "microvolt": 1e-3, "V": 1e3}

_INCH_PER_MM = 1 / 25.4


class Frames(Protocol):
    """What is needed of a set of prepared frames; `clops_sweep.data.frames.FrameSet` has it."""

    @property
    def name(self) -> str:
        """The data set's name."""

    @property
    def unit(self) -> str:
        """The unit of the signal."""

    @property
    def data_hash(self) -> str:
        """The hash that runs on these frames carry."""

    @property
    def frame_seconds(self) -> float | None:
        """How long a frame lasts, None where that is not known."""

    def __len__(self) -> int: ...

    def signal(self, rows: Any) -> npt.NDArray[np.float32]:
        """The signal of some rows, shape (rows, samples)."""


@dataclass(frozen=True)
class Tracing:
    """One instance's ECG: `signal` in `unit` against `time` in seconds (sample positions where `seconds` is None).

    `task_position`: the task's place among the run's tasks in their natural order, which decides its colour.
    """

    title: str
    task: str
    label: str
    patient: str
    s: float
    instance: int
    time: npt.NDArray[np.float64]
    signal: npt.NDArray[np.float64]
    unit: str
    seconds: float | None
    task_position: int


def tracings(instances: pd.DataFrame, frames: Frames, count: int = 1) -> tuple[Tracing, ...]:
    """The instances of one run with the lowest s, hardest first, then those with the highest, easiest first.

    Args:
        instances: rows of the table `instances`, of one run.
        frames: the prepared frames that the run was trained on.
        count: how many of each.

    Raises:
        BadInput: no instance has an s, or an instance is not among the frames.
    """
    known = instances[instances["s"].notna()].sort_values(["s", "instance"], kind="stable")
    if known.empty:
        raise BadInput("tracings: no instance has an s, as the strategy of this run learns no beta")
    if known["instance"].max() >= len(frames) or known["instance"].min() < 0:
        raise BadInput(f"tracings: the run has instances that are not among the {len(frames)} frames of {frames.name}")
    count = min(count, len(known))
    tasks = natural_order(map(str, instances["task"].unique()))
    chosen = [("lowest s", known.iloc[i]) for i in range(count)]
    chosen += [("highest s", known.iloc[-1 - i]) for i in range(count)]
    signals = frames.signal(np.array([int(row["instance"]) for _, row in chosen])).astype(np.float64)
    scale = MILLIVOLT.get(frames.unit)
    seconds = frames.frame_seconds
    samples = np.arange(signals.shape[1], dtype=float)
    return tuple(
        Tracing(
            title,
            str(row["task"]),
            str(row["label"]),
            str(row["patient"]),
            float(row["s"]),
            int(row["instance"]),
            samples if seconds is None else samples * seconds / samples.size,
            signal if scale is None else signal * scale,
            frames.unit if scale is None else "mV",
            seconds,
            tasks.index(str(row["task"])),
        )
        for (title, row), signal in zip(chosen, signals, strict=True)
    )


@styled
def draw_tracings(records: Sequence[Tracing]) -> Figure:
    """One strip per instance, at 25 mm/s and 10 mm/mV where units are known: small squares of 0.04 s by 0.1 mV.

    Raises:
        BadInput: no record.
    """
    if not records:
        raise BadInput("tracings: nothing to draw")
    clinical = all(r.seconds is not None and r.unit == "mV" for r in records)
    if not clinical:
        figure = new_figure(7.2, 1.75 * len(records) + 0.3)
        for axes, record in zip(figure.subplots(len(records), 1, squeeze=False)[:, 0], records, strict=True):
            _draw_trace(axes, record, _decimals_of_s(records))
            axes.grid(color="#f0b8b8", lw=0.5)
            axes.set_ylabel(record.unit)
            axes.set_xlabel("time, s" if record.seconds is not None else "sample")
        return figure
    # To scale: the axes' size in inches follows from 25 mm per second and 10 mm per millivolt.
    spans = [_millivolt_span(record) for record in records]
    width = max(record.seconds or 0.0 for record in records) * 25 * _INCH_PER_MM
    heights = [(high - low) * 10 * _INCH_PER_MM for low, high in spans]
    gap, left, bottom = 0.42, 0.5, 0.45
    total_height = sum(heights) + gap * len(heights) + bottom
    figure = new_figure(max(width + left + 0.2, 3.4), total_height, layout=None)
    top = total_height
    for record, span, height in zip(records, spans, heights, strict=True):
        top -= gap + height
        inches = figure.get_figwidth()
        axes = figure.add_axes((left / inches, top / total_height, width / inches, height / total_height))
        _draw_trace(axes, record, _decimals_of_s(records))
        axes.set(xlim=(0, width / (25 * _INCH_PER_MM)), ylim=span)
        _draw_clinical_grid(axes, span, width / (25 * _INCH_PER_MM))
    return figure


def describe_tracings(records: Sequence[Tracing]) -> str:
    """The figure in words."""
    places = _decimals_of_s(records)
    parts = [f"{r.title}: task {r.task}, label {r.label}, patient {r.patient}, s = {r.s:.{places}f}" for r in records]
    return f"ECG tracings. {'; '.join(parts)}."


def _decimals_of_s(records: Sequence[Tracing]) -> int:
    """As many as tell the values of s of one figure apart, by two digits of their range."""
    return decimals(float(np.ptp([record.s for record in records])))


def _millivolt_span(record: Tracing) -> tuple[float, float]:
    """Whole large squares around the signal; an outlier beyond 4 mV of the median is cut, not followed."""
    middle = float(np.median(record.signal))
    clipped = np.clip(record.signal, middle - 4, middle + 4)
    low, high = np.floor(clipped.min() / 0.5) * 0.5, np.ceil(clipped.max() / 0.5) * 0.5
    return float(low), float(max(high, low + 1.0))


def _draw_trace(axes: Axes, record: Tracing, places: int) -> None:
    axes.plot(record.time, record.signal, color=colour(record.task_position), lw=0.9, zorder=3)
    title = f"{record.title}: {record.label}, patient {record.patient}, task {record.task}, s = {record.s:.{places}f}"
    axes.set_title(title, loc="left", fontsize=8, fontweight="normal")


def _draw_clinical_grid(axes: Axes, span: tuple[float, float], seconds: float) -> None:
    for step, width, tint in ((1, 0.25, "#f6cccc"), (5, 0.6, "#e89a9a")):
        for x in np.arange(0, seconds + 1e-9, 0.04 * step):
            axes.axvline(x, color=tint, lw=width, zorder=1)
        for y in np.arange(span[0], span[1] + 1e-9, 0.1 * step):
            axes.axhline(y, color=tint, lw=width, zorder=1)
    axes.set_xticks(np.arange(0, seconds + 1e-9, 1.0 if seconds > 2 else 0.2))
    axes.set_yticks(np.arange(np.ceil(span[0]), span[1] + 1e-9, 1.0))
    axes.tick_params(length=2, labelsize=7)
    axes.spines[:].set_visible(False)
    axes.set_ylabel("mV", fontsize=7.5)
    if axes.get_position().y0 < 0.2:
        axes.set_xlabel("time, s (25 mm/s, 10 mm/mV)", fontsize=7.5)
