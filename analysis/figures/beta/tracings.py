"""Tracings of the instances with the lowest and the highest s: ECG on the grid that clinicians know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clops_sweep.errors import UsageError

from ...drawing.labels import in_lines
from ...drawing.style import colour, decimals, new_figure, styled
from ...drawing.task_styles import natural_order
from ..frames import Frames

Floats = npt.NDArray[np.float64]
MILLIVOLT = {"mV": 1.0, "millivolt": 1.0, "uV": 1e-3, "µV": 1e-3, "microvolt": 1e-3, "V": 1e3}

_ECG_LEAD: Final = re.compile(r"m?l?i{1,3}|a?v[rlf]|m?c?v\d{0,2}r?|(ecg|ekg)[ _-]?\d*", re.IGNORECASE)
"""Pattern of names of ECG leads: I, MLII, aVR, V1, V4R, ECG, ECG2."""

_NORMALIZED = {"minmax": "scaled to [0, 1]", "zscore": "standard deviations"}
"""Unit of normalised frames."""

_INCH_PER_MM = 1 / 25.4
_WIDTH = 7.2
_FONT = 7.5


@dataclass(frozen=True)
class Tracing:
    """One instance: `signal` (channels, samples) in `unit` against `time` in seconds.

    `time` counts samples if `seconds`, the duration, is None. `is_ecg`: the channels are leads of an ECG, in mV.
    `task_position`: index of the task in natural order, which determines its colour.
    """

    title: str
    task: str
    label: str
    patient: str
    s: float
    instance: int
    time: Floats
    signal: Floats
    channels: tuple[str, ...]
    unit: str
    seconds: float | None
    is_ecg: bool
    task_position: int


def tracings(instances: pd.DataFrame, frames: Frames, count: int = 1) -> tuple[Tracing, ...]:
    """Return the instances of one run with the lowest s, hardest first, then those with the highest, easiest first.

    Args:
        instances: rows of the table `instances` of one run.
        frames: the prepared frames that the run was trained on.
        count: number of instances of each kind.

    Raises:
        UsageError: no instance has an s, or an instance is not among the frames.
    """
    with_s = instances[instances["s"].notna()].sort_values(["s", "instance"], kind="stable")
    if with_s.empty:
        raise UsageError("tracings: no instance has an s, as the strategy of this run learns no beta")
    if with_s["instance"].max() >= len(frames) or with_s["instance"].min() < 0:
        raise UsageError(
            f"tracings: the run has instances that are not among the {len(frames)} frames of {frames.name}"
        )
    count = min(count, len(with_s))
    chosen = [("lowest s", with_s.iloc[i]) for i in range(count)]
    chosen += [("highest s", with_s.iloc[-1 - i]) for i in range(count)]
    tasks = natural_order(map(str, instances["task"].unique()))
    signals = frames.signal(np.array([int(row["instance"]) for _, row in chosen])).astype(np.float64)
    records = []
    for (title, row), signal in zip(chosen, signals, strict=True):
        records.append(_tracing(title, row, signal, frames, tasks))
    return tuple(records)


def _tracing(title: str, row: pd.Series, signal: Floats, frames: Frames, tasks: tuple[str, ...]) -> Tracing:
    """Return the tracing of a row of `instances`, from its signal [samples] or [channels, samples]."""
    instance = int(row["instance"])
    task = str(row["task"])
    time = np.arange(signal.shape[-1], dtype=float)
    if frames.frame_seconds is not None:
        time = time * frames.frame_seconds / time.size
    channels = frames.lead_names
    if signal.ndim == 1:
        channels = (frames.lead_names[int(frames.leads[instance])],)
    is_ecg = frames.unit in MILLIVOLT and all(_ECG_LEAD.fullmatch(channel) for channel in channels)
    scale = MILLIVOLT[frames.unit] if is_ecg else 1.0
    unit = "mV" if is_ecg else _NORMALIZED.get(frames.unit, frames.unit)
    return Tracing(
        title=title,
        task=task,
        label=str(row["label"]),
        patient=str(row["patient"]),
        s=float(row["s"]),
        instance=instance,
        time=time,
        signal=np.atleast_2d(signal) * scale,
        channels=channels,
        unit=unit,
        seconds=frames.frame_seconds,
        is_ecg=is_ecg,
        task_position=tasks.index(task),
    )


@styled
def draw_tracings(records: Sequence[Tracing]) -> Figure:
    """Draw a strip per instance, with its channels below one another.

    ECG of known duration is drawn on a grid at 25 mm/s and 10 mm/mV: small squares of 0.04 s by 0.1 mV. The channels of
    other signals share one scale.

    Raises:
        UsageError: no record.
    """
    if not records:
        raise UsageError("tracings: nothing to draw")
    on_paper = all(record.seconds is not None and record.is_ecg for record in records)
    return _on_ecg_paper(records) if on_paper else _plain(records)


def _decimals_of_s(records: Sequence[Tracing]) -> int:
    """Return the number of decimals that distinguishes the values of s in a figure: two digits of their range."""
    return decimals(float(np.ptp([record.s for record in records])))


def _on_ecg_paper(records: Sequence[Tracing]) -> Figure:
    """Draw to scale: the size of the axes follows from 25 mm per second and 10 mm per millivolt."""
    left, bottom = 0.5, 0.45
    width = max(record.seconds or 0.0 for record in records) * 25 * _INCH_PER_MM
    inches = max(width + left + 0.2, 3.4)
    titles = []
    spans_of_records = []
    heights = []
    gaps = []
    for record in records:
        title = _title(record, _decimals_of_s(records), inches - left - 0.1)
        titles.append(title)
        gaps.append(0.3 + 0.13 * (title.count("\n") + 1))
        spans = [_millivolt_span(signal) for signal in record.signal]
        spans_of_records.append(spans)
        heights.append(_sum_of_spans(spans) * 10 * _INCH_PER_MM)
    total = sum(heights) + sum(gaps) + bottom
    figure = new_figure(inches, total, layout=None)
    top = total
    for record, title, spans, height, gap in zip(records, titles, spans_of_records, heights, gaps, strict=True):
        top -= gap + height
        axes = figure.add_axes((left / inches, top / total, width / inches, height / total))
        axes.set_title(title, loc="left", fontsize=8, fontweight="normal")
        _draw_on_grid(axes, record, spans, seconds=width / (25 * _INCH_PER_MM))
        if record is records[-1]:
            axes.set_xlabel("time, s (25 mm/s, 10 mm/mV)", fontsize=_FONT)
    return figure


def _draw_on_grid(axes: Axes, record: Tracing, spans: Sequence[tuple[float, float]], seconds: float) -> None:
    """Draw the channels of an instance below one another, each in its span of millivolts, on the clinical grid."""
    if len(spans) == 1:
        limits = spans[0]
        offsets = [0.0]
    else:
        limits = (-_sum_of_spans(spans), 0.0)
        offsets = _offsets(spans)
    _draw_channels(axes, record, offsets)
    axes.set(xlim=(0, seconds), ylim=limits)
    _draw_clinical_grid(axes, limits, seconds)
    if len(spans) == 1:
        axes.set_yticks(np.arange(np.ceil(limits[0]), limits[1] + 1e-9, 1.0))
        axes.set_ylabel("mV", fontsize=_FONT)
    else:
        _name_channels(axes, record, offsets)


def _sum_of_spans(spans: Sequence[tuple[float, float]]) -> float:
    return sum(high - low for low, high in spans)


def _plain(records: Sequence[Tracing]) -> Figure:
    titles = [_title(record, _decimals_of_s(records), _WIDTH - 0.9) for record in records]
    most = max(len(record.channels) for record in records)
    height = 1.3 if most == 1 else most * min(0.6, max(5 / most, 0.24))
    figure = new_figure(_WIDTH, (height + 0.6) * len(records) + 0.3)
    grid = figure.subplots(len(records), 1, squeeze=False)[:, 0]
    for axes, record, title in zip(grid, records, titles, strict=True):
        axes.set_title(title, loc="left", fontsize=8, fontweight="normal")
        axes.set_xlabel("time, s" if record.seconds is not None else "sample")
        axes.margins(x=0.01)
        if len(record.channels) == 1:
            _draw_channels(axes, record, [0.0])
            axes.set_ylabel(record.unit)
            axes.grid(color="#e3e3e3", lw=0.5)
            continue
        # One scale for all channels, so that they can be compared: bands as high as the largest amplitude.
        band = float(np.ptp(record.signal, axis=1).max()) or 1.0
        middles = (record.signal.max(axis=1) + record.signal.min(axis=1)) / 2
        offsets = [-number * 1.1 * band - middle for number, middle in enumerate(middles)]
        _draw_channels(axes, record, offsets)
        axes.set_ylim(-1.1 * band * (len(record.channels) - 0.45), 0.65 * band)
        _name_channels(axes, record, offsets)
        axes.grid(axis="x", color="#e3e3e3", lw=0.5)
        _draw_scale_bar(axes, band, record.unit)
    return figure


def _title(record: Tracing, places: int, width: float) -> str:
    text = f"{record.title}: {record.label}, patient {record.patient}, task {record.task}{_s(record, places)}"
    return in_lines(text, width, 8)


def _s(record: Tracing, places: int) -> str:
    return f", s = {record.s:.{places}f}" if np.isfinite(record.s) else ""


def _draw_channels(axes: Axes, record: Tracing, offsets: Sequence[float]) -> None:
    for signal, offset in zip(record.signal, offsets, strict=True):
        axes.plot(record.time, signal + offset, color=colour(record.task_position), lw=0.9, zorder=3)


def _name_channels(axes: Axes, record: Tracing, offsets: Sequence[float]) -> None:
    """Write each channel's name at the middle of its values."""
    middles = [float(np.median(signal)) + offset for signal, offset in zip(record.signal, offsets, strict=True)]
    axes.set_yticks(middles, record.channels, fontsize=7)
    axes.tick_params(axis="y", length=0)


