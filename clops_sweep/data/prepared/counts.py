"""Counts of a data set: frames and patients per class, task, split and patient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import SPLIT_NAMES, FrameSet

if TYPE_CHECKING:
    from clops_sweep.data.prepared.frame_table import FrameTable
    from clops_sweep.data.prepared.manifest import Manifest
    from clops_sweep.data.scenarios import Scenario


@dataclass(frozen=True)
class Row:
    """A row of a table of counts: its name, and frames and patients per split (or class); None for unknown people."""

    name: str
    frames: tuple[int, ...]
    patients: tuple[int | None, ...]


def class_rows(frames: FrameSet, chosen: NDArray[np.bool_] | None = None) -> list[Row]:
    """Return for each class the frames and patients in training, validation and test, among the `chosen` frames [n]."""
    chosen = np.ones(len(frames), bool) if chosen is None else chosen
    return [
        _row(name, [np.flatnonzero(chosen & has & (frames.split == part)) for part in range(3)], frames)
        for name, has in zip(frames.classes, _has(frames.labels, len(frames.classes)), strict=True)
    ]


def channel_ranges(manifest: Manifest, table: FrameTable) -> list[tuple[str, float, float, int]]:
    """Return name, smallest and largest sample in units, and frames with missing samples of each channel."""
    gain, offset, leads = table.gain.astype(np.float64), table.offset, table.leads
    ends = np.sort(table.statistics[:, :2] * gain[:, None] + offset[:, None], axis=1)
    rows = [np.flatnonzero(leads == code) for code in range(len(manifest.lead_names))]
    return [
        (name, float(ends[of, 0].min()), float(ends[of, 1].max()), manifest.missing.get(name, 0))
        for name, of in zip(manifest.lead_names, rows, strict=True)
        if len(of)
    ]


def task_rows(scenario: Scenario, frames: FrameSet) -> list[Row]:
    """Return for each task the frames and patients in training, validation and test."""
    return [
        _row(
            task.title if task.name in task.title else f"{task.name} ({task.title})",
            [subset.rows for subset in (task.train, task.validation, task.test)],
            frames,
        )
        for task in scenario.tasks
    ]


def total_row(frames: FrameSet, chosen: NDArray[np.bool_] | None = None) -> Row:
    """Return all frames and patients in training, validation and test."""
    chosen = np.ones(len(frames), bool) if chosen is None else chosen
    return _row("all", [np.flatnonzero(chosen & (frames.split == part)) for part in range(3)], frames)


def patient_table(frames: FrameSet, chosen: NDArray[np.bool_] | None = None) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return for each patient the name, the split and the frames of every class, sorted by split and name."""
    chosen = np.ones(len(frames), bool) if chosen is None else chosen
    table = []
    has = _has(frames.labels, len(frames.classes))
    for code, name in enumerate(frames.patient_names):
        rows = np.flatnonzero(chosen & (frames.patients == code))
        if len(rows):
            part = int(frames.split[rows[0]])
            table.append((part, name, tuple(int(of_class[rows].sum()) for of_class in has)))
    return [(name, SPLIT_NAMES[part], counts) for part, name, counts in sorted(table)]


def _row(name: str, parts: list[NDArray[Any]], frames: FrameSet) -> Row:
    return Row(
        name,
        tuple(len(rows) for rows in parts),
        tuple(len(np.unique(frames.patients[rows])) if frames.people_known else None for rows in parts),
    )


def _has(labels: NDArray[Any], classes: int) -> list[NDArray[np.bool_]]:
    """For every class, whether each frame has it, [n] bool."""
    return [labels[:, code] > 0 if labels.ndim == 2 else labels == code for code in range(classes)]
