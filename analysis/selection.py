"""Which configurations stand for an experiment where not all of them can be shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.collect import Cell, Experiment, label_text
from analysis.heatmaps import axis_title

PAPER_FRACTIONS = (0.25, 0.5)
"""Storage and acquisition fraction behind the paper's learning curves, s distributions and similarity matrices."""


def variants(experiment: Experiment, without: Sequence[str]) -> dict[str, list[int]]:
    """Cells grouped by all axes but some: the variant's name to positions of its cells, in their order."""
    groups: dict[str, list[int]] = {}
    for index, cell in enumerate(experiment.cells):
        groups.setdefault(cell_name(cell, without), []).append(index)
    return groups


def cell_name(cell: Cell, without: Sequence[str] = ()) -> str:
    """A configuration in words: its labels on all axes but some."""
    return ", ".join(
        cell.label(axis) if isinstance(label, str) else f"{axis_title(axis)} = {label_text(label)}"
        for axis, label in cell.labels.items()
        if axis not in without
    )


def typical_cell(experiment: Experiment, cells: Sequence[int]) -> int | None:
    """The cell at the paper's b = 0.25 and a = 0.5 if it has a finished run, else that with the highest mean AUC.

    None where no run of these cells is finished.
    """
    values = experiment.by_replicate("auc")
    finished = [cell for cell in cells if np.isfinite(values[cell]).any()]
    if not finished:
        return None
    for cell in finished:
        config = experiment.cells[cell].config
        if (config.storage_fraction, config.acquisition_fraction) == PAPER_FRACTIONS:
            return cell
    return max(finished, key=lambda cell: (float(np.nanmean(values[cell])), -cell))


def chosen_how(experiment: Experiment, cell: int, axes: Sequence[str]) -> str:
    """The position of a chosen cell on some axes, such as "b = 0.25, a = 0.5"."""
    labels = experiment.cells[cell].labels
    short = {"storage_fraction": "b", "acquisition_fraction": "a", "mc_samples": "T", "replay_ratio": "ratio"}
    return ", ".join(f"{short.get(axis, axis)} = {label_text(labels[axis])}" for axis in axes if axis in labels)
