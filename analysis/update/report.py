"""Make an update report: compare two models of a store and check the acceptance criteria."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.declared.recording_checks import UNKNOWN, require_few_groups
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.data.prepared.freshness import changes_in_words
from clops_sweep.data.prepared.pseudonyms import SECRET, Pseudonyms, kept_pseudonyms, pseudonyms
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, either, listed, option, prefixed, several, shown
from clops_sweep.experiment.columns import FIELDS, former_settings, origin_of
from clops_sweep.experiment.fields import data_key_of_row, is_missing
from clops_sweep.experiment.plugins.former import FORMER_OPTIONS
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import unregistered
from clops_sweep.store.rows import check_registered
from clops_sweep.store.run_store import RunStore

from ..people.patient_intervals import FEW_COVER, FEW_PEOPLE
from ..people.predicted import Bools
from ..runs_of_folds import counterpart, runs_of_folds
from ..statistics import MIN_UNITS
from .bands import banded
from .copies import copies_in_words
from .criteria import OF_LAST_TASK, Criteria
from .data_facts import by_majority, counts_by_task, described_data
from .earlier import earlier_tasks, of_last_task
from .findings import (
    FILE_OF_CRITERIA,
    HASH_OF_CRITERIA,
    OF_RUNS,
    Decision,
    Findings,
    FoldResult,
    NewClass,
)
from .folds import check_tested_once, tested_once
from .last_task import Known, TaskFacts, brought, by_knowledge, decided, in_common, people_in_training, task_facts
from .measures import FIXED, Measures, Slice, reliability
from .page import render_page, verdict
from .paired import LastUpdate, Paired, joined, last_models, last_update, tasks_in_order
from .people import ChangedPerson, changed_people, confusion, decisions, outputs_of, tracings_of
from .reproduce import Asked, Model, commands_for, models_of
from .stored_model import on_other_data, require_applicable, what_differs
from .verdicts import Tested, decisions_on, on_last_task
from .who import FLIPPED, DecidedPart, FoundPeople, found_people


class UpdateReport(Findings):
    """Findings of an update report with their HTML page; see `Findings` for the attributes."""

    def html(self) -> str:
        """Return the page as self-contained HTML."""
        return render_page(self)

    def __repr__(self) -> str:
        return f"<UpdateReport of run {self.run_id}: {self}>"

    def __str__(self) -> str:
        return f"{self.data['compared on']}. {verdict(self)}"


def make_report(
    store: RunStore,
    run_id: str,
    against: str | None,
    groups: Sequence[str],
    criteria: Criteria | None,
    data: PreparedData,
    criteria_file: Path | None = None,
    *,
    folds: bool = False,
    title: str = "",
) -> UpdateReport:
    """Compare two models of a store.

    Args:
        store: the store of the runs.
        run_id: prefix of the id of the run with the updated model.
        against: prefix of the id of the run whose model is replaced; None for the same run before its last task.
        groups: names of the subgroup columns.
        criteria: acceptance criteria, if any.
        data: the prepared data sets. Required for `groups` and `folds`; without the frames of the run, tasks have no
            titles, and classes are those of the test instances.
        criteria_file: the TOML file that has the criteria, for the command that repeats the report.
        folds: whether to pool the runs that differ from the run in the fold alone, see `runs_of_folds`.
        title: words for the top of the page.

    Raises:
        UsageError: see `clops_sweep.update_report`.
    """
    of_runs = _of_runs(store, run_id, against, data, folds)
    row, other, frames, compared = of_runs.row, of_runs.other, of_runs.frames, of_runs.compared
    if not len(compared.paired):
        raise UsageError(
            f"run {row['run_id']}: no test instance belongs to earlier tasks, so there is nothing to compare"
        )
    facts = compared.facts
    of_parts = _groups([compared.paired, compared.last], of_runs, store, groups)
    paired = replace(compared.paired, groups=of_parts[0])
    last = replace(compared.last, groups=of_parts[1])
    tested = Tested(paired, last, facts)
    measures = Measures(paired)
    judged, learned = tested, measures
    if compared.unseen:
        judged = replace(tested, compared=paired.take(~_is_of(paired, compared.unseen)))
        learned = Measures(judged.compared) if len(judged.compared) else measures
    noun = _noun(frames)
    curve_before = tuple(reliability(paired.before))
    curve_after = tuple(reliability(paired.after))
    everything, *others = _titled(_slices(measures, learned, last), facts)
    before = decisions(paired, paired.before, compared.outputs)
    after = decisions(paired, paired.after, compared.outputs)
    names = pseudonyms(row["dataset"], data.root)
    people = changed_people(paired, before, after, names, facts.titles)
    asked = Asked(
        against=_against(compared, other),
        groups=groups,
        criteria=criteria is not None,
        criteria_file=criteria_file,
        folds=folds,
        title=title,
    )
    pooled = ""
    if folds:
        people_tested = {*paired.patients, *last.patients}
        recipes = 1 if other is None else 2
        pooled = tested_once(
            len(compared.folds), len(people_tested), paired.unit, recipes, are_doubted=facts.are_doubted
        )
    updated = compared.rows[: len(compared.folds)] or [row]
    is_given = frames is not None and of_runs.data.has_given_split(frames.name)
    report = UpdateReport(
        title=title,
        run_id=compared.rows[0]["run_id"],
        against=asked.against,
        folds=compared.folds,
        pooled=pooled,
        other_data=compared.other_data,
        copies=copies_in_words(facts.copies, [*paired.patients, *last.patients], paired.unit, names),
        description=compared.description,
        data=described_data(updated, tested, noun, frames, is_given)
        | _edition(of_runs, data)
        | _origin(row, other)
        | _named(criteria, criteria_file),
        recordings=by_majority(paired, frames) if noun == "window" and frames is not None else "",
        instances=len(paired),
        units=everything.units,
        unit=paired.unit,
        noun=noun,
        resamples=measures.resamples,
        flips=(everything, *others),
        earlier=tuple(earlier_tasks(measures, learned, compared.order, facts, last)),
        counts=tuple(counts_by_task(tested)),
        changed_decisions=measures.changed_decisions(),
        drift=measures.drift(),
        overall=(
            everything.accuracy,
            measures.brier(),
            measures.plain_calibration_error(),
            measures.beyond_chance(),
        ),
        uncut_calibration=measures.calibration_error(),
        reliability=(curve_before, curve_after),
        classes=tuple(measures.classes()),
        became=measures.became(compared.outputs),
        confusion={"before": confusion(paired, before), "after": confusion(paired, after)},
        people=people,
        new_people=_new_people(compared, names),
        pseudonyms_are_kept=names.is_kept,
        tracings=tracings_of(people, frames),
        without_frames=of_runs.without_frames,
        new=compared.new,
        new_classes=compared.new_classes,
        last_task=on_last_task(tested),
        brought=compared.brought,
        decided=compared.decided,
        judged_on="" if criteria is None else compared.judged_on,
        unknown={name: int((column == UNKNOWN).sum()) for name, column in paired.groups.items()},
        criteria=(),
        limits={} if criteria is None else criteria.by_name,
        judged_before="",
        limitations=(),
        models=tuple(models_of(store, *compared.models)),
        commands=tuple(commands_for(store, compared.rows, asked, data.root, of_runs.data.root)),
    )
    with prefixed(criteria_file) if criteria_file else nullcontext():
        verdicts = () if criteria is None else tuple(_verdicts(criteria, report, judged, learned, compared))
    return replace(report, criteria=verdicts, limitations=tuple(_limitations(report, row, facts)))


def _is_of(paired: Paired, tasks: Sequence[str]) -> Bools:
    """Return which instances are of some tasks."""
    return np.isin(paired.tasks.astype(str), tasks)


def _verdicts(
    criteria: Criteria, report: UpdateReport, judged: Tested, learned: Measures, compared: _Compared
) -> Iterator[Decision]:
    """Yield the verdicts on criteria; where the model before has never seen some tasks, on what it has learned.

    Args:
        criteria: the criteria.
        report: the findings on all compared instances.
        judged: the instances that criteria are about.
        learned: the measures of those of them that both models have learned.
        compared: what the models are compared on.

    Raises:
        UsageError: see `decisions_on`; or no task is new, or none was learned, where a criterion is about one.
    """
    if compared.unseen is None:
        yield from decisions_on(criteria, report, judged)
        return
    new = [name for name in criteria.limits if name in OF_LAST_TASK]
    others = [name for name in criteria.limits if name not in OF_LAST_TASK]
    tasks = f"{judged.facts.domain}s" if judged.facts.changes == "domains" else "tasks"
    one = tasks.removesuffix("s")
    if new and not compared.unseen:
        raise UsageError(
            f"{new[0]}: run {report.against} has learned every {one} of run {report.run_id}, so there is no new {one}; "
            f"leave the criterion out, or take {new[0].replace('new_', '')}"
        )
    missing = [task for task in compared.unseen if task not in judged.last.tasks]
    if new and missing:
        raise UsageError(
            f"{new[0]}: run {report.against} was trained on all {report.unit}s whom run {report.run_id} tests in "
            f"{listed(map(judged.facts.title, missing))}, so none is left to judge; leave the criterion out"
        )
    if others and not len(judged.compared):
        raise UsageError(
            f"{others[0]}: run {report.against} has learned none of the {tasks} that run {report.run_id} tests, and "
            "this criterion is about those that it has learned; leave it out, or take those named min_new_..."
        )
    if not compared.unseen or not others:
        yield from decisions_on(criteria, report, judged)
        return
    everything, *parts = _titled(learned.slices(), judged.facts)
    unseen = [judged.facts.title(task) for task in compared.unseen]
    about_learned = replace(
        report,
        flips=(everything, *parts),
        earlier=tuple(task for task in report.earlier if task.title not in unseen),
        drift=learned.drift(),
        overall=(everything.accuracy, learned.beyond_chance()),
        classes=tuple(learned.classes()),
    )
    yield from decisions_on(criteria, about_learned, judged)


@dataclass(frozen=True, eq=False)
class _OfRuns:
    """The runs of a report: what they are compared on, and the frames they were computed on.

    Attributes:
        row: the row of the run with the updated model.
        other: that of the run whose model is replaced; None for the same run.
        frames: the frames of the run; None without them.
        without_frames: why they are not used; empty if they are.
        compared: what the models are compared on.
        data: the prepared data with the frames: the present ones, or an earlier edition.
    """

    row: Mapping[str, Any]
    other: Mapping[str, Any] | None
    frames: FrameSet | None
    without_frames: str
    compared: _Compared
    data: PreparedData


def _of_runs(store: RunStore, run_id: str, against: str | None, data: PreparedData, folds: bool) -> _OfRuns:
    """Return what `make_report` compares."""
    (row,) = store.rows("runs", run_ids=[store.find(run_id)])
    other = None if against is None else store.rows("runs", run_ids=[store.find(against)])[0]
    if other is not None and other["run_id"] == row["run_id"]:
        raise UsageError(
            f"{option('against')}: a run cannot be compared with itself, and both are run {row['run_id']}; expected "
            f"another run, or no {option('against')}, which compares the run with itself before its last task"
        )
    editions = data
    data = data.holding(data_key_of_row(row), row["data_hash"])
    frames, without_frames = _frames(row, data)
    if folds and without_frames:
        raise UsageError(
            f"{option('folds')}: needs the prepared frames, to see that all folds are of one edition of the data, but "
            f"{without_frames}"
        )
    if folds and other is not None:
        _require_same_edition(store, row, other, data, editions)
        compared = _folds_with_others(store, row, other, data)
    elif folds:
        compared = _over_folds(store, row, data)
    elif other is None:
        compared = _with_itself(row, _predictions(store, row["run_id"]), task_facts(row, frames))
    elif _is_same_data(row, other):
        predictions = [_predictions(store, of["run_id"]) for of in (row, other)]
        compared = _with_other((row, other), predictions, task_facts(row, frames))
    else:
        compared = _with_stored_model(store, (row, other), frames, data, without_frames)
    return _OfRuns(row, other, frames, without_frames, compared, data)


@dataclass(frozen=True, eq=False)
class _Compared:
    """What two models are compared on, and what tells them apart; see `Findings` for the other attributes.

    Attributes:
        rows: rows of the runs, that of the updated model first; of pooled folds one for each fold.
        facts: facts about the tasks.
        order: names of the tasks in the order of training.
        paired: the compared instances.
        last: the test instances of the last task alone; where the model before is applied to other data, those of all
            tasks that it has never seen.
        outputs: the class of outputs that no compared instance has.
        models: the model before and the model after; of pooled folds those of each fold.
        of_new: the instances that `new` measures; None without any.
        orders: titles of the tasks in the order in which two runs learned them, before and after; None if unknown.
        unseen: names of the tasks that the model before has never seen, where it is applied to other data; else None.
    """

    rows: Sequence[Mapping[str, Any]]
    facts: TaskFacts
    order: Sequence[str]
    paired: Paired
    last: Paired
    outputs: Mapping[int, str]
    models: tuple[Sequence[Model], Sequence[Model]]
    description: tuple[tuple[str, str, str], ...]
    decided: str
    new: Slice | None = None
    of_new: Paired | None = None
    new_classes: tuple[NewClass, ...] = ()
    brought: tuple[str, ...] = ()
    folds: tuple[FoldResult, ...] = ()
    other_data: str = ""
    orders: tuple[str, str] | None = None
    unseen: tuple[str, ...] | None = None
    judged_on: str = ""


def _against(compared: _Compared, other: Mapping[str, Any] | None) -> str:
    """Return the id of the run whose model is replaced, of pooled folds that of fold 1; empty for the same run."""
    if other is None:
        return ""
    return str(compared.rows[len(compared.folds) or 1]["run_id"])


def _slices(measures: Measures, learned: Measures, last: Paired) -> Iterator[Slice]:
    """Yield the groups of compared instances; each task has the intervals of its criteria."""
    of_learned = {}
    if learned is not measures:
        of_learned = {part.name: part for part in learned.slices_of("task", learned.paired.tasks)}
    for part in measures.slices():
        if part.column != "task":
            yield part
            continue
        own = of_last_task(measures, last, part.name)
        if own is None:
            yield of_learned.get(part.name, part)
        else:
            yield replace(next(own.slices()), column="task", name=part.name)


def _titled(slices: Iterator[Slice], facts: TaskFacts) -> Iterator[Slice]:
    """Yield groups of instances, those of tasks with the titles of the tasks."""
    for part in slices:
        yield replace(part, name=facts.title(part.name)) if part.column == "task" else part


def _with_itself(row: Mapping[str, Any], predictions: Any, facts: TaskFacts) -> _Compared:
    """Compare a run before and after its last task."""
    update = last_update(predictions)
    return _updated([row], [facts], update, by_knowledge(update, facts))


def _over_folds(store: RunStore, row: Mapping[str, Any], data: PreparedData) -> _Compared:
    """Compare the runs of all folds before and after their last task, each on the people that it tests."""
    rows = runs_of_folds(store, row["run_id"], data)
    names = [str(of_fold["split"]) for of_fold in rows]
    updates = [last_update(_predictions(store, of_fold["run_id"])) for of_fold in rows]
    check_tested_once([update.rows for update in updates], names)
    facts = [task_facts(of_fold, _frames(of_fold, data)[0]) for of_fold in rows]
    known = [by_knowledge(update, of_fold) for update, of_fold in zip(updates, facts, strict=True)]
    for name, update, part in zip(names, updates, known, strict=True):
        if update.tasks != updates[0].tasks or set(part.unavailable) != set(known[0].unavailable):
            raise UsageError(
                f"{names[0]} and {name} differ in tasks, or in the classes that the model before has learned, so their "
                "test sets cannot be pooled"
            )
    whole = LastUpdate(
        rows=joined([update.rows for update in updates]),
        old=np.concatenate([update.old for update in updates]),
        new=np.concatenate([update.new for update in updates]),
        tasks=updates[0].tasks,
    )
    unavailable = {}
    for name in known[0].unavailable:
        unavailable[name] = joined([of_fold.unavailable[name] for of_fold in known])
    pooled = Known(joined([of.old for of in known]), joined([of.new for of in known]), unavailable)
    results = []
    for one, update, part in zip(rows, updates, known, strict=True):
        results.append(_of_fold(one, part.old, update.rows.take(update.new)))
    return replace(_updated(rows, facts, whole, pooled), folds=tuple(results))


def _folds_with_others(
    store: RunStore, row: Mapping[str, Any], other: Mapping[str, Any], data: PreparedData
) -> _Compared:
    """Compare two recipes: the last models of the runs of all folds replace those of the other runs of the same folds.

    Raises:
        UsageError: both runs are of one recipe, or of different folds.
    """
    later = runs_of_folds(store, row["run_id"], data)
    earlier = runs_of_folds(store, other["run_id"], data)
    if {of_fold["run_id"] for of_fold in later} & {of_fold["run_id"] for of_fold in earlier}:
        raise UsageError(
            f"{option('against')}: run {other['run_id']} is a fold of the same settings as run {row['run_id']}; "
            f"expected a run of other settings, or no {option('against')}, which compares each fold with itself before "
            "its last task"
        )
    names = [str(of_fold["split"]) for of_fold in later]
    if names != [str(of_fold["split"]) for of_fold in earlier]:
        raise UsageError(
            f"runs {row['run_id']} and {other['run_id']} have {len(later)} and {len(earlier)} folds; expected runs of "
            "the same folds"
        )
    parts = []
    results = []
    of_rows = []
    for after, before in zip(later, earlier, strict=True):
        _require_same_data(after, before)
        predictions = [_predictions(store, of["run_id"]) for of in (after, before)]
        compared = _with_other((after, before), predictions, task_facts(after, _frames(after, data)[0]))
        parts.append(compared)
        of_rows.append(compared.facts)
        results.append(_of_fold(after, compared.paired, compared.last))
    check_tested_once([part.paired for part in parts], names)
    facts = in_common(of_rows)
    paired = joined([part.paired for part in parts])
    models_before: list[Model] = []
    models_after: list[Model] = []
    for part in parts:
        models_before += part.models[0]
        models_after += part.models[1]
    return _Compared(
        rows=[*later, *earlier],
        facts=facts,
        order=parts[0].order,
        paired=paired,
        last=joined([part.last for part in parts]),
        outputs=dict(facts.outputs),
        models=(models_before, models_after),
        description=tuple(_other_runs(earlier, later, parts[0].orders)),
        decided=decided(paired, facts),
        folds=tuple(results),
        judged_on=_on_all_tasks(facts.title(parts[0].order[-1])),
    )


def _require_same_edition(
    store: RunStore, row: Mapping[str, Any], other: Mapping[str, Any], data: PreparedData, editions: PreparedData
) -> None:
    """Raise a UsageError if two runs of folds are on different editions of a data set.

    Args:
        store: the store.
        row: the row of the run with the updated model.
        other: that of the run whose model is replaced.
        data: the edition of `row`.
        editions: the prepared data, with all editions that are kept.
    """
    key = data_key_of_row(other)
    if other["dataset"] != row["dataset"] or is_missing(other.get("split")):
        return
    if data.data_hash(key) in (None, other["data_hash"]):
        return
    here = _edition_in_words(row, data, editions)
    there = _edition_in_words(other, editions.holding(key, other["data_hash"]), editions)
    same = counterpart(store, other, data)
    if same and same in [of_fold["run_id"] for of_fold in runs_of_folds(store, row["run_id"], data)]:
        remedy = f"both have the same settings, so name a run of other settings on {here}"
    elif same:
        remedy = f"{option('against', same)} has the settings of run {other['run_id']} on {here}"
    else:
        remedy = f"all folds of the settings of run {other['run_id']} are needed on {here}"
    raise UsageError(
        f"{option('against')}: run {other['run_id']} is on {there}, but run {row['run_id']} is on {here}; "
        f"expected runs on one edition: {remedy}"
    )


def _edition_in_words(row: Mapping[str, Any], data: PreparedData, editions: PreparedData) -> str:
    """Return the edition that a run is on, in words.

    Args:
        row: the row of the run.
        data: what `PreparedData.holding` returns for the run.
        editions: the prepared data, with all editions that are kept.
    """
    if data.data_hash(data_key_of_row(row)) != row["data_hash"]:
        return f"an edition of {row['dataset']} that is not kept (data hash {str(row['data_hash'])[:12]})"
    if data.root == editions.root:
        return f"the present edition of {row['dataset']}"
    return f"the earlier edition {data.root.name}"


def _of_fold(row: Mapping[str, Any], compared: Paired, last: Paired) -> FoldResult:
    """Return what the models of one fold do, on the compared instances and on those of the last task."""
    measures = Measures(compared)
    everything = next(measures.slices())
    new = next(Measures(last).slices()) if len(last) else None
    return FoldResult(
        fold=str(row["split"]),
        run_id=str(row["run_id"]),
        instances=everything.instances,
        units=everything.units,
        accuracy=everything.accuracy,
        right_to_wrong=everything.right_to_wrong,
        auc=measures.auc_over_tasks(),
        brier=measures.brier(),
        calibration=measures.plain_calibration_error(),
        new_units=0 if new is None else new.units,
        new_accuracy=None if new is None else new.accuracy.after,
    )


def _updated(
    rows: Sequence[Mapping[str, Any]], of_rows: Sequence[TaskFacts], update: LastUpdate, known: Known
) -> _Compared:
    """Return what runs are compared on before and after their last task.

    Args:
        rows: the row of the run, or of each fold.
        of_rows: the facts about the tasks of each.
        update: the test instances of all of them.
        known: the same instances by what the models before can know of them.
    """
    facts = in_common(of_rows)
    outputs = dict(facts.outputs)
    if facts.by_position is False:
        outputs |= outputs_of(known.unavailable)
    tasks = len(update.tasks)
    before = [Model(row, tasks - 1, tasks) for row in rows]
    after = [Model(row, tasks, tasks) for row in rows]
    return _Compared(
        rows=rows,
        facts=facts,
        order=update.tasks,
        paired=known.old,
        last=update.rows.take(update.new),
        outputs=outputs,
        models=(before, after),
        description=tuple(_last_task(rows, of_rows, update, known, facts)),
        decided=decided(update.rows, facts),
        new=next(Measures(known.new).slices()) if len(known.new) else None,
        of_new=known.new if len(known.new) else None,
        new_classes=tuple(_new_class(name, of) for name, of in known.unavailable.items()),
        brought=tuple(brought(update, known, facts)),
    )


def _with_other(rows: Sequence[Mapping[str, Any]], predictions: Sequence[Any], facts: TaskFacts) -> _Compared:
    """Compare the last models of two runs: that of the first row replaces that of the second."""
    paired = last_models(predictions[1], predictions[0])
    order, learned = [tasks_in_order(of_run) for of_run in predictions]
    orders = _in_titles(learned, facts), _in_titles(order, facts)
    are_told = orders[0] != orders[1] and set(learned) == set(order)
    return _replacing(rows, paired, order, len(learned), facts, orders if are_told else None)


def _in_titles(tasks: Sequence[str], facts: TaskFacts) -> str:
    return listed(facts.title(task) for task in tasks)


def _with_stored_model(
    store: RunStore,
    rows: tuple[Mapping[str, Any], Mapping[str, Any]],
    frames: FrameSet | None,
    data: PreparedData,
    without_frames: str,
) -> _Compared:
    """Compare the stored model of the second row with the last model of the first, which is on other data."""
    require_applicable(store, rows, without_frames)
    assert frames is not None
    predictions = _predictions(store, rows[0]["run_id"])
    facts = task_facts(rows[0], frames)
    applied = on_other_data(store, rows, predictions, frames, data, facts, _noun(frames))
    paired = last_models(applied.before, applied.after)
    order = tasks_in_order(predictions)
    compared = _replacing(rows, paired, order, applied.learned, facts)
    compared = replace(compared, other_data=applied.sentences, unseen=applied.unseen)
    if applied.unseen is None:
        return compared
    learned = [facts.title(task) for task in order if task not in applied.unseen]
    if not applied.unseen:
        about = f"Criteria are about all tasks, which both models have learned: {listed(learned)}."
        return replace(compared, judged_on=about)
    unseen = [facts.title(task) for task in applied.unseen]
    prefix = "each of " if len(unseen) > 1 else ""
    sentence = f"Criteria named min_new_... are about {prefix}{listed(unseen)}, which the model before has never seen"
    if learned:
        sentence += f"; all others are about what it has learned: {listed(learned)}. Other numbers are over all tasks"
    last = paired.take(_is_of(paired, applied.unseen))
    return replace(compared, last=last, judged_on=f"{sentence}.")


def _replacing(
    rows: Sequence[Mapping[str, Any]],
    paired: Paired,
    order: Sequence[str],
    learned: int,
    facts: TaskFacts,
    orders: tuple[str, str] | None = None,
) -> _Compared:
    """Return a comparison of two last models, of which the earlier one has learned a number of tasks."""
    after, before = rows
    last = paired.take(paired.tasks == order[-1])
    updated = Model(after, len(order), len(order))
    replaced = Model(before, learned, learned)
    description = tuple(_other_runs([before], [after], orders))
    return _Compared(
        rows=rows,
        facts=facts,
        order=order,
        paired=paired,
        last=last,
        outputs=dict(facts.outputs),
        models=([replaced], [updated]),
        description=description,
        orders=orders,
        decided=decided(paired, facts),
        judged_on=_on_all_tasks(facts.title(order[-1])),
    )


def _on_all_tasks(last: str) -> str:
    return f"Criteria are about all tasks; those named min_new_... are about the last one, {last}."


def newest_that_fits(store: RunStore, against: Sequence[str] = (), *, folds: bool = False) -> str | None:
    """Return the id of the run that started last, among those with predictions; None without any.

    Without `against`, the run must have a model before its last task: it was not trained on all tasks at once.

    Args:
        store: the store.
        against: ids, or their prefixes, of other runs, which are left out; empty for the same run before its last task.
        folds: whether the run must be that of a fold.
    """
    ids = sorted(store.predicted())
    if not ids:
        return None
    columns = ["run_id", "strategy", "started_at"]
    if folds:
        columns.append("split")
    runs = store.read("runs", ids, columns)
    fits = ~runs["run_id"].str.startswith(tuple(against)) if against else runs["strategy"] != "multitask"
    if folds:
        fits &= runs["split"].notna()
    runs = runs[fits]
    if runs.empty:
        return None
    return str(runs.sort_values(["started_at", "run_id"])["run_id"].iloc[-1])


def _predictions(store: RunStore, run_id: str) -> Any:
    (row,) = store.rows("runs", run_ids=[run_id])
    if row["status"] == "failed":
        raise UsageError(f"run {run_id}: it failed, so it has no predictions: {row['reason']}")
    if run_id not in store.predicted():
        raise UsageError(
            f"run {run_id}: its predictions were not stored; run its search space again with "
            f"{option('keep', 'predictions')}, which adds them to finished runs"
        )
    return store.read("predictions", run_id)


def people_behind(
    store: RunStore,
    run_id: str,
    asked: Sequence[str],
    data: PreparedData,
    *,
    against: str | None = None,
    folds: bool = False,
) -> FoundPeople:
    """Return people of a report with their recordings: on the machine whose reports use their pseudonyms.

    Args:
        store: the store.
        run_id: prefix of the id of a run with predictions.
        asked: pseudonyms, as on the page; `FLIPPED` for all people with a decision that changed.
        data: the prepared data sets, whose folder has the secret.
        against: prefix of the id of the run whose model is replaced, as in `make_report`.
        folds: whether to look in all folds of the run, see `runs_of_folds`.

    Raises:
        UsageError: no person has a pseudonym, or the secret is missing; see also `make_report`.
    """
    whole_id = store.find(run_id)
    (row,) = store.rows("runs", run_ids=[whole_id])
    names = kept_pseudonyms(row["dataset"], data.root)
    of_runs = _of_runs(store, run_id, against, data, folds)
    frames = of_runs.frames
    recordings = None if frames is None else of_runs.data.recording_names(frames)
    people = found_people(_decided_parts(of_runs.compared), names, of_runs.compared.facts, frames, recordings)
    wanted = {name.lower() for name in asked}
    known = {person.pseudonym for person in people}
    missing = [name for name in asked if name.lower() not in known and name != FLIPPED]
    pseudonym_of = {person.person: person.pseudonym for person in people}
    of_ids = [pseudonym_of[name] for name in missing if name in pseudonym_of]
    if missing and len(of_ids) == len(missing):
        raise UsageError(
            f"{option('who')}: expected pseudonyms of the page and no ids of people, and got "
            f"{listed(map(shown, missing))}; for the same people: {option('who', ','.join(of_ids))}"
        )
    if missing:
        has = "has the pseudonym" if len(missing) == 1 else "has one of the pseudonyms"
        raise UsageError(
            f"no person of run {whole_id} {has} {listed(map(shown, missing))} with the secret "
            f"{data.root / SECRET}; a page from elsewhere has other pseudonyms, "
            f"and {option('who', FLIPPED)} lists those of all people whose "
            "decisions changed, with their ids"
        )
    found = []
    for person in people:
        if person.pseudonym in wanted or (FLIPPED in asked and person.changed):
            found.append(person)
    return FoundPeople(whole_id, tuple(found), of_runs.without_frames)


def _decided_parts(compared: _Compared) -> list[DecidedPart]:
    """Return the compared test instances, then those of the last task, each once, with decisions in words."""
    paired, last = compared.paired, compared.last
    rest = last.take(~np.isin(last.instances, paired.instances))
    of_new = np.empty(0, np.int64) if compared.of_new is None else compared.of_new.instances
    is_known = np.isin(rest.instances, of_new)
    parts = []
    for part, known in ((paired, True), (rest.take(is_known), True), (rest.take(~is_known), False)):
        if len(part):
            before, after = (decisions(part, model, compared.outputs) for model in (part.before, part.after))
            parts.append(DecidedPart(part, before, after, known, is_compared=part is paired))
    return parts


def _is_same_data(after: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    return bool(after["dataset"] == before["dataset"] and after["data_hash"] == before["data_hash"])


def _require_same_data(after: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    if not _is_same_data(after, before):
        raise UsageError(
            f"runs {after['run_id']} and {before['run_id']} use different data ({what_differs(after, before)}); "
            "expected runs of one data set, normalisation and patient split"
        )


def _groups(
    parts: Sequence[Paired],
    of_runs: _OfRuns,
    store: RunStore,
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the subgroup columns of each of several parts of the test instances, with the same bands in all."""
    columns: list[dict[str, Any]] = [{} for _ in parts]
    if not names:
        return columns
    row, data = of_runs.row, of_runs.data
    check_registered(row, store)
    if of_runs.without_frames:
        raise UsageError(
            f"{option('groups')}: needs the prepared frames that run {row['run_id']} was computed on, but "
            f"{of_runs.without_frames}"
        )
    DATASETS.register_undeclared(row["dataset"], row["scenario"])
    known = data.groups(data_key_of_row(row), row["data_hash"])
    instances = np.unique(np.concatenate([part.instances for part in parts]))
    for name in dict.fromkeys(names):
        if name not in known:
            there = f"; it has {listed(known)}" if known else ""
            evict = data_command("evict", row["dataset"], prepared_root=data.root)
            raise UsageError(
                f"{option('groups')}: dataset {row['dataset']!r} was prepared without a column {shown(name)}{there}; "
                f"columns come from Recordings(..., groups={{...}}), and '{evict}' lets older "
                "frames be prepared again"
            )
        codes, values = known[name]
        of_instances = np.array(values, object)[codes[instances]]
        in_bands = np.array(banded(name, of_instances.tolist()), dtype=object)
        require_few_groups(option("groups", name), in_bands)
        for part, own in zip(parts, columns, strict=True):
            own[name] = in_bands[np.searchsorted(instances, part.instances)]
    return columns


