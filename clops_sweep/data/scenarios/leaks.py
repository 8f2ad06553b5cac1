"""The check against leaks: a run is never evaluated on people, or samples, that it has seen."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import SPLIT_NAMES, FrameSet
from clops_sweep.data.same_samples import SHARE_OF_SHAPES, samples_digest, shape_digests
from clops_sweep.data.scenarios.tasks import Scenario
from clops_sweep.errors import UsageError, shown

_PARTS: Final = ("train", "validation", "test")
"""Names of the splits in tasks, in the order of `SPLIT_NAMES`."""

CHALLENGES: Final = {
    "cinc2020": ("physionet2020", "ptbxl"),
    "cinc2021": ("cinc2020", "physionet2020", "ptbxl", "chapman"),
}
"""The data sets that a challenge of Computing in Cardiology gave for training, of those that are known here."""

_ROUNDING: Final = 1e-9
"""Tolerance of starts in seconds, as a share of a window: far less than a sample."""

_AT_ONCE: Final = 256
"""Instances whose shapes are computed at once."""

Tasks = tuple[Scenario, FrameSet]
"""Tasks, and the data set that they are made from."""


@dataclass(frozen=True)
class Seen:
    """What a network was trained on, or a configuration tuned on.

    Attributes:
        people: hashes of its people (`person_hash`).
        signals: data sets, each with the digests of those of its signals that were seen (`signal_digests`).
        datasets: data sets all of whose people count as seen.
    """

    people: frozenset[str] = frozenset()
    signals: tuple[tuple[str, NDArray[np.uint64]], ...] = ()
    datasets: frozenset[str] = frozenset()

    @classmethod
    def of_names(cls, names: Sequence[str]) -> Seen:
        """Return what names of data sets stand for: "ptbxl", "mitbih:100,101" (people of it), or "cinc2021"."""
        people = set[str]()
        datasets = set[str]()
        for name in names:
            dataset, separator, of_dataset = name.partition(":")
            for person in of_dataset.split(","):
                people.add(person_hash(dataset, person.strip()))
            if not separator or dataset not in DATASETS:
                datasets.update((dataset, *CHALLENGES.get(dataset, ())))
        return cls(frozenset(people), datasets=frozenset(datasets))

    @classmethod
    def nothing(cls, dataset: str) -> Seen:
        """Return that no one of a data set was seen."""
        return cls(signals=((dataset, np.zeros(0, np.uint64)),))

    @classmethod
    def of(cls, scenario: Scenario, frames: FrameSet, parts: Collection[str] = _PARTS) -> Seen:
        """Return the people and signals in some parts of all tasks."""
        rows = _rows(scenario, parts)
        digests = np.unique(signal_digests(frames, rows))
        of_signals = digests[digests > 0]
        owner = _people_of(frames.name)
        people = frozenset(person_hash(owner, name) for name in _names_of_people(frames, rows))
        return cls(people, ((frames.name, of_signals),))

    def __or__(self, other: Seen) -> Seen:
        """Return everything that either has seen."""
        return Seen(self.people | other.people, self.signals + other.signals, self.datasets | other.datasets)

    def has_dataset(self, name: str) -> bool:
        """Return whether all people of a data set count as seen."""
        return _people_of(name) in map(_people_of, self.datasets)

    def recognised(self, frames: FrameSet, instances: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which instances show a person who was seen, or a signal that was seen in another data set.

        Within one data set, people alone count: its publisher may have one signal under several names.
        """
        owner = _people_of(frames.name)
        names = {frames.name, owner, *(name for name in DATASETS if _people_of(name) == owner)}
        people_seen = []
        for person in frames.patient_names:
            hashes = {person_hash(name, person) for name in names}
            people_seen.append(not hashes.isdisjoint(self.people))
        recognised: NDArray[np.bool_] = np.array(people_seen, bool)[frames.patients[instances]]
        for name, digests in self.signals:
            if name != frames.name:
                recognised |= np.isin(signal_digests(frames, instances), digests).any(1)
        return recognised


