"""The sections of a report before they are drawn: the report draws all of them, the dashboard the one that is open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from clops_sweep.experiment.fields import equally_trained, training_of
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import file_name
from clops_sweep.search.records import StudyRecord
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..figures.frames import Frames
from ..figures.task_titles import TaskTitles
from ..results import Reference
from ..selection import cell_name, data_of, fields_unlike_paper
from ..tables.comparisons import Comparisons, comparisons
from ..tables.editions_of_cells import editions_by_cell, same_editions
from .page import Section
from .search_section import build_search_section
from .sections import SectionFiles, build_section

Found = tuple[Experiment, SearchSpace | None, StudyRecord | None]
"""An experiment, the search space that requests its runs, and the study of a search."""


@dataclass(frozen=True)
class PlannedSection:
    """The section of one experiment, not drawn yet.

    Attributes:
        experiment: the experiment.
        references: cells of other experiments to compare with.
        study: the study of a search that has begun.
        is_search: whether its cells are the trials of a search.
        alone: whether it is a single configuration, which appears in the tables and captions of the others.
        draw: computes and draws the section, with the comparisons of `compared` or, without them, its own.
        titles: titles of its tasks.
    """

    experiment: Experiment
    references: tuple[Reference, ...]
    study: StudyRecord | None
    is_search: bool
    alone: bool
    draw: Callable[[SectionFiles, Comparisons | None], Section]
    titles: TaskTitles

    def compared(self) -> Comparisons:
        """Return the comparisons that the section shows; none for a search."""
        if self.is_search or self.alone:
            return Comparisons(self.experiment.name, ())
        return comparisons(self.experiment, self.references)


def planned_sections(
    found: Sequence[Found], store: RunStore, axes: tuple[str, str] | None = None, frames: Sequence[Frames] = ()
) -> list[PlannedSection]:
    """Return a section for each experiment; nothing is drawn and, apart from `found`, nothing is read.

    Experiments that only chose configurations follow the others.
    """
    titles = TaskTitles(frames)
    found = sorted(found, key=lambda it: it[0].is_tuning)  # results first, in the order of the file
    grids = [
        experiment
        for experiment, space, _ in found
        if not experiment.is_tuning and (space is None or space.search is None)
    ]
    referenced = {id(it): _references(it, grids) for it in grids}
    shown_elsewhere = {id(r.experiment) for references, _ in referenced.values() for r in references}
    sections = []
    for experiment, space, study in found:
        name = file_name(experiment.name)
        references, apart = referenced.get(id(experiment), ((), ()))
        alone = len(experiment.cells) == 1 and id(experiment) in shown_elsewhere
        draw: Callable[[SectionFiles, Comparisons | None], Section]
        draw = partial(build_section, experiment, references, store, name, axes, frames, titles, apart)
        is_search = space is not None and space.search is not None
        if space is not None and is_search:
            draw = _search_section(partial(build_search_section, space, study, experiment, store, name, titles=titles))
        sections.append(PlannedSection(experiment, references, study, is_search, alone, draw, titles))
    return sections


def _search_section(draw: Callable[[SectionFiles], Section]) -> Callable[[SectionFiles, Comparisons | None], Section]:
    """Return a function that draws the section of a search, which compares nothing."""
    return lambda files, _: draw(files)


def _references(
    experiment: Experiment, experiments: Sequence[Experiment]
) -> tuple[tuple[Reference, ...], tuple[str, ...]]:
    """Return other strategies on the same tasks with equal training, fine-tuning first.

    They come from spaces without numeric axes. On each data set and scenario, one configuration of a strategy is used:
    the one closest to the paper's.

    Returns:
        The references; and a sentence on each that is left out because its runs are of prepared data of other content
        or of another semantics version.
    """
    if not experiment.number_axes:
        return (), ()
    by_training: dict[tuple[object, ...], list[int]] = {}
    for index, cell in enumerate(experiment.cells):
        by_training.setdefault(training_of(cell.config), []).append(index)
    editions = editions_by_cell(experiment)
    apart: dict[str, None] = {}
    strategies = {cell.config.strategy for cell in experiment.cells}
    found: dict[tuple[str, str, str], tuple[int, Reference]] = {}
    for other in experiments:
        if other is experiment or other.number_axes or not other.shown:
            continue
        theirs = editions_by_cell(other)
        for index, cell in enumerate(other.cells):
            strategy = cell.config.strategy
            same = by_training.get(training_of(cell.config), ())
            alike = [position for position in same if equally_trained(cell.config, experiment.cells[position].config)]
            if strategy in strategies or not alike:
                continue
            name = cell_name(cell) or other.name
            of_cell = theirs.get(index, {})
            if not all(same_editions(editions.get(position, {}), of_cell) for position in alike):
                apart[f"Not compared with {name}: its runs are of {'; '.join(map(str, other.shown))}."] = None
                continue
            unlike = len(fields_unlike_paper(cell.config))
            key = (*data_of(cell), strategy)
            if key not in found or unlike < found[key][0]:
                found[key] = unlike, Reference(name, other, index)
    ordered = sorted(found, key=lambda key: key[-1] != "finetune")
    return tuple(found[key][1] for key in ordered), tuple(apart)