def _last_task(
    rows: Sequence[Mapping[str, Any]],
    of_rows: Sequence[TaskFacts],
    update: LastUpdate,
    known: Known,
    facts: TaskFacts,
) -> Iterator[tuple[str, str, str]]:
    tasks = len(update.tasks)
    run = rows[0]["run_id"] if len(rows) == 1 else f"{len(rows)} runs, one for each fold"
    yield "run", run, run
    yield "tasks learned", f"{tasks - 1} of {tasks}", f"{tasks} of {tasks}"
    yield "last task", "not learned", facts.title(update.tasks[-1])
    if known.unavailable:
        yield "new classes", "not available before", ", ".join(known.unavailable)
    before = [people_in_training(update.tasks[:-1], of_row) for of_row in of_rows]
    earlier = "unknown without the prepared frames" if facts.people is None else _range_or_unknown(before)
    yield OF_RUNS[1], earlier, _range_or_unknown([row["patients_train"] for row in rows])
    yield "method", str(rows[0]["strategy"]), "the same, continued"


def _number_or_unknown(value: Any) -> str:
    """Return a number as text; "unknown" if it is missing."""
    return "unknown" if is_missing(value) else str(int(value))


def _range_or_unknown(values: Sequence[Any]) -> str:
    """Return the lowest and the highest number as text; "unknown" if one is missing."""
    if any(map(is_missing, values)):
        return "unknown"
    low, high = int(min(values)), int(max(values))
    return str(low) if low == high else f"{low} to {high}"


