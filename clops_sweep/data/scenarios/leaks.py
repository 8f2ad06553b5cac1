"""The check against leaks: a run is never evaluated on people, or samples, that it has seen."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import SPLIT_NAMES, FrameSet
from clops_sweep.data.scenarios.tasks import Scenario, Task
from clops_sweep.errors import UsageError, shown

_PARTS: Final = ("train", "validation", "test")
"""Names of the splits in tasks, in the order of `SPLIT_NAMES`."""

_ROUNDING: Final = 1e-9
"""Tolerance of starts in seconds, as a share of a window: far less than a sample."""


Tasks = tuple[Scenario, FrameSet]
"""Tasks, and the data set that they are made from."""


def check_leaks(
    scenario: Scenario, frames: FrameSet, seen: Collection[str] = (), tuned_on: Sequence[Tasks] = ()
) -> None:
    """Refuse a scenario in which a person is in two of training, validation and test, in any tasks.

    If people may be in several splits (`ScenarioTasks.people_recur`), it refuses stored rows in several splits instead,
    and overlaps: windows of one lead of one recording in different splits must have no common sample. Overlaps are
    checked if `frames` has `recordings`, `start` and `frame_seconds`. People in no task (`unseen`) may be in none of
    the three.

    Args:
        scenario: the tasks.
        frames: the data set that they are made from.
        seen: people, by `person_hash`, whom a run has seen before its first task, for example in tuning. They must not
            be evaluated, nor people whom the encoder of the frames has seen.
        tuned_on: tasks that the configuration was tuned on instead of these. Tasks of the same data set must have other
            test people. Tasks of another data set must not contain a signal that is evaluated here: a stored frame with
            equal samples, unless it is constant.

    Raises:
        UsageError: a leak; the message names the data set and one such person.
    """
    where, recur = f"dataset {frames.name!r}, scenario {scenario.name!r}", scenario.people_recur
    rows = [np.concatenate([getattr(task, part).rows for task in scenario.tasks]) for part in _PARTS]
    if scenario.unseen is not None:
        unseen = frames.patients[scenario.unseen.rows]
        for code in unseen[np.isin(unseen, frames.patients[np.concatenate(rows)])][:1].tolist():
            raise UsageError(
                f"{where}: {_person(frames, code)} is in unseen and in a task; expected other people in unseen"
            )
    for one, other in combinations(range(len(_PARTS)), 2):
        there = rows[other]
        if recur:
            twice = there[np.isin(_samples(frames, there), _samples(frames, rows[one])).any(1)]
        else:
            twice = there[np.isin(frames.patients[there], frames.patients[rows[one]])]
        if len(twice):
            raise UsageError(
                f"{where}: {'an instance of ' * recur}{_person(frames, int(frames.patients[twice[0]]))} is in "
                f"{SPLIT_NAMES[one]} and in {SPLIT_NAMES[other]}; expected {'instances' if recur else 'people'} in one "
                "split each"
            )
    if recur:
        _refuse_overlaps(where, rows, frames)
    for tuning in tuned_on:
        _refuse_tuning(where, (scenario, frames), tuning)
    if frames.encoded is not None:
        seen = {*seen, *frames.encoded.people}
    if not seen:
        return
    by = "" if frames.encoded is None else f" by encoder {frames.encoded.encoder!r}"
    evaluated = rows[1:] if scenario.unseen is None else [*rows[1:], scenario.unseen.rows]
    for code in np.unique(frames.patients[np.concatenate(evaluated)]).tolist():
        if person_hash(frames.name, frames.patient_names[code]) in seen:
            raise UsageError(
                f"{where}: {_person(frames, code)} is evaluated, and was seen{by} before training; expected other "
                "people for tuning and pretraining"
            )


def share_seen(scenario: Scenario, frames: FrameSet, tuned_on: Sequence[Tasks]) -> float:
    """Return the share of the test people who were validation people while tuning.

    Args:
        scenario: the tasks that are reported.
        frames: their data set.
        tuned_on: what the configuration was chosen on.
    """
    tested = _people(scenario, frames, "test")
    alike = [it for it in tuned_on if it[1].name == frames.name]
    looked_at = set().union(*(_people(*it, "validation") for it in alike))
    return len(tested & looked_at) / len(tested)


def _people(scenario: Scenario, frames: FrameSet, part: str) -> set[str]:
    rows = np.concatenate([getattr(task, part).rows for task in scenario.tasks])
    return {frames.patient_names[code] for code in np.unique(frames.patients[rows]).tolist()}


def _refuse_tuning(where: str, reported: Tasks, tuned_on: Tasks) -> None:
    """Refuse tuning on the same split, or on another data set with signals that are evaluated here."""
    (scenario, frames), (other, of_other) = reported, tuned_on
    if of_other.name == frames.name:
        if _people(other, of_other, "test") == _people(scenario, frames, "test"):
            raise UsageError(
                f"{where}: the tuning split has the same test people; expected another split of the people, or "
                "tune_on='same'"
            )
        return
    there = {digest for task in other.tasks for part in _PARTS for _, digest in _signals(of_other, task, part)}
    for task in scenario.tasks:
        for row, digest in (it for part in _PARTS[1:] for it in _signals(frames, task, part)):
            if digest in there:
                raise UsageError(
                    f"{where}: a signal of {_person(frames, int(frames.patients[row]))} is evaluated, and is "
                    f"also in dataset {of_other.name!r}, which is used for tuning; expected data of other people"
                )


def _signals(frames: FrameSet, task: Task, part: str) -> Iterator[tuple[int, bytes]]:
    """Yield the instances of a part of a task, each with the SHA-256 of each of its non-constant channels."""
    instances = getattr(task, part).rows
    for instance, rows in zip(instances.tolist(), _samples(frames, instances), strict=True):
        for samples in np.asarray(frames.frames[rows]):
            if (samples != samples[0]).any():
                yield instance, hashlib.sha256(samples.tobytes()).digest()


def person_hash(dataset: str, person: str) -> str:
    """Return an anonymous id of a person of a data set: the hex SHA-256 of both names."""
    return hashlib.sha256(f"{dataset}\n{person}".encode()).hexdigest()


def _samples(frames: FrameSet, instances: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the stored rows of instances, [m, channels]."""
    return instances[:, None] if frames.members is None else frames.members[instances]


def _refuse_overlaps(where: str, rows: Sequence[NDArray[np.int64]], frames: FrameSet) -> None:
    """Raise a UsageError for two overlapping windows in different splits, if their positions are known."""
    if frames.recordings is None or frames.start is None or frames.frame_seconds is None:
        return
    every, part = np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(it) for it in rows])
    signal = frames.recordings[every].astype(np.int64) * (1 + frames.leads.max()) + frames.leads[every]
    order = np.lexsort((part, frames.start[every], signal))
    every, part, signal = every[order], part[order], signal[order]
    # if any windows of different splits overlap, then so do two neighbours of different splits
    close = np.diff(frames.start[every]) < frames.frame_seconds * (1 - _ROUNDING)
    for place in np.flatnonzero(close & (np.diff(signal) == 0) & (np.diff(part) != 0))[:1]:
        one, other = sorted(part[place : place + 2].tolist())
        person = _person(frames, int(frames.patients[every[place]]))
        raise UsageError(
            f"{where}: samples of {person} are in {SPLIT_NAMES[one]} and in {SPLIT_NAMES[other]}; expected windows "
            "that do not overlap"
        )


def _person(frames: FrameSet, code: int) -> str:
    return f"patient {shown(frames.patient_names[code])}"
