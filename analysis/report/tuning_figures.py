"""Figures of tuning that show all methods of a tuned space beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.search_space import SELECTION
from clops_sweep.experiment.spaces.selection import file_name

from ..drawing.pictures import Sketch, sketch
from ..figures.optimization_history import MethodHistory, draw_histories, optimization_history
from ..figures.slices import MethodSlices, draw_slices_of_methods, slices
from ..leading import what_was_tuned
from .planned import Found
from .search_section import is_logarithmic

MOST_METHODS = 8
"""Most methods of a tuned space in one figure."""


@dataclass(frozen=True)
class TuningFigures:
    """The figures of a tuned space.

    Attributes:
        sketches: the figures.
        searches: names of the search spaces whose own figures they replace.
    """

    sketches: tuple[Sketch, ...] = ()
    searches: frozenset[str] = frozenset()


def tuning_figures(found: Sequence[Found], space: str, prefix: str) -> TuningFigures:
    """Return the figures of all methods of a tuned space; none of a single method, of many, or with pruned trials.

    Args:
        found: the experiments of a page.
        space: name of the tuned space.
        prefix: beginning of the names of the figures.
    """
    histories: list[MethodHistory] = []
    of_parameters: list[MethodSlices] = []
    names: list[str] = []
    for experiment, of_search, study in found:
        if of_search is None or study is None or not experiment.is_tuning or not study.of("complete"):
            continue
        if experiment.name.rpartition(SELECTION)[0] != space:
            continue
        title = what_was_tuned(experiment.name, {space})
        histories.append(MethodHistory(title, optimization_history(study)[0]))
        with suppress(UsageError):  # no parameter varies
            of_parameters.append(MethodSlices(title, slices(study, is_logarithmic(of_search))))
        names.append(of_search.name)
    has_pruned = any(method.history.pruned_numbers.size for method in histories)
    if not 1 < len(histories) <= MOST_METHODS or has_pruned:
        return TuningFigures()
    name = f"{prefix}-{file_name(space)}"
    caption = "The value of every complete trial, as mean over its runs, and the best value so far. "
    validation = "Metrics of the validation set."
    sketches = [
        sketch(draw_histories, histories, f"{name}-history", "Optimisation history by method", caption + validation)
    ]
    if of_parameters:
        caption = "Complete trials by the value of each parameter, means over runs; later trials are darker. "
        title = "Slices by method"
        sketches.append(sketch(draw_slices_of_methods, of_parameters, f"{name}-slices", title, caption + validation))
    return TuningFigures(tuple(sketches), frozenset(names))