def check_leaks(scenario: Scenario, frames: FrameSet, tuned_on: Sequence[Tasks] = ()) -> None:
    """Refuse a scenario in which a person is in two of training, validation and test, in any tasks.

    If people may be in several splits (`ScenarioTasks.people_recur`), it refuses stored rows in several splits instead,
    and overlaps: windows of one lead of one recording in different splits must have no common sample. Overlaps are
    checked if `frames` has `recordings`, `start` and `frame_seconds`. People in no task (`unseen`) may be in none of
    the three.

    Args:
        scenario: the tasks.
        frames: the data set that they are made from.
        tuned_on: tasks that the configuration was tuned on instead of these. Tasks of the same data set must have other
            test people. Tasks of another data set must not contain a person or signal that is evaluated here, just as
            the pretraining of the frames' encoder must not (`Seen.recognised`).

    Raises:
        UsageError: a leak; the message names the data set and one such person.
    """
    where = f"dataset {frames.name!r}, scenario {scenario.name!r}"
    recur = scenario.people_recur
    rows = []
    for part in _PARTS:
        of_tasks = [getattr(task, part).rows for task in scenario.tasks]
        rows.append(np.concatenate(of_tasks))
    if scenario.unseen is not None:
        unseen = frames.patients[scenario.unseen.rows]
        in_tasks = frames.patients[np.concatenate(rows)]
        for code in unseen[np.isin(unseen, in_tasks)][:1].tolist():
            raise UsageError(
                f"{where}: {_person(frames, code)} is in unseen and in a task; expected other people in unseen"
            )
    for first, second in combinations(range(len(_PARTS)), 2):
        if recur:
            is_twice = np.isin(_samples(frames, rows[second]), _samples(frames, rows[first])).any(1)
        else:
            is_twice = np.isin(frames.patients[rows[second]], frames.patients[rows[first]])
        twice = rows[second][is_twice]
        if len(twice):
            person = _person(frames, int(frames.patients[twice[0]]))
            raise UsageError(
                f"{where}: {'an instance of ' * recur}{person} is in {SPLIT_NAMES[first]} and in "
                f"{SPLIT_NAMES[second]}; expected {'instances' if recur else 'people'} in one split each"
            )
    if recur:
        _refuse_overlaps(where, rows, frames)
    for tuning in tuned_on:
        _refuse_tuning(where, (scenario, frames), tuning)
    encoded, start = frames.encoded, frames.start_model
    if encoded is not None and (person := _first_seen(scenario, frames, encoded.seen)):
        raise UsageError(
            f"{where}: {person} is evaluated, and was seen by encoder {encoded.encoder!r} before training; "
            "expected other people for pretraining"
        )
    if start is not None and (person := _first_seen(scenario, frames, start.seen)):
        raise UsageError(
            f"{where}: {person} is evaluated, and start_from = {start.run!r} was trained on them; "
            "expected a split that tests other people, such as one that the data give"
        )


def _first_seen(scenario: Scenario, frames: FrameSet, is_seen: NDArray[np.bool_]) -> str:
    """Return the first evaluated person with a seen instance, in words; empty without one."""
    evaluated = _evaluated(scenario)
    seen = evaluated[is_seen[evaluated]]
    return _person(frames, int(frames.patients[seen[0]])) if len(seen) else ""


def share_seen(scenario: Scenario, frames: FrameSet, tuned_on: Sequence[Tasks]) -> float:
    """Return the share of the test people who were validation people while tuning.

    Args:
        scenario: the tasks that are reported.
        frames: their data set.
        tuned_on: what the configuration was chosen on.
    """
    tested = _people(scenario, frames, "test")
    looked_at: set[str] = set()
    for tuning_scenario, tuning_frames in tuned_on:
        if tuning_frames.name == frames.name:
            looked_at |= _people(tuning_scenario, tuning_frames, "validation")
    return len(tested & looked_at) / len(tested)


