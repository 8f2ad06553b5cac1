"""Selection of configurations that represent an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from clops_sweep.data.catalog import ScenarioName
from clops_sweep.errors import UsageError
from clops_sweep.experiment.axis_names import axis_symbol
from clops_sweep.experiment.config import RunConfig, names_of
from clops_sweep.experiment.fields import DRAWS

from .collect import Cell, Experiment, headline_of, label_text
from .metrics import metric_named

Floats = npt.NDArray[np.float64]
_NO_SETTING = DRAWS | {"strategy"}
"""Fields without a value that is typical of the paper, whose scenario and data set are those of the config."""


def variants(experiment: Experiment, without: Sequence[str]) -> dict[str, list[int]]:
    """Group cells by all axes but some: name of each variant to the indices of its cells."""
    groups: dict[str, list[int]] = {}
    for index, cell in enumerate(experiment.cells):
        groups.setdefault(cell_name(cell, without), []).append(index)
    return groups


def data_of(cell: Cell) -> tuple[str, str]:
    """Return the data set and scenario of a configuration: scores on others cannot be ranked or compared with its."""
    return cell.config.dataset, cell.config.scenario


_SCENARIOS: Mapping[str, str] = {
    "class_il": "class-incremental with known tasks",
    "class_il_union": "class-incremental",
    "time_il": "time-incremental",
    "domain_il": "domain-incremental",
    "subject_il": "subject-incremental",
}


def scenario_in_words(config: RunConfig) -> str:
    """Return the scenario of a configuration in the words of the literature; a custom one by its name.

    The domains of `domain_il` are named: "domain-incremental by ward".
    """
    words = _SCENARIOS.get(config.scenario, config.scenario)
    if config.scenario == "domain_il":
        words += f" by {config.domain}"
    return words


def cells_by_data(experiment: Experiment) -> list[list[int]]:
    """Group the indices of cells by data set and scenario."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index, cell in enumerate(experiment.cells):
        groups.setdefault(data_of(cell), []).append(index)
    return list(groups.values())


def competing_cells(experiment: Experiment, metric: str) -> list[int]:
    """Return the indices of the cells that can be ranked by a metric, ascending.

    Within a data set and scenario only cells with all runs finished compete, once there are any: a mean over few runs
    may be lucky, and the missing ones may have failed for a reason. A finished run without a value counts as missing,
    if a run of another cell has one on this split and seed (`undefined_runs`).
    """
    has_runs = np.asarray(np.isfinite(experiment.by_split(metric)).any(axis=1))
    is_whole = np.asarray(has_runs & (experiment.counts() == experiment.counts("finished")))
    is_whole &= undefined_runs(experiment, metric) == 0
    competing = []
    for cells in cells_by_data(experiment):
        of_data = np.array(cells)
        there = is_whole if is_whole[of_data].any() else has_runs
        competing += of_data[there[of_data]].tolist()
    return sorted(competing)


def undefined_runs(experiment: Experiment, metric: str) -> npt.NDArray[np.int64]:
    """Return how many finished runs of each cell lack a metric that another cell of its data has there.

    On a split without a class, the metric is undefined for all cells, which tells them not apart.
    """
    is_finite = np.isfinite(experiment.by_replicate(metric))
    columns = {replicate: column for column, replicate in enumerate(experiment.replicates)}
    is_finished = np.zeros_like(is_finite)
    finished = experiment.runs[experiment.runs["status"] == "finished"]
    for cell, replicate in zip(finished["cell"].tolist(), experiment.replicates_of(finished), strict=True):
        is_finished[cell, columns[replicate]] = True
    counts = np.zeros(len(experiment.cells), dtype=np.int64)
    for cells in cells_by_data(experiment):
        is_defined = is_finite[cells].any(axis=0)
        counts[cells] = (is_finished[cells] & ~is_finite[cells] & is_defined).sum(axis=1)
    return counts


def cell_name(cell: Cell, without: Sequence[str] = ()) -> str:
    """Return the name of a configuration, "CLOPS, b = 0.25, a = 0.5": its variant, then its other axes."""
    axes = [axis for axis, label in cell.labels.items() if axis not in without and label is not None]
    names = [cell.label(axis) for axis in axes if isinstance(cell.labels[axis], str)]
    places = [axis for axis in axes if not isinstance(cell.labels[axis], str)]
    return ", ".join([*names, *(f"{axis_symbol(axis)} = {cell.label(axis)}" for axis in places)])


def shown_metrics(experiments: Sequence[Experiment]) -> tuple[str, ...]:
    """Return the metrics to show for runs that are shown together; of equal metrics, only the first.

    With two tasks BWT, BWT_t and BWT_lambda are one number.
    """
    shown: dict[str, Floats] = {}
    for metric in headline_of(experiments):
        values = np.concatenate([experiment.by_replicate(metric).ravel() for experiment in experiments])
        known = np.isfinite(values).any()
        if not (known and any(np.array_equal(values, other, equal_nan=True) for other in shown.values())):
            shown[metric] = values
    return tuple(shown)


def typical_cell(experiment: Experiment, cells: Sequence[int]) -> int | None:
    """Return the cell closest to the paper among those with a finished run; of equally close ones, the best.

    Closest means most fields with the defaults of `RunConfig`: b = 0.25, a = 0.5, T = 20, bald_mcd, area, top. Best
    means the best mean of the first headline metric. None if no run of these cells is finished.
    """
    first = experiment.headline[0]
    values = experiment.by_split(first) * (-1 if metric_named(first).better == "lower" else 1)
    finished = [cell for cell in cells if np.isfinite(values[cell]).any()]
    if not finished:
        return None

    def preference(cell: int) -> tuple[int, float, int]:
        return -len(fields_unlike_paper(experiment.cells[cell].config)), float(np.nanmean(values[cell])), -cell

    return max(finished, key=preference)


def setting(cell: Cell) -> str:
    """Describe a configuration with replay: its axes, then b, a and T unless they are axes."""
    stated = cell_name(cell)
    fields = ("storage_fraction", "acquisition_fraction", "mc_samples")
    missing = []
    for name in fields:
        if name not in cell.labels:
            missing.append(f"{axis_symbol(name)} = {label_text(getattr(cell.config, name))}")
    return ", ".join(part for part in (stated, *missing) if part)


def fields_unlike_paper(config: RunConfig) -> list[str]:
    """Return the fields in which a configuration differs from the paper's, and its options other than the defaults.

    None if its scenario or data set is not registered.
    """
    try:
        paper = _paper_config(config.scenario, config.dataset)
    except UsageError:
        return []
    names = [name for name in names_of([config]) if name not in _NO_SETTING]
    return [name for name in names if getattr(config, name) != getattr(paper, name)]


@cache
def _paper_config(scenario: ScenarioName, dataset: str) -> RunConfig:
    return RunConfig(scenario=scenario, dataset=dataset)


def chosen_how(experiment: Experiment, cell: int, axes: Sequence[str]) -> str:
    """Describe a cell by some axes, such as "b = 0.25, a = 0.5"."""
    labels = experiment.cells[cell].labels
    return ", ".join(f"{axis_symbol(axis)} = {label_text(labels[axis])}" for axis in axes if axis in labels)
