"""Figures by task: learning curves, R and forgetting, of one configuration of each variant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.store.tables import TableName

from ..collect import Experiment
from ..drawing.pictures import Sketch, sketch
from ..metrics import words
from ..results import Reference
from ..selection import cell_name, chosen_how, typical_cell, variants
from ..statistics import MIN_UNITS, Counted, counted_in_words
from .asked import Asked
from .curves import PREQUENTIAL, LearningCurves, draw_learning_curves, learning_curves
from .forgetting import draw_forgetting, forgetting
from .r_matrices import RMatrix, draw_r_matrices, r_matrix

MAX_PANELS = 12
"""Most configurations, each with a panel."""


class OfUnits(Protocol):
    """The data of a panel, means over `n` units."""

    @property
    def n(self) -> int:
        """Number of units: patient splits, or seeds of one."""


Record = TypeVar("Record", bound=OfUnits)
Counts = Sequence[tuple[int, Counted]]
"""Number and kind of the units of each panel."""


@dataclass(frozen=True)
class Shown:
    """A cell that represents its variant, and its name."""

    experiment: Experiment
    cell: int
    title: str


def task_figures(asked: Asked) -> Iterator[Sketch]:
    """Return figures of learning curves, R and forgetting, for runs that recorded them."""
    experiment, prefix = asked.experiment, asked.prefix
    scales = asked.axes or experiment.number_axes
    if asked.cells is None:
        chosen = shown_cells(experiment, scales, asked.references)
    else:
        chosen = []
        for cell in asked.cells:
            chosen.append(Shown(experiment, cell, cell_name(experiment.cells[cell]) or experiment.name))
    which = ""
    if scales and asked.cells is None:
        which += " Each variant is shown by its configuration closest to the paper's settings; among equals, the best."
    if len(chosen) > MAX_PANELS:
        which += f" The first {MAX_PANELS} of {len(chosen)} configurations are shown."

    measure, metric = experiment.measure, words(experiment.measure)

    def curves_of(rows: pd.DataFrame, title: str, measure: str) -> LearningCurves:
        return learning_curves(rows, title, measure, "test" if experiment.on_test else "validation")

    def records(table: TableName, make: Callable[[pd.DataFrame, str, str], Record]) -> tuple[list[Record], Counts]:
        panels = []
        counts: list[tuple[int, Counted]] = []
        for shown in chosen[:MAX_PANELS]:
            rows = shown.experiment.in_units(asked.store.read(table, list(shown.experiment.run_ids(shown.cell))))
            try:
                panel = make(asked.titles.named(rows, shown.experiment, shown.cell), shown.title, measure)
            except UsageError:  # no rows, or different tasks from run to run: no such figure
                continue
            panels.append(panel)
            counts.append((panel.n, shown.experiment.counted))
        return panels, counts

    split = "Test" if experiment.on_test else "Validation"
    curves, counts = records("curves", curves_of)
    if curves:
        of = f"{split} {metric} of every task after every epoch"
        if curves[0].split == PREQUENTIAL:
            of = f"Prequential {metric}: on the last instances of the stream, each predicted before training on it"
        caption = f"{of}: {means_with_bands(counts)}. Coloured blocks: the task in training.{which}"
        yield sketch(draw_learning_curves, curves, f"{prefix}-curves", "Learning curves", caption, states_split=True)
    matrices, counts = records("r_matrix", _of_several_tasks)
    if matrices:
        caption = (
            f"R[i][j], the {split.lower()} {metric} of task j (column) after training on task i (row): "
            f"{_with_deviation(counts)}, one colour scale for all panels. Frames: the task "
            f"just trained on; left of them tasks learned earlier, right of them tasks not seen yet.{which}"
        )
        title = "Trained on by evaluated on"
        yield sketch(draw_r_matrices, matrices, f"{prefix}-r", title, caption, states_split=True)
    forgotten, counts = records("r_matrix", forgetting)
    if forgotten:
        deviation = ", mean ± one standard deviation" if _most(counts) > 1 else ""
        caption = (
            f"{split} {metric} of every task right after learning it (ring) and at the end of the run (dot), "
            f"{_means(counts)}; on the right their difference{deviation}. "
            "The mean of these differences over all tasks but the last is BWT"
            f"{'' if measure == 'auc' else f' of {metric}'}.{which}"
        )
        title = "Forgetting by task"
        yield sketch(draw_forgetting, forgotten, f"{prefix}-forgetting", title, caption, states_split=True)


def means_with_bands(counts: Counts) -> str:
    """Return what curves show: "mean over 5 patient splits, with one standard deviation".

    Args:
        counts: number and kind of the units of each panel.
    """
    words = _means(counts, "mean")
    if _most(counts) < MIN_UNITS:
        return words
    fewest = min(n for n, _ in counts)
    return f"{words}, with one standard deviation{f' from {MIN_UNITS} on' * (fewest < MIN_UNITS)}"


def _with_deviation(counts: Counts) -> str:
    """Return what cells show: "mean ± standard deviation over 5 patient splits"."""
    return _means(counts, "mean ± standard deviation" if _most(counts) > 1 else "mean")


def _means(counts: Counts, mean: str = "means") -> str:
    """Return "means over 5 patient splits"; "values of single runs" of one seed."""
    if all(count == (1, "seeds") for count in counts):
        return "values of single runs"
    return f"{mean} over {counted_in_words(counts)}"


def _most(counts: Counts) -> int:
    """Return the largest number of units of a panel."""
    return max(n for n, _ in counts)


def _of_several_tasks(rows: pd.DataFrame, title: str, measure: str) -> RMatrix:
    """Return R of one configuration.

    Raises:
        UsageError: it is no figure, as for `r_matrix`, or a single task is evaluated.
    """
    record = r_matrix(rows, title, measure)
    if len(record.evaluated) < 2:
        raise UsageError(f"{title or 'R'}: one task has no matrix")
    return record


def shown_cells(experiment: Experiment, scales: Sequence[str], references: Sequence[Reference]) -> list[Shown]:
    """Return a typical cell of each variant with a finished run, then the references."""
    chosen = []
    for name, cells in variants(experiment, scales).items():
        cell = typical_cell(experiment, cells)
        if cell is not None:
            where = chosen_how(experiment, cell, scales)
            title = ", ".join(part for part in (name, where) if part) or experiment.name
            chosen.append(Shown(experiment, cell, title))
    finished = [reference for reference in references if reference.experiment.run_ids(reference.cell)]
    return chosen + [Shown(reference.experiment, reference.cell, reference.name) for reference in finished]
