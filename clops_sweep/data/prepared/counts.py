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
    from clops_sweep.data.scenarios.tasks import Scenario, Task


@dataclass(frozen=True)
class Row:
    """A row of a table of counts: its name, and frames and patients per split (or class); None for unknown people."""

    name: str
    frames: tuple[int, ...]
    patients: tuple[int | None, ...]


def class_rows(frames: FrameSet, chosen: NDArray[np.bool_] | None = None) -> list[Row]:
    """Return for each class the frames and patients in training, validation and test, among the `chosen` frames [n]."""
    chosen = np.ones(len(frames), bool) if chosen is None else chosen
    rows = []
    has_class = _has(frames.labels, len(frames.classes))
    for name, has in zip(frames.classes, has_class, strict=True):
        of_splits = _by_split(frames, chosen & has)
        rows.append(_row(name, of_splits, frames))
    return rows


def without_class(frames: FrameSet, chosen: NDArray[np.bool_]) -> str:
    """Return a sentence on the `chosen` frames [n] without any class; empty without any.

    If no frame has several classes, columns of 0 and 1 may lack the column of a class.
    """
    if not frames.multi_label:
        return ""
    of_frames = np.asarray(frames.labels)[chosen].astype(bool).sum(axis=1)
    none = int((of_frames == 0).sum())
    if not none:
        return ""
    sentence = f"{none:,} of {len(of_frames):,} frames have none of the classes"
    if of_frames.max() <= 1:
        sentence += ", and no frame has several: if each should have one, labels lack the column of a class"
    return sentence


def channel_ranges(manifest: Manifest, table: FrameTable) -> list[tuple[str, float, float, int]]:
    """Return name, smallest and largest sample in units, and frames with missing samples of each channel."""
    gain = table.gain.astype(np.float64)
    in_units = table.statistics[:, :2] * gain[:, None] + table.offset[:, None]
    ends = np.sort(in_units, axis=1)
    ranges = []
    for code, name in enumerate(manifest.lead_names):
        rows = np.flatnonzero(table.leads == code)
        if len(rows):
            least = float(ends[rows, 0].min())
            most = float(ends[rows, 1].max())
            ranges.append((name, least, most, manifest.missing.get(name, 0)))
    return ranges


def full_name(task: Task) -> str:
    """Return the name of a task with its title: "0-1 (AFIB / AVB)"; one of them if it contains the other."""
    return task.title if task.name in task.title else f"{task.name} ({task.title})"


def task_rows(scenario: Scenario, frames: FrameSet) -> list[Row]:
    """Return for each task the frames and patients in training, validation and test."""
    rows = []
    for task in scenario.tasks:
        rows.append(_row(full_name(task), [task.train.rows, task.validation.rows, task.test.rows], frames))
    return rows


def total_row(frames: FrameSet, chosen: NDArray[np.bool_] | None = None) -> Row:
    """Return all frames and patients in training, validation and test."""
    chosen = np.ones(len(frames), bool) if chosen is None else chosen
    return _row("all", _by_split(frames, chosen), frames)


def patient_table(frames: FrameSet, chosen: NDArray[np.bool_] | None = None) -> list[tuple[str, str, tuple[int, ...]]]:
    """Return for each patient the name, the split and the frames of every class, sorted by split and name."""
    chosen = np.ones(len(frames), bool) if chosen is None else chosen
    table = []
    has = _has(frames.labels, len(frames.classes))
    for code, name in enumerate(frames.patient_names):
        rows = np.flatnonzero(chosen & (frames.patients == code))
        if len(rows):
            part = int(frames.split[rows[0]])
            counts = tuple(int(of_class[rows].sum()) for of_class in has)
            table.append((part, name, counts))
    return [(name, SPLIT_NAMES[part], counts) for part, name, counts in sorted(table)]


def _by_split(frames: FrameSet, chosen: NDArray[np.bool_]) -> list[NDArray[Any]]:
    """Return the rows of the chosen frames in training, validation and test."""
    return [np.flatnonzero(chosen & (frames.split == part)) for part in range(3)]


def _row(name: str, parts: list[NDArray[Any]], frames: FrameSet) -> Row:
    patients: list[int | None] = [None] * len(parts)
    if frames.people_known:
        patients = [len(np.unique(frames.patients[rows])) for rows in parts]
    return Row(name, tuple(len(rows) for rows in parts), tuple(patients))


def _has(labels: NDArray[Any], classes: int) -> list[NDArray[np.bool_]]:
    """Return for every class whether each frame has it, [n] bool."""
    if labels.ndim == 2:
        return [labels[:, code] > 0 for code in range(classes)]
    return [labels == code for code in range(classes)]