def copies_in_training(frames: FrameSet, tested: NDArray[np.int64], trained: NDArray[np.int64]) -> dict[str, str]:
    """Return the tested people with signals of another person in training, each with the first such person.

    One instance with the same samples is enough. Of instances with the same shape, in another scale, offset or
    rounding, it takes half of the instances of the person. Constant signals do not count.

    Args:
        frames: the data set.
        tested: instances that are tested, [m].
        trained: instances that a run is trained or validated on, [k].
    """
    (copies,) = copies_of_splits(frames, [(tested, trained)])
    return copies


def copies_of_splits(
    frames: FrameSet, splits: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]
) -> list[dict[str, str]]:
    """Return `copies_in_training` of several splits, each given as tested and trained instances; signals are read once.

    Args:
        frames: the data set, with any split.
        splits: for each split, the instances that are tested and those that a run is trained or validated on.
    """
    used = np.unique(np.concatenate([instances for split in splits for instances in split]))
    by_samples = dict(zip(used.tolist(), _sample_digests(frames, used), strict=True))
    by_shape = dict[int, bytes]()
    if frames.encoded is None:
        by_shape = dict(zip(used.tolist(), _shape_digests(frames, used), strict=True))
    of_splits = []
    for tested, trained in splits:
        copies = _copies(frames, tested, trained, by_samples, 0.0)
        if by_shape:
            copies = _copies(frames, tested, trained, by_shape, SHARE_OF_SHAPES) | copies
        of_splits.append(
            {frames.patient_names[person]: frames.patient_names[other] for person, other in sorted(copies.items())}
        )
    return of_splits


def _copies(
    frames: FrameSet,
    tested: NDArray[np.int64],
    trained: NDArray[np.int64],
    digests: Mapping[int, bytes],
    share: float,
) -> dict[int, int]:
    """Return tested people of whose instances at least a share, and one, have the digest of another in training."""
    people_of: dict[bytes, set[int]] = {}
    for instance, person in zip(trained.tolist(), frames.patients[trained].tolist(), strict=True):
        if digests[instance]:
            people_of.setdefault(digests[instance], set()).add(person)
    first: dict[int, int] = {}
    copied: Counter[int] = Counter()
    for instance, person in zip(tested.tolist(), frames.patients[tested].tolist(), strict=True):
        others = people_of.get(digests[instance], set()) - {person}
        if others:
            copied[person] += 1
            first.setdefault(person, min(others))
    instances = Counter(frames.patients[tested].tolist())
    return {person: other for person, other in first.items() if copied[person] >= share * instances[person]}


def _sample_digests(frames: FrameSet, instances: NDArray[np.int64]) -> Iterator[bytes]:
    """Yield a digest of the samples of each instance; empty if all its channels are constant."""
    for digests in signal_digests(frames, instances):
        yield digests.tobytes() if digests.any() else b""


def _shape_digests(frames: FrameSet, instances: NDArray[np.int64]) -> Iterator[bytes]:
    """Yield `shape_digests` of the instances."""
    for first in range(0, len(instances), _AT_ONCE):
        rows = _samples(frames, instances[first : first + _AT_ONCE])
        yield from shape_digests(frames.frames[rows.ravel()], rows.shape[1])


def _people(scenario: Scenario, frames: FrameSet, part: str) -> set[str]:
    return _names_of_people(frames, _rows(scenario, [part]))


def _names_of_people(frames: FrameSet, instances: NDArray[np.int64]) -> set[str]:
    return {frames.patient_names[code] for code in np.unique(frames.patients[instances]).tolist()}


def _rows(scenario: Scenario, parts: Collection[str]) -> NDArray[np.int64]:
    """Return the instances in some parts of all tasks, once each."""
    return np.unique(np.concatenate([getattr(task, part).rows for task in scenario.tasks for part in parts]))