def _frames(row: Mapping[str, Any], data: PreparedData) -> tuple[FrameSet | None, str]:
    """Return the frames that a run was computed on, or None and the reason why they are not used."""
    missing = unregistered(row)
    if row["dataset"] not in DATASETS:
        missing.append(f"dataset {row['dataset']!r}")
    if missing:
        those = "them" if len(missing) > 1 else "it"
        remedy = either(f"name the file that declares {those} with --plugins", f"import the file that declares {those}")
        return None, f"{listed(missing)} {'are' if len(missing) > 1 else 'is'} not registered; {remedy}"
    key = data_key_of_row(row)
    try:
        data.solve_splits([key])  # data that are prepared again have no split of the run's seed yet
        frames = data.signals(key)
    except UsageError as error:
        return None, str(error)
    if frames is None:
        command = data_command("prepare", row["dataset"], prepared_root=data.root, data_root=data.source)
        if not data.is_outdated(row["dataset"]):
            return None, f"dataset {row['dataset']!r} is not prepared in {data.root}; prepare it with '{command}'"
        changed = changes_in_words(data.changes(row["dataset"])) or "its files or code"
        return None, (
            f"dataset {row['dataset']!r} changed since it was prepared in {data.root} ({changed}); prepare it again "
            f"with '{command}': the frames of the run are used if the earlier edition or the new one is that of the run"
        )
    if frames.data_hash != row["data_hash"]:
        return None, (
            f"dataset {row['dataset']!r} in {data.root} is another edition than that of the run, which is not kept "
            f"there; give the folder that has it with {option('prepared_root')}, or prepare the files of that time "
            "again, into another folder"
        )
    return frames, ""


