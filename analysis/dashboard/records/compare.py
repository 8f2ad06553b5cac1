"""Comparison of configurations across experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from clops_sweep.errors import UsageError

from ...collect import Experiment, Family, data_of
from ...results import aligned
from ...statistics import PairedDifference, paired_difference
from .overview import Value, best_value, value_of

REFERENCE = "finetune"
"""The default reference of comparisons."""


@dataclass(frozen=True)
class Compared:
    """A configuration of an experiment.

    Attributes:
        name: name of the experiment.
        experiment: the experiment.
        value: the configuration's metric.
        values: the metric of each run.
        is_reference: whether it is the reference.
        difference: difference from the reference, paired by patient split and seed; None without a reference on the
            same data, or if the splits cannot be paired.
    """

    name: str
    experiment: Experiment
    value: Value
    values: npt.NDArray[np.float64]
    is_reference: bool
    difference: PairedDifference | None


def comparison(
    metric: str, chosen: Sequence[tuple[str, Experiment, int]], reference: tuple[str, int] | None = None
) -> list[Compared]:
    """Return configurations with their metric and their difference from the reference on the same data, best first.

    Args:
        metric: a numeric column of `runs`.
        chosen: experiment name, experiment and index of each configuration.
        reference: experiment name and index of the reference; fine-tuning if it is on other data.
    """
    found = [(name, experiment, value_of(experiment, cell, metric)) for name, experiment, cell in chosen]
    found = [it for it in found if it[2].estimate.n]
    sign = 1 if found and found[0][2].metric.better == "lower" else -1
    found.sort(key=lambda it: (_data(it[1], it[2]), sign * it[2].estimate.mean))
    references: dict[Family, tuple[str, Experiment, int]] = {}
    for name, experiment, value in found:
        is_chosen = (name, value.cell) == reference
        if is_chosen or experiment.cells[value.cell].config.strategy == REFERENCE:
            data = _data(experiment, value)
            before = references.get(data)
            if is_chosen or before is None or (before[0], before[2]) != reference:
                references[data] = name, experiment, value.cell
    return [_compared(metric, *it, references.get(_data(it[1], it[2]))) for it in found]


def best_of_each(metric: str, experiments: Sequence[tuple[str, Experiment]]) -> list[tuple[str, Experiment, int]]:
    """Return the best configuration of each experiment with the metric."""
    found = [(name, it, best_value(it, metric)) for name, it in experiments if metric in it.runs]
    return [(name, it, best.cell) for name, it, best in found if best is not None]


def _compared(
    metric: str, name: str, experiment: Experiment, value: Value, reference: tuple[str, Experiment, int] | None
) -> Compared:
    values = experiment.by_replicate(metric)[value.cell]
    present = values[np.isfinite(values)]
    if reference is None or (name, value.cell) == (reference[0], reference[2]):
        return Compared(name, experiment, value, present, reference is not None, None)
    difference = None
    try:
        (ours, theirs), replicates, known = aligned([(experiment, value.cell), reference[1:]], metric)
        difference = paired_difference(ours, theirs, replicates, known, metric)
    except UsageError:  # folds and random splits
        pass
    return Compared(name, experiment, value, present, False, difference)


def _data(experiment: Experiment, value: Value) -> Family:
    return data_of(experiment.cells[value.cell].config)
