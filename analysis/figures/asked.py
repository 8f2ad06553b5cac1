"""What figures of an experiment are made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..drawing.pictures import Sketch
from ..results import Reference
from .frames import Frames
from .task_titles import TaskTitles


@dataclass(frozen=True)
class Asked:
    """An experiment whose figures are asked for.

    Attributes:
        experiment: the experiment.
        store: the store.
        prefix: beginning of the names of its figures.
        titles: titles of its tasks.
        axes: the two axes of heatmaps; None without.
        references: cells of other experiments to compare with.
        frames: the available prepared frames.
        cells: the cells to draw by task, each in a panel; None for a typical one of each variant.
    """

    experiment: Experiment
    store: RunStore
    prefix: str
    titles: TaskTitles
    axes: tuple[str, str] | None = None
    references: Sequence[Reference] = ()
    frames: Sequence[Frames] = ()
    cells: Sequence[int] | None = None


def shown_or_said(make: Callable[[], Sketch | str]) -> list[Sketch | str]:
    """Return a figure, or a sentence on why it is missing."""
    try:
        return [make()]
    except ValueError as error:  # includes UsageError
        text = str(error)
        return [text[0].upper() + text[1:] + "."]