def _draw_scale_bar(axes: Axes, band: float, unit: str) -> None:
    """Draw a scale bar of a round number of units at the right edge, about as high as a channel's band."""
    size = 10.0 ** np.floor(np.log10(band))
    size *= next(factor for factor in (5, 2, 1) if factor * size <= band)
    axes.plot([1.012, 1.012], [-size / 2, size / 2], color="#333333", lw=1.6, clip_on=False,
              transform=axes.get_yaxis_transform())  # fmt: skip
    axes.text(1.02, 0, f"{size:g} {unit}", transform=axes.get_yaxis_transform(), va="center", fontsize=_FONT)


def _millivolt_span(signal: Floats) -> tuple[float, float]:
    """Return limits in whole large squares around a signal; values beyond 4 mV of the median are clipped."""
    middle = float(np.median(signal))
    clipped = np.clip(signal, middle - 4, middle + 4)
    low = np.floor(clipped.min() / 0.5) * 0.5
    high = np.ceil(clipped.max() / 0.5) * 0.5
    return float(low), float(max(high, low + 1.0))


def _offsets(bands: Sequence[tuple[float, float]]) -> list[float]:
    """Return the vertical offsets that place bands below one another, from 0 downwards."""
    bottoms = -np.cumsum([high - low for low, high in bands])
    return [float(bottom) - low for bottom, (low, _) in zip(bottoms, bands, strict=True)]


def _draw_clinical_grid(axes: Axes, span: tuple[float, float], seconds: float) -> None:
    low, high = span
    for squares, width, tint in ((1, 0.25, "#f6cccc"), (5, 0.6, "#e89a9a")):
        x = np.arange(0, seconds + 1e-9, 0.04 * squares)
        y = np.arange(low, high + 1e-9, 0.1 * squares)
        axes.vlines(x, low, high, colors=tint, lw=width, zorder=1)
        axes.hlines(y, 0, seconds, colors=tint, lw=width, zorder=1)
    axes.set_xticks(np.arange(0, seconds + 1e-9, 1.0 if seconds > 2 else 0.2))
    axes.tick_params(length=2, labelsize=7)
    axes.spines[:].set_visible(False)
