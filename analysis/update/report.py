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
from clops_sweep.data.prepared.pseudonyms import SECRET, kept_pseudonyms, pseudonyms
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, listed, option, prefixed, several, shown
from clops_sweep.experiment.columns import FIELDS, former_settings
from clops_sweep.experiment.fields import OF_DATA, data_key_of_row, is_missing
from clops_sweep.experiment.plugins.former import FORMER_OPTIONS
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import unregistered
from clops_sweep.store.rows import check_registered
from clops_sweep.store.run_store import RunStore

from ..people.patient_intervals import FEW_COVER, FEW_PEOPLE
from ..people.predicted import drawn_units
from ..statistics import MIN_UNITS
from .bands import banded
from .criteria import Criteria
from .findings import Findings, NewClass
from .last_task import Known, TaskFacts, brought, by_knowledge, decided, people_in_training, task_facts
from .measures import FIXED, Measures, Slice, reliability
from .page import render_page, verdict
from .paired import LastUpdate, Paired, last_models, last_update, tasks_in_order
from .people import changed_people, confusion, decisions, outputs_of, tracings_of
from .reproduce import Asked, Model, commands_for, models_of
from .verdicts import Tested, decisions_on, on_last_task


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
) -> UpdateReport:
    """Compare two models of a store.

    Args:
        store: the store of the runs.
        run_id: prefix of the id of the run with the updated model.
        against: prefix of the id of the run whose model is replaced; None for the same run before its last task.
        groups: names of the subgroup columns.
        criteria: acceptance criteria, if any.
        data: the prepared data sets. Required for `groups`; without the frames of the run, tasks have no titles, and
            classes are those of the test instances.
        criteria_file: the TOML file that has the criteria, for the command that repeats the report.

    Raises:
        UsageError: see `clops_sweep.update_report`.
    """
    ids = [store.find(name) for name in (run_id, *([] if against is None else [against]))]
    rows = [store.rows("runs", run_ids=[whole_id])[0] for whole_id in ids]
    predictions = [_predictions(store, whole_id) for whole_id in ids]
    frames, without_frames = _frames(rows[0], data)
    facts = task_facts(rows[0], frames)
    if against is None:
        compared = _with_itself(rows[0], predictions[0], facts)
    else:
        _require_same_data(*rows)
        compared = _with_other(rows, predictions, facts)
    if not len(compared.paired):
        raise UsageError(f"run {ids[0]}: no test instance belongs to earlier tasks, so there is nothing to compare")
    paired = replace(compared.paired, groups=_groups(compared.paired, rows[0], store, groups, data))
    tested = Tested(paired, compared.last, facts)
    measures = Measures(paired)
    noun = _noun(frames)
    curves = tuple(tuple(reliability(model)) for model in (paired.before, paired.after))
    everything, *others = _titled(measures.slices(), facts)
    before, after = (decisions(paired, model, compared.outputs) for model in (paired.before, paired.after))
    names = pseudonyms(rows[0]["dataset"], data.root)
    people = changed_people(paired, before, after, names)
    asked = Asked("" if against is None else ids[1], groups, criteria is not None, criteria_file)
    is_given = frames is not None and data.has_given_split(frames.name)
    report = UpdateReport(
        run_id=ids[0],
        against=asked.against,
        description=compared.description,
        data=_described(rows[0], paired, noun, everything.units, facts, is_given) | _hash_of(criteria),
        instances=len(paired),
        units=everything.units,
        unit=paired.unit,
        noun=noun,
        resamples=measures.resamples,
        flips=(everything, *others),
        changed_decisions=measures.changed_decisions(),
        drift=measures.drift(),
        overall=(
            everything.accuracy,
            measures.brier(),
            measures.plain_calibration_error(),
            measures.beyond_chance(),
        ),
        uncut_calibration=measures.calibration_error(),
        reliability=(curves[0], curves[1]),
        classes=tuple(measures.classes()),
        became=measures.became(compared.outputs),
        confusion={"before": confusion(paired, before), "after": confusion(paired, after)},
        people=people,
        pseudonyms_are_kept=names.is_kept,
        tracings=tracings_of(people, frames),
        without_frames=without_frames,
        new=compared.new,
        new_classes=compared.new_classes,
        last_task=on_last_task(tested),
        brought=compared.brought,
        decided=compared.decided,
        unknown={name: int((column == UNKNOWN).sum()) for name, column in paired.groups.items()},
        criteria=(),
        limitations=(),
        models=tuple(models_of(store, *compared.models)),
        commands=tuple(commands_for(store, rows, asked, data.root)),
    )
    with prefixed(criteria_file) if criteria_file else nullcontext():
        verdicts = () if criteria is None else tuple(decisions_on(criteria, report, tested))
    return replace(report, criteria=verdicts, limitations=tuple(_limitations(report, rows[0], facts)))