def _new_people(compared: _Compared, names: Pseudonyms) -> tuple[ChangedPerson, ...]:
    """Return the people of the last task with decisions that changed, among instances that both models can decide."""
    if compared.of_new is None:
        return ()
    before = decisions(compared.of_new, compared.of_new.before, compared.outputs)
    after = decisions(compared.of_new, compared.of_new.after, compared.outputs)
    return changed_people(compared.of_new, before, after, names, compared.facts.titles)


def _new_class(name: str, paired: Paired) -> NewClass:
    of_all = next(Measures(paired).slices())
    return NewClass(name, of_all.instances, of_all.units, of_all.accuracy.after)


def _other_runs(
    befores: Sequence[Mapping[str, Any]], afters: Sequence[Mapping[str, Any]], orders: tuple[str, str] | None
) -> Iterator[tuple[str, str, str]]:
    """Yield what differs between two runs, or between the runs of all folds of two recipes.

    Args:
        befores: rows of the runs whose models are replaced.
        afters: rows of the runs with the updated models.
        orders: titles of their tasks in the order of training, in place of the positions in `task_order`.
    """
    runs = []
    trained = []
    for of_runs in (befores, afters):
        whose = str(of_runs[0]["run_id"])
        runs.append(whose if len(of_runs) == 1 else f"{len(of_runs)} runs, one for each fold: {whose} and others")
        trained.append(_range_or_unknown([row["patients_train"] for row in of_runs]))
    yield OF_RUNS[0], runs[0], runs[1]
    yield OF_RUNS[1], trained[0], trained[1]
    before, after = befores[0], afters[0]
    earlier, later = former_settings(before), former_settings(after)
    for name in (*FIELDS, *OPTIONS, *FORMER_OPTIONS):
        values = before.get(name), after.get(name)
        if name in FORMER_OPTIONS:
            values = earlier.get(name), later.get(name)
        if name == "task_order" and orders is not None and values[0] != values[1]:
            values = orders
        if values[0] != values[1]:
            yield name, *("not used" if value is None else str(value) for value in values)


