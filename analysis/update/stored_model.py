"""The stored model of one run on the test people of another, whose data it does not know."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.nameless_notes import doubt_people
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.scenarios.leaks import Seen
from clops_sweep.errors import UsageError, listed, option, several, shown
from clops_sweep.experiment.fields import OF_DATA, data_key_of_row, is_missing
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.learning.models.model_facts import ModelFacts, facts_in
from clops_sweep.learning.networks.multitask import joint_scenario
from clops_sweep.planning.changes import change_of_network
from clops_sweep.store.run_store import RunStore

from ..people.predicted import Bools, drawn_units
from .copies import by_id_alone
from .last_task import TaskFacts, config_of_tasks
from .paired import Ints

_OF_PLACES = ("domains", "dates")
"""What changes from task to task where a name of a task means the same in other data."""


@dataclass(frozen=True, eq=False)
class OnOtherData:
    """Two models on the same test instances, where the earlier one was trained on other data.

    Attributes:
        before: rows of `predictions` as the stored model gives them, after all its tasks.
        after: rows of `predictions` of the run whose model is the updated one: its last stage on the same instances.
        learned: number of tasks that the stored model has learned.
        sentences: what was compared, how many people were left out, and which tasks the stored model has not seen.
        unseen: names of the tested tasks that the stored model has never seen; None where names of tasks do not tell,
            as they mean other things in other data.
    """

    before: pd.DataFrame
    after: pd.DataFrame
    learned: int
    sentences: str
    unseen: tuple[str, ...] | None


def on_other_data(
    store: RunStore,
    rows: tuple[Mapping[str, Any], Mapping[str, Any]],
    predictions: pd.DataFrame,
    frames: FrameSet,
    data: PreparedData,
    facts: TaskFacts,
    noun: str,
) -> OnOtherData:
    """Return the predictions of a stored model for the test instances of a run on other data.

    People whom the stored model has seen in training or validation are left out, with all their instances.

    Args:
        store: the store.
        rows: rows of the runs, that of the updated model first.
        predictions: the predictions of the updated model.
        frames: the signals that its run was computed on.
        data: the prepared data sets.
        facts: facts about its tasks.
        noun: what an instance is in words.

    Raises:
        UsageError: the model is not stored or cannot be made, its classes, channels, rate or length of frames are not
            those of the run, or it has seen all test people.
    """
    after, before = rows
    run_id = str(before["run_id"])
    encoders = data.encoders
    assert encoders is not None  # a command on a store knows its models
    stored = facts_in(store.models.read(run_id), f"model of run {run_id}")
    order = _outputs(after, before, stored, _facts_of_run(after, frames))
    tested = predictions[predictions["trained_on"] == predictions["trained_on"].max()]
    tested = tested[tested["evaluated_on"] > 0]
    instances = tested["instance"].to_numpy(np.int64)
    seen = stored.seen if stored.encoder is None else stored.seen | encoders.seen(stored.encoder)
    is_seen = _people_seen(seen, frames, instances)
    unit, people = drawn_units(tested)
    all_people, left_out = len(np.unique(people)), len(np.unique(people[is_seen]))
    if is_seen.all():
        raise UsageError(
            f"{option('against')}: the model of run {run_id} was trained on all {several(all_people, unit)} "
            f"whom run {after['run_id']} tests; expected a run that tests others"
        )
    kept = tested[~is_seen]
    not_normalized = data.frames(data_key_of_row(after).signals._replace(normalize="none"))
    logits, probabilities = encoders.predicted(run_id, not_normalized, instances[~is_seen])
    columns = {}
    for output, of_stored in enumerate(order):
        columns[f"logit_{output}"] = logits[:, of_stored]
        columns[f"probability_{output}"] = probabilities[:, of_stored]
    unseen = _never_seen(stored, before, after, facts, predictions)
    sentences = [
        f"The runs are on different data, so the stored model of run {run_id[:8]} was applied to the "
        f"test {noun}s of run {str(after['run_id'])[:8]}.",
        left_out_in_words(left_out, all_people, unit, doubt_people(frames.leaks)),
        *_learned_in_words(stored, facts, unseen),
        *filter(None, [change_of_network(store, run_id)]),
    ]
    return OnOtherData(kept.assign(**columns), kept, len(stored.tasks), " ".join(sentences), unseen)


def require_applicable(store: RunStore, rows: tuple[Mapping[str, Any], Mapping[str, Any]], without_frames: str) -> None:
    """Raise a UsageError if the store has no model of the earlier run, or the frames of the later one are missing."""
    after, before = rows
    run_id = str(before["run_id"])
    if not store.models.has(run_id, "last"):
        raise UsageError(
            f"runs {after['run_id']} and {run_id} use different data ({what_differs(after, before)}), and the model "
            f"of run {run_id} is not stored; expected a run with its model, which {option('keep', 'models')} keeps, or "
            "runs of one data set, normalisation and patient split"
        )
    if without_frames:
        raise UsageError(
            f"{option('against')}: the stored model of run {run_id} is applied to the prepared frames of run "
            f"{after['run_id']}, but {without_frames}"
        )


def what_differs(after: Mapping[str, Any], before: Mapping[str, Any]) -> str:
    """Return the settings of the data in which two runs differ, in words."""
    differing = []
    for name in OF_DATA:
        values = [row.get(name) for row in (after, before)]
        if values[0] != values[1] and not all(map(is_missing, values)):
            differing.append(f"{name} {shown(values[0])} and {shown(values[1])}")
    return ", ".join(differing) or "the prepared data have changed in between"


def _facts_of_run(row: Mapping[str, Any], frames: FrameSet) -> ModelFacts:
    """Return the facts of the last model of a run, without people."""
    config = config_of_tasks(row)
    scenario = scenario_of(config, frames)
    if row["strategy"] == "multitask":
        scenario = joint_scenario(scenario)
    return ModelFacts.of(config, frames, scenario, len(scenario.tasks), Seen.nothing(frames.name))


def _outputs(
    after: Mapping[str, Any], before: Mapping[str, Any], stored: ModelFacts, updated: ModelFacts
) -> Sequence[int]:
    """Return the output of the stored model for each output of the updated one; classes are matched by name.

    Raises:
        UsageError: classes, kinds of decisions, channels, rates, lengths or units differ.
    """
    differing = [*_differing_signals(stored, updated)]
    by_position = stored.kind == "binary" or len(set(stored.classes)) < len(stored.classes)
    by_position = by_position or any("|" in name for name in (*stored.classes, *updated.classes))
    same = stored.classes == updated.classes if by_position else {*stored.classes} == {*updated.classes}
    if not same:
        differing.append(f"classes {listed(stored.classes)} and {listed(updated.classes)}")
    per_class = "per_class" in (before.get("head"), after.get("head"))
    if stored.kind != updated.kind and not (per_class and "binary" not in (stored.kind, updated.kind)):
        differing.append(f"decisions of the kinds {stored.kind} and {updated.kind}")
    if differing:
        raise UsageError(
            f"{option('against')}: the model of run {before['run_id']} cannot be applied to the data of run "
            f"{after['run_id']}, which differ in {'; '.join(differing)}; expected runs with the same classes, "
            "channels, sampling rate and length of frames"
        )
    if by_position:
        return range(len(stored.classes))
    return [stored.classes.index(name) for name in updated.classes]


def _differing_signals(stored: ModelFacts, updated: ModelFacts) -> Iterator[str]:
    """Yield what differs between the signals of two models."""
    if stored.channels != updated.channels:
        yield f"channels {listed(stored.channels)} and {listed(updated.channels)}"
    rate, new_rate = stored.sampling_rate, updated.sampling_rate
    if rate is None or new_rate is None:
        if rate != new_rate:
            yield "sampling rate, which one of them does not name"
    elif not math.isclose(rate, new_rate, rel_tol=1e-6):
        yield f"sampling rate {rate:g} and {new_rate:g} Hz"
    if stored.samples != updated.samples:
        yield f"length {stored.samples:,} and {several(updated.samples, 'sample')}"
    if stored.normalize == "none" and stored.unit != updated.unit:
        yield f"unit {stored.unit} and {updated.unit}"


def _people_seen(seen: Seen, frames: FrameSet, instances: Ints) -> Bools:
    """Return which instances are of people of whom an instance was seen: by the person's name, or by a signal.

    Signals count in another edition of the same data set, too, where people may have other names.
    """
    if seen.has_dataset(frames.name):
        return np.ones(len(instances), bool)
    digests = tuple(("", of_dataset) for _, of_dataset in seen.signals)
    recognised = replace(seen, signals=digests).recognised(frames, instances)
    people = frames.patients[instances]
    return np.isin(people, people[recognised])


def left_out_in_words(left_out: int, people: int, unit: str, are_doubted: bool) -> str:
    """Return how many people were left out.

    Args:
        left_out: their number.
        people: that of all tested people.
        unit: what they are in words.
        are_doubted: whether one of them may be there under two names.
    """
    doubt = by_id_alone(unit) if are_doubted else ""
    if not left_out:
        return f"None of the {several(people, f'test {unit}')} was in its training or validation data{doubt}."
    remaining = several(people - left_out, unit)
    return (
        f"It was trained or validated on {left_out:,} of the {several(people, f'test {unit}')}{doubt}: they are left "
        f"out, and {remaining} are compared."
    )


def _never_seen(
    stored: ModelFacts, before: Mapping[str, Any], after: Mapping[str, Any], facts: TaskFacts, predictions: pd.DataFrame
) -> tuple[str, ...] | None:
    """Return the tested tasks that the stored model has never seen; None where names of tasks do not tell."""
    same_columns = (before["scenario"], before.get("domain")) == (after["scenario"], after.get("domain"))
    if facts.changes not in _OF_PLACES or not same_columns:
        return None
    tasks = predictions[predictions["evaluated_on"] > 0].sort_values("evaluated_on", kind="stable")["task"].unique()
    return tuple(task for task in map(str, tasks) if task not in stored.tasks)


def _learned_in_words(stored: ModelFacts, facts: TaskFacts, unseen: tuple[str, ...] | None) -> Iterator[str]:
    """Yield what the stored model was trained on, and the tested tasks that it has never seen."""
    if unseen is None:
        return
    known = listed([facts.title(task) for task in stored.tasks])
    if unseen:
        yield f"It has learned {known}, and has never seen {listed(map(facts.title, unseen))}."
    else:
        yield f"It has learned {known}, which are all tasks that are tested."