@dataclass(frozen=True, eq=False)
class _Compared:
    """What two models are compared on, and what tells them apart; see `Findings` for the other attributes.

    Attributes:
        paired: the compared instances.
        last: the test instances of the last task alone.
        outputs: the class of outputs that no compared instance has.
        models: the model before and the model after.
    """

    paired: Paired
    last: Paired
    outputs: Mapping[int, str]
    models: tuple[Model, Model]
    description: tuple[tuple[str, str, str], ...]
    decided: str
    new: Slice | None = None
    new_classes: tuple[NewClass, ...] = ()
    brought: tuple[str, ...] = ()


def _titled(slices: Iterator[Slice], facts: TaskFacts) -> Iterator[Slice]:
    """Yield groups of instances, those of tasks with the titles of the tasks."""
    for part in slices:
        yield replace(part, name=facts.title(part.name)) if part.column == "task" else part


def _with_itself(row: Mapping[str, Any], predictions: Any, facts: TaskFacts) -> _Compared:
    """Compare a run before and after its last task."""
    update = last_update(predictions)
    known = by_knowledge(update, facts)
    outputs = dict(facts.outputs)
    if facts.by_position is False:
        outputs |= outputs_of(known.unavailable)
    tasks = len(update.tasks)
    return _Compared(
        paired=known.old,
        last=update.rows.take(update.new),
        outputs=outputs,
        models=(Model(row, tasks - 1, tasks), Model(row, tasks, tasks)),
        description=tuple(_last_task(row, update, known, facts)),
        decided=decided(update.rows, facts),
        new=next(Measures(known.new).slices()) if len(known.new) else None,
        new_classes=tuple(_new_class(name, of) for name, of in known.unavailable.items()),
        brought=tuple(brought(update, known, facts)),
    )


def _with_other(rows: Sequence[Mapping[str, Any]], predictions: Sequence[Any], facts: TaskFacts) -> _Compared:
    """Compare the last models of two runs: that of the first row replaces that of the second."""
    paired = last_models(predictions[1], predictions[0])
    tasks = [tasks_in_order(of_run) for of_run in predictions]
    is_last = paired.tasks == tasks[0][-1]
    return _Compared(
        paired=paired,
        last=paired.take(is_last),
        outputs=dict(facts.outputs),
        models=(Model(rows[1], len(tasks[1]), len(tasks[1])), Model(rows[0], len(tasks[0]), len(tasks[0]))),
        description=tuple(_other_run(rows[1], rows[0])),
        decided=decided(paired, facts),
    )


def newest_that_fits(store: RunStore, against: str | None = None) -> str | None:
    """Return the id of the run that started last, among those with predictions; None without any.

    Without `against`, the run must have a model before its last task: it was not trained on all tasks at once.

    Args:
        store: the store.
        against: prefix of the id of another run, which is left out.
    """
    ids = sorted(store.predicted())
    if not ids:
        return None
    runs = store.read("runs", ids, ["run_id", "strategy", "started_at"])
    fits = runs["strategy"] != "multitask" if against is None else ~runs["run_id"].str.startswith(against)
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


def people_behind(store: RunStore, run_id: str, pseudonym: str, prepared_root: Path) -> list[str]:
    """Return the ids of the people of a run with a pseudonym: on the machine whose reports use it.

    Args:
        store: the store.
        run_id: prefix of the id of a run with predictions.
        pseudonym: the pseudonym, as on the page.
        prepared_root: the folder of prepared data sets, which has the secret.

    Raises:
        UsageError: no person has the pseudonym, or the secret is missing.
    """
    whole_id = store.find(run_id)
    (row,) = store.rows("runs", run_ids=[whole_id])
    names = kept_pseudonyms(row["dataset"], prepared_root)
    _, people = drawn_units(_predictions(store, whole_id))
    found = [person for person in sorted(set(people.tolist())) if names.of(str(person)) == pseudonym]
    if not found:
        raise UsageError(
            f"no person of run {whole_id} has the pseudonym {shown(pseudonym)} with the secret "
            f"{prepared_root / SECRET}; a page from elsewhere has other pseudonyms"
        )
    return found


def _require_same_data(after: Mapping[str, Any], before: Mapping[str, Any]) -> None:
    if after["dataset"] == before["dataset"] and after["data_hash"] == before["data_hash"]:
        return
    differing = []
    for name in OF_DATA:
        values = [row.get(name) for row in (after, before)]
        if values[0] != values[1] and not all(map(is_missing, values)):
            differing.append(f"{name} {shown(values[0])} and {shown(values[1])}")
    what = ", ".join(differing) or "the prepared data have changed in between"
    raise UsageError(
        f"runs {after['run_id']} and {before['run_id']} use different data ({what}); "
        "expected runs of one data set, normalisation and patient split"
    )


def _groups(
    paired: Paired,
    row: Mapping[str, Any],
    store: RunStore,
    names: Sequence[str],
    data: PreparedData,
) -> dict[str, Any]:
    """Return the subgroup columns of the compared instances."""
    if not names:
        return {}
    check_registered(row, store)
    DATASETS.register_undeclared(row["dataset"], row["scenario"])
    known = data.groups(data_key_of_row(row), row["data_hash"])
    columns = {}
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
        of_instances = np.array(values, object)[codes[paired.instances]]
        columns[name] = np.array(banded(name, of_instances.tolist()), dtype=object)
        require_few_groups(option("groups", name), columns[name])
    return columns