def _named(criteria: Criteria | None, criteria_file: Path | None) -> dict[str, str]:
    """Return the name of the file of criteria and their SHA-256, of those that there are."""
    if criteria is None:
        return {}
    content = json.dumps(criteria.limits | criteria.demands, sort_keys=True)
    file = {} if criteria_file is None else {FILE_OF_CRITERIA: criteria_file.name}
    return file | {HASH_OF_CRITERIA: hashlib.sha256(content.encode()).hexdigest()}


def _edition(of_runs: _OfRuns, data: PreparedData) -> dict[str, str]:
    """Return that a report is on an earlier edition of the data, with what changed since; empty on the present one.

    Args:
        of_runs: what is compared.
        data: the prepared data of which the earlier edition is kept.
    """
    if of_runs.data is data:
        return {}
    dataset = str(of_runs.row["dataset"])
    changed = data.labels_changed(dataset, of_runs.data)
    since = f"; since then, {changed}" if changed else ""
    return {"edition": f"earlier edition of {dataset}, with the labels of that time{since}"}


def _origin(row: Mapping[str, Any], other: Mapping[str, Any] | None) -> dict[str, str]:
    """Return which run a run began from, by "began from"; empty without one, or if it is compared with that run."""
    origin = origin_of(row)
    if origin is None or (other is not None and other["run_id"] == origin):
        return {}
    run = row["run_id"][:8]
    began = f"Run {run} began from the model of run {origin}, which is not compared here"
    return {"began from": f"{began}; compare with it: update-report {run} --against {origin}"}


