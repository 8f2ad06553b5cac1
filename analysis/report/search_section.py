"""The report's section on an Optuna search."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from clops_sweep.experiment.spaces.axes import in_words
from clops_sweep.experiment.spaces.search_space import SearchSpace, search_of
from clops_sweep.search.records import StudyRecord
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment, computed_on
from ..drawing.pictures import Picture, Sketch, sketch
from ..failures import failure_notices
from ..figures.asked import shown_or_said
from ..figures.curves import draw_learning_curves, learning_curves
from ..figures.importance import draw_importance, importance
from ..figures.importance import in_words as runs_in_words
from ..figures.optimization_history import (
    draw_optimization_history,
    optimization_history,
)
from ..figures.pareto import draw_pareto_front, pareto_front
from ..figures.slices import draw_slices, slices
from ..figures.task_figures import means_with_bands
from ..figures.task_titles import TaskTitles
from ..formats import plural
from ..metrics import metric_named, words
from ..search_trials import BestTrials, best_trials, best_trials_text
from .page import LinkedTable, RunEntry, RunList, Section
from .sections import SectionFiles, replicates_in_words, tuning_notice, with_split

MOST_CURVES = 4


def build_search_section(
    space: SearchSpace,
    record: StudyRecord | None,
    experiment: Experiment,
    store: RunStore,
    prefix: str,
    files: SectionFiles,
    titles: TaskTitles,
) -> Section:
    """Compute and draw the section of one search; figures that cannot be shown are named with the reason."""
    sketches: list[Sketch] = []
    more: list[Sketch | str] = []
    tables: list[LinkedTable] = []
    runs: list[RunList] = []
    if record is not None and record.of("complete"):
        is_together = space.name in files.together
        if not is_together:
            sketches.append(_history_picture(record, prefix))
        if len(record.objectives) > 1:
            sketches.append(_pareto_picture(record, prefix))
        best = best_trials(record, experiment)
        tables.append(_table(record, best, experiment, prefix, files))
        runs = list(_run_lists(best, space, prefix))
        for name in record.objectives:
            if name not in experiment.axes:
                more += shown_or_said(partial(_importance_picture, experiment, name, prefix))
        if not is_together:
            more += shown_or_said(partial(_slices_picture, space, record, prefix))
        more += shown_or_said(lambda: _curves_picture(best, experiment, store, prefix, titles))

    def add(item: Sketch) -> Picture:
        return files.add_picture(with_split(item, experiment, list(space.objectives)))

    pictures = [add(item) for item in sketches]
    more_pictures = [add(item) for item in more if isinstance(item, Sketch)]
    return Section(
        prefix,
        space.name,
        _progress(space, record),
        (*tuning_notice(experiment), *_notices(record), *failure_notices(experiment.runs)),
        tuple(pictures),
        tuple(tables),
        tuple(more_pictures),
        tuple(runs),
        tuple(item for item in more if isinstance(item, str)),
    )


def _progress(space: SearchSpace, record: StudyRecord | None) -> str:
    states = [(state, len(record.of(state)) if record else 0) for state in ("complete", "pruned", "failed")]
    counted = [f"{count:,} {state}" for state, count in states if count]
    ended = sum(count for _, count in states)
    return f"{ended:,} of {plural(search_of(space).n_trials, 'trial')}{': ' * bool(counted)}{', '.join(counted)}."


def _notices(record: StudyRecord | None) -> Iterator[str]:
    if record is None or not record.of("complete"):
        yield "No trial of this search is complete yet."
    for trial in record.of("failed")[:3] if record else ():
        yield f"Trial {trial.number} failed: {trial.error or 'unknown error'}."


def _history_picture(record: StudyRecord, prefix: str) -> Sketch:
    histories = optimization_history(record)
    caption = "The value of every complete trial, as mean over its runs, and the best value so far."
    if histories[0].pruned_numbers.size:
        caption += " Below, on their own scale: pruned trials, with their average over the tasks they had trained on."
    return sketch(draw_optimization_history, histories, f"{prefix}-history", "Optimisation history", caption)


def _pareto_picture(record: StudyRecord, prefix: str) -> Sketch:
    front = pareto_front(record)
    caption = (
        "All complete trials, means over their runs. Filled: no other trial is as good in all objectives and better in "
        "one."
    )
    return sketch(draw_pareto_front, front, f"{prefix}-pareto", "Pareto front", caption)


def is_logarithmic(space: SearchSpace) -> dict[str, bool]:
    """Return for each parameter of a search with a range whether it is sampled on a logarithmic scale."""
    scales = dict[str, bool]()
    for name, distribution in search_of(space).distributions.items():
        if not isinstance(distribution, tuple):
            scales[name] = distribution.log
    return scales


def _slices_picture(space: SearchSpace, record: StudyRecord, prefix: str) -> Sketch:
    found = slices(record, is_logarithmic(space))
    caption = "Complete trials by the value of each parameter, means over runs; later trials are darker."
    return sketch(draw_slices, found, f"{prefix}-slices", "Slices", caption)


def _importance_picture(experiment: Experiment, name: str, prefix: str) -> Sketch:
    found = importance(experiment, name)
    caption = (
        "Share of the variance over trials that depends on a parameter, alone or with others (total effect): half the "
        f"permutation importance in a random forest over {runs_in_words(found)}, on held-out seeds. It describes the "
        f"region that the sampler explored. All parameters together explain {found.r2:.0%} of the variance."
    )
    title = f"Importance of the parameters for {found.metric.plain}"
    return sketch(draw_importance, found, f"{prefix}-importance-{name}", title, caption)


def _curves_picture(
    best: BestTrials, experiment: Experiment, store: RunStore, prefix: str, titles: TaskTitles
) -> Sketch:
    cells = dict(zip(experiment.runs["run_id"], experiment.runs["cell"], strict=True))
    records = []
    measure = metric_named(best.objectives[0]).measure or experiment.measure
    for trial in best.trials[:MOST_CURVES]:
        rows = experiment.in_units(store.read("curves", list(trial.run_ids)))
        named = titles.named(rows, experiment, int(cells[trial.run_ids[0]]))
        records.append(learning_curves(named, f"Trial {trial.number}", measure))
    counts = [(record.n, experiment.counted) for record in records]
    caption = (
        f"The first {plural(len(records), 'trial')} of the table: validation {words(measure)} of every task after "
        f"every epoch, {means_with_bands(counts)}. Blocks: the task in training."
    )
    title = "Learning curves of the best trials"
    return sketch(draw_learning_curves, records, f"{prefix}-curves", title, caption, states_split=True)


def _table(
    record: StudyRecord,
    best: BestTrials,
    experiment: Experiment,
    prefix: str,
    files: SectionFiles,
) -> LinkedTable:
    several = len(record.objectives) > 1
    which = "The trials on the Pareto front" if several else "The best trials"
    notes = (
        f"Mean ± standard deviation (n - 1) over {replicates_in_words(experiment)}. Metrics of "
        f"{computed_on([experiment], record.objectives)}. The CSV file has every trial.",
        "The best of many trials is partly best by luck: expect lower values in runs that the search has not used.",
    )
    text = best_trials_text(best, record, f"{prefix}-trials", f"{which} of {record.name}", notes)
    links = tuple(f"{prefix}-runs-{trial.number}" for trial in best.trials)
    return LinkedTable(text, links, files.add_table(text))


def _run_lists(best: BestTrials, space: SearchSpace, prefix: str) -> Iterator[RunList]:
    for trial in best.trials:
        entries = tuple(
            RunEntry(in_words(of), run_id) for of, run_id in zip(space.replicates(), trial.run_ids, strict=True)
        )
        title = f"Trial {trial.number}: {in_words(trial.labels)}"
        yield RunList(f"{prefix}-runs-{trial.number}", title, str(len(entries)), entries)