def _last_task(
    row: Mapping[str, Any], update: LastUpdate, known: Known, facts: TaskFacts
) -> Iterator[tuple[str, str, str]]:
    tasks = len(update.tasks)
    yield "run", row["run_id"], row["run_id"]
    yield "tasks learned", f"{tasks - 1} of {tasks}", f"{tasks} of {tasks}"
    yield "last task", "not learned", facts.title(update.tasks[-1])
    if known.unavailable:
        yield "new classes", "not available before", ", ".join(known.unavailable)
    before = people_in_training(update.tasks[:-1], facts)
    earlier = "unknown without the prepared frames" if facts.people is None else _number_or_unknown(before)
    yield _TRAINED, earlier, _number_or_unknown(row["patients_train"])
    yield "method", str(row["strategy"]), "the same, continued"


_TRAINED = "patients in training"


def _number_or_unknown(value: Any) -> str:
    """Return a number as text; "unknown" if it is missing."""
    return "unknown" if is_missing(value) else str(int(value))


def _frames(row: Mapping[str, Any], data: PreparedData) -> tuple[FrameSet | None, str]:
    """Return the frames that a run was computed on, or None and the reason why they are not used."""
    missing = unregistered(row)
    if row["dataset"] not in DATASETS:
        missing.append(f"dataset {row['dataset']!r}")
    if missing:
        return None, f"{listed(missing)} {'are' if len(missing) > 1 else 'is'} not registered"
    key = data_key_of_row(row)
    try:
        data.solve_splits([key])  # data that are prepared again have no split of the run's seed yet
        frames = data.signals(key)
    except UsageError as error:
        return None, str(error)
    if frames is None:
        return None, f"dataset {row['dataset']!r} is not prepared in {data.root}"
    if frames.data_hash != row["data_hash"]:
        return None, f"dataset {row['dataset']!r} in {data.root} is another edition than that of the run"
    return frames, ""


def _new_class(name: str, paired: Paired) -> NewClass:
    of_all = next(Measures(paired).slices())
    return NewClass(name, of_all.instances, of_all.units, of_all.accuracy.after)


def _other_run(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    yield "run", before["run_id"], after["run_id"]
    yield _TRAINED, _number_or_unknown(before["patients_train"]), _number_or_unknown(after["patients_train"])
    earlier, later = former_settings(before), former_settings(after)
    for name in (*FIELDS, *OPTIONS, *FORMER_OPTIONS):
        values = before.get(name), after.get(name)
        if name in FORMER_OPTIONS:
            values = earlier.get(name), later.get(name)
        if values[0] != values[1]:
            yield name, *("not used" if value is None else str(value) for value in values)


def _hash_of(criteria: Criteria | None) -> dict[str, str]:
    if criteria is None:
        return {}
    content = json.dumps(criteria.limits | criteria.demands, sort_keys=True)
    return {"SHA-256 of the criteria": hashlib.sha256(content.encode()).hexdigest()}


def _noun(frames: FrameSet | None) -> str:
    """Return "recording" if every instance of a data set is a recording of its own, else "instance"."""
    if frames is None or frames.recordings is None:
        return "instance"
    return "recording" if len(np.unique(frames.recordings)) == len(frames) else "instance"


def _described(
    row: Mapping[str, Any], paired: Paired, noun: str, units: int, facts: TaskFacts, split_is_given: bool
) -> dict[str, str]:
    compared = several(len(paired), f"test {noun}")
    split = f"{row.get('split') or 'random'}, split_seed {row['split_seed']}"
    if split_is_given and is_missing(row.get("split")):
        split = "given in the data"
    return {
        "data set": f"{row['dataset']}, scenario {row['scenario']}",
        "compared on": compared
        if paired.unit in ("instance", noun)
        else f"{compared} of {several(units, paired.unit)}",
        "classes": ", ".join(paired.classes),
        "tasks": ", ".join(facts.title(task) for task in dict.fromkeys(paired.tasks)),
        "split of the patients": split,
        "data hash": str(row["data_hash"]),
    }


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
            f"{MIN_UNITS} {report.unit}s, or if all resamples agree; 0 flips here do not exclude flips of others."
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
        yield f"Fewer than {FEW_PEOPLE} {report.unit}s: {listed(few)}. Their intervals cover less: {FEW_COVER}."
    for name, count in report.unknown.items():
        if count:
            yield f"{several(count, report.noun)} without an entry in {name} are in the group {UNKNOWN!r}."
    yield (
        f"Sensitivity at a specificity of {FIXED:g}, and vice versa, use the best threshold of each model on the "
        f"compared {report.noun}s themselves. A threshold that is fixed beforehand does worse."
    )