def _noun(frames: FrameSet | None) -> str:
    """Return what an instance is: a "recording", a "window" of a recording, or else an "instance"."""
    if frames is None or frames.recordings is None:
        return "instance"
    if len(np.unique(frames.recordings)) == len(frames):
        return "recording"
    if frames.start is None:
        return "instance"
    windows = np.column_stack([frames.recordings, frames.start])
    return "window" if len(np.unique(windows, axis=0)) == len(frames) else "instance"


def _limitations(report: UpdateReport, row: Mapping[str, Any], facts: TaskFacts) -> Iterator[str]:
    yield "A retrospective comparison on stored test predictions. It is no statement about a medical device."
    if report.unit != "patient":
        narrow = "they are too narrow if a person has several"
        yield f"People are unknown. Intervals treat {report.unit}s as if independent: {narrow}."
    if not report.resamples:
        yield f"No intervals: {several(report.units, report.unit)}, and at least {MIN_UNITS} are needed."
    else:
        yield (
            f"Intervals are 95 % bootstrap intervals over {report.resamples:,} resamples of the test "
            f"{report.unit}s. The networks are fixed: other training patients or seeds would give other numbers. "
            "Intervals are not corrected for multiple comparisons. A number has no interval if it is about fewer than "
            f"{MIN_UNITS} {report.unit}s, or if all resamples agree. If no decision became wrong "
            "here, one may still become wrong among others."
        )
    if report.folds:
        k = len(report.folds)
        yield (
            f"The {k} models of the folds share many training patients, so their errors go together; intervals do not "
            "cover this. The model to deploy is another one if it is trained on all patients: by the same recipe, but "
            "untested here. If it is one of the folds, only the patients of that fold are a test of it."
        )
        yield (
            f"Probabilities of {k} models are pooled for the calibration errors, the reliability curve, the drift and "
            "the fixed operating points, which take one threshold for all models. A single model can differ: it has a "
            "calibration and a threshold of its own. The table of folds has those that can be measured in a fold. The "
            "AUC of a task is the mean of the AUCs of the folds, in each of which one model ranks its test instances."
        )
    if report.without_frames:
        yield f"Without the prepared frames of the run: {report.without_frames}."
    if not report.against and facts.trained is None:
        yield (
            f"Classes that the model before had learned are taken from the test {report.noun}s of earlier tasks; its "
            "training data may differ."
        )
    if row.get("split_within") == "time":
        yield (
            "Test data are later parts of recordings of the training patients, not of other patients. Patients in "
            "no task are left out."
        )
    few = [part.title(report.noun) for part in report.flips if part.units < FEW_PEOPLE and part.has_intervals]
    if few:
        yield (
            f"Fewer than {FEW_PEOPLE} {report.unit}s: {listed(few)}. Their intervals are too narrow. They contain the "
            f"true value less often than in 95 % of cases: {FEW_COVER}."
        )
    for name, count in report.unknown.items():
        if count:
            yield f"{several(count, report.noun)} without an entry in {name} are in the group {UNKNOWN!r}."
    yield (
        f"Sensitivity at a specificity of {FIXED:g}, and vice versa, use the best threshold of each model on the "
        f"compared {report.noun}s themselves. A threshold that is fixed beforehand does worse."
    )