def _evaluated(scenario: Scenario) -> NDArray[np.int64]:
    """Return the instances that are evaluated."""
    rows = _rows(scenario, _PARTS[1:])
    return rows if scenario.unseen is None else np.union1d(rows, scenario.unseen.rows)


def _refuse_tuning(where: str, reported: Tasks, tuned_on: Tasks) -> None:
    """Refuse tuning on the same split, or on another data set with signals that are evaluated here."""
    scenario, frames = reported
    tuning_scenario, tuning_frames = tuned_on
    if tuning_frames.name == frames.name:
        if _people(tuning_scenario, tuning_frames, "test") == _people(scenario, frames, "test"):
            raise UsageError(
                f"{where}: the tuning split has the same test people; expected another split of the people, or "
                "tune_on='same'"
            )
        return
    evaluated = _evaluated(scenario)
    seen = evaluated[Seen.of(tuning_scenario, tuning_frames).recognised(frames, evaluated)]
    if len(seen):
        person = _person(frames, int(frames.patients[seen[0]]))
        raise UsageError(
            f"{where}: {person} is evaluated, and is also in dataset {tuning_frames.name!r}, which is used for tuning; "
            "expected data of other people"
        )


def signal_digests(frames: FrameSet, instances: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a number for each channel of each instance, [m, channels], by which equal samples are found.

    Features have the numbers of the signals that they were computed from. A constant channel has 0, which is no signal.
    """
    if frames.encoded is not None:
        return frames.encoded.digests[instances]
    samples = _samples(frames, instances)
    rows, row_of_sample = np.unique(samples, return_inverse=True)
    digests = np.zeros(len(rows), np.uint64)
    for index, row in enumerate(rows.tolist()):
        signal = frames.frames[row]
        if (signal != signal[0]).any():
            digests[index] = int.from_bytes(samples_digest(signal)[:8], "little")
    return digests[row_of_sample].reshape(samples.shape)


def _people_of(dataset: str) -> str:
    """Return the data set whose people a data set has, under the same names."""
    return (DATASETS[dataset].people_of if dataset in DATASETS else "") or dataset


def person_hash(dataset: str, person: str) -> str:
    """Return the hex SHA-256 of the names of data set and person: equal on all machines, so names can be tried out."""
    return hashlib.sha256(f"{dataset}\n{person}".encode()).hexdigest()


def _samples(frames: FrameSet, instances: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the stored rows of instances, [m, channels]."""
    return instances[:, None] if frames.members is None else frames.members[instances]


def _refuse_overlaps(where: str, rows: Sequence[NDArray[np.int64]], frames: FrameSet) -> None:
    """Raise a UsageError for two overlapping windows in different splits, if their positions are known."""
    if frames.recordings is None or frames.start is None or frames.frame_seconds is None:
        return
    windows = np.concatenate(rows)
    split = np.repeat(np.arange(len(rows)), [len(of_split) for of_split in rows])
    signal = frames.recordings[windows].astype(np.int64) * (1 + frames.leads.max()) + frames.leads[windows]
    order = np.lexsort((split, frames.start[windows], signal))
    windows = windows[order]
    split = split[order]
    signal = signal[order]
    # if any windows of different splits overlap, then so do two neighbours of different splits
    is_close = np.diff(frames.start[windows]) < frames.frame_seconds * (1 - _ROUNDING)
    same_signal = np.diff(signal) == 0
    other_split = np.diff(split) != 0
    overlapping = np.flatnonzero(is_close & same_signal & other_split)
    if len(overlapping):
        first = overlapping[0]
        earlier, later = (SPLIT_NAMES[code] for code in sorted(split[first : first + 2].tolist()))
        person = _person(frames, int(frames.patients[windows[first]]))
        raise UsageError(
            f"{where}: samples of {person} are in {earlier} and in {later}; expected windows that do not overlap"
        )


def _person(frames: FrameSet, code: int) -> str:
    return f"patient {shown(frames.patient_names[code])}"
