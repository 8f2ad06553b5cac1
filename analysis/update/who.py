"""The people behind the pseudonyms of an update report, with their recordings: for the machine that has the secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.pseudonyms import Pseudonyms

from ..people.predicted import Predicted
from .last_task import TaskFacts
from .paired import Names, Paired
from .people import became_what, of_true_class

FLIPPED = "flipped"
"""Asks for all people with a decision that changed; no pseudonym, which has hexadecimal digits alone."""

COMPARED, LAST, BOTH = "compared tasks", "last task", "both"
"""Where decisions of a person changed."""


@dataclass(frozen=True)
class DecidedRecording:
    """A test instance of a person, with the decisions before and after.

    Attributes:
        instance: its index in the data set.
        recording: the name of its recording; empty without the prepared frames of the run.
        start: where it starts in its recording, in seconds; None if unknown.
        time: date and time of its recording; empty if unknown.
        task: the title of its task.
        label: its true class or classes.
        before: the decision before; empty if the model before has not learned its class.
        after: the decision after.
        became: one of `people.BECAME`; empty for an equal decision, and for a class that is new.
        probability_before: the probability of the true class before; NaN if it has not one true class.
        probability_after: the same after.
        is_compared: whether the page counts it among the compared instances; those of the last task alone are not.
    """

    instance: int
    recording: str
    start: float | None
    time: str
    task: str
    label: str
    before: str
    after: str
    became: str
    probability_before: float
    probability_after: float
    is_compared: bool


@dataclass(frozen=True)
class FoundPerson:
    """A person behind a pseudonym.

    Attributes:
        pseudonym: the pseudonym.
        person: the id of the person.
        recordings: all test instances of the person, those of earlier tasks first.
    """

    pseudonym: str
    person: str
    recordings: tuple[DecidedRecording, ...]

    def count(self, became: str) -> int:
        """Return the number of decisions that became one of `people.BECAME`."""
        return sum(recording.became == became for recording in self.recordings)

    @property
    def changed(self) -> tuple[DecidedRecording, ...]:
        """The recordings whose decision changed."""
        return tuple(recording for recording in self.recordings if recording.became)

    @property
    def changed_in(self) -> str:
        """Where decisions changed: in the "compared tasks", in the "last task" or in "both"; empty without a change."""
        places = {recording.is_compared for recording in self.changed}
        if len(places) == 2:
            return BOTH
        if not places:
            return ""
        return COMPARED if True in places else LAST


@dataclass(frozen=True)
class FoundPeople:
    """People of a run.

    Attributes:
        run_id: the run with the updated model.
        people: those with a changed decision in the compared tasks first, and among them those with most decisions that
            became wrong.
        without_frames: why recordings have no names; empty if they have.
    """

    run_id: str
    people: tuple[FoundPerson, ...]
    without_frames: str


@dataclass(frozen=True, eq=False)
class DecidedPart:
    """Some test instances with the decisions of both models in words.

    Attributes:
        paired: the instances.
        before: the decisions before, in words.
        after: the decisions after, in words.
        is_known: whether the model before has learned the classes of all.
        is_compared: whether the page counts them among the compared instances.
    """

    paired: Paired
    before: Names
    after: Names
    is_known: bool
    is_compared: bool


def found_people(
    parts: Sequence[DecidedPart], names: Pseudonyms, facts: TaskFacts, frames: FrameSet | None, recordings: Names | None
) -> list[FoundPerson]:
    """Return all people of several parts of the test instances, in the order of `FoundPeople`.

    Args:
        parts: the instances, in the order of the result.
        names: the pseudonyms of the data set.
        facts: facts about the tasks.
        frames: the frames of the run, with dates; None without them.
        recordings: the name of the recording of each frame, [frames]; None without them.
    """
    of_people: dict[str, list[DecidedRecording]] = {}
    for part in parts:
        patients = part.paired.patients.tolist()
        for person, decided in zip(patients, _decided(part, facts, frames, recordings), strict=True):
            of_people.setdefault(str(person), []).append(decided)
    people = [FoundPerson(names.of(person), person, tuple(decided)) for person, decided in of_people.items()]
    return sorted(people, key=_place)


def _place(person: FoundPerson) -> tuple[bool, int, int, str]:
    is_compared = person.changed_in in (COMPARED, BOTH)
    return not is_compared, -person.count("wrong"), -len(person.changed), person.person


def _decided(
    part: DecidedPart, facts: TaskFacts, frames: FrameSet | None, recordings: Names | None
) -> Iterator[DecidedRecording]:
    paired = part.paired
    before, after = of_true_class(paired.before), of_true_class(paired.after)
    for row in range(len(paired)):
        instance = int(paired.instances[row])
        yield DecidedRecording(
            instance=instance,
            recording="" if recordings is None else str(recordings[instance]),
            start=None if frames is None or frames.start is None else float(frames.start[instance]),
            time=_time(frames, instance),
            task=facts.title(str(paired.tasks[row])),
            label=str(paired.labels[row]),
            before=str(part.before[row]) if part.is_known else "",
            after=str(part.after[row]),
            became=_became(paired.before, paired.after, row) if part.is_known else "",
            probability_before=float(before[row]) if part.is_known else float("nan"),
            probability_after=float(after[row]),
            is_compared=part.is_compared,
        )


def _became(before: Predicted, after: Predicted, row: int) -> str:
    if np.array_equal(before.said[row], after.said[row]):
        return ""
    return became_what(bool(before.right[row]), bool(after.right[row]))


def _time(frames: FrameSet | None, instance: int) -> str:
    """Return the time of a frame, "2020-03-01 12:00:00"; empty if unknown."""
    if frames is None or frames.times is None or np.isnat(frames.times[instance]):
        return ""
    return str(frames.times[instance]).replace("T", " ")
