"""Which configurations stand for an experiment where not all of them can be shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analysis.collect import Cell, Experiment, label_text
from clops_sweep.config import RunConfig

SYMBOLS = {
    "storage_fraction": "b",
    "acquisition_fraction": "a",
    "mc_samples": "T",
    "beta_penalty": "λ",
    "beta_learning_rate": "η",
    "epochs_per_task": "τ",
    "replay_ratio": "ratio",
}
"""How the paper writes the axes that have a symbol."""

PAPER_FRACTIONS = (0.25, 0.5)
"""Storage and acquisition fraction behind the paper's learning curves, s distributions and similarity matrices."""


def departures(config: RunConfig) -> int:
    """In how many fields, seeds aside, a configuration differs from the paper's for its data set and strategy."""
    usual = RunConfig(scenario=config.scenario, dataset=config.dataset, strategy=config.strategy)
    names = set(RunConfig.model_fields) - {"seed", "split_seed"}
    return sum(getattr(config, name) != getattr(usual, name) for name in names)


def variants(experiment: Experiment, without: Sequence[str]) -> dict[str, list[int]]:
    """Cells grouped by all axes but some: the variant's name to positions of its cells, in their order."""
    groups: dict[str, list[int]] = {}
    for index, cell in enumerate(experiment.cells):
        groups.setdefault(cell_name(cell, without), []).append(index)
    return groups


def cell_name(cell: Cell, without: Sequence[str] = ()) -> str:
    """A configuration in words, "CLOPS, b = 0.25, a = 0.5": named variants first, then its place on all other axes."""
    axes = [axis for axis in cell.labels if axis not in without]
    names = [cell.label(axis) for axis in axes if isinstance(cell.labels[axis], str)]
    places = [axis for axis in axes if not isinstance(cell.labels[axis], str)]
    return ", ".join([*names, *(f"{SYMBOLS.get(axis, axis)} = {cell.label(axis)}" for axis in places)])


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
    """The place of a cell on some axes, such as "b = 0.25, a = 0.5"."""
    labels = experiment.cells[cell].labels
    return ", ".join(f"{SYMBOLS.get(axis, axis)} = {label_text(labels[axis])}" for axis in axes if axis in labels)
