"""`synthetic` and `synthetic_paper`: generated ECG of the twelve rhythms of the Cardiology data set.

Patients have their own morphology and rate (`rhythms`), beats are sums of Gaussians projected onto twelve leads
(`ecg_model`), rhythms end and are disturbed (`episodes`), and each of three years has its own recorder. So all three
scenarios run without a download: a network learns each task, none perfectly, and forgets the earlier ones. Samples are
rounded to the microvolt, so that every machine generates the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import Rules
from clops_sweep.data.frames import FRAME_LENGTH, TEST, TRAINING, VALIDATION
from clops_sweep.data.records import Common, Frames, Index, Source
from clops_sweep.data.sets.packaged_set import packaged
from clops_sweep.data.synthetic.ecg_model import DOWER, LEAD_NAMES
from clops_sweep.data.synthetic.episodes import AMBULATORY, ARTEFACT_LEVEL, CLINIC, Difficulty, draw_dipole
from clops_sweep.data.synthetic.rhythms import FRAME_SECONDS, RHYTHMS, Patient, draw_patient

SEED: Final = 2021
_MICROVOLT: Final = 1e-3
"""Millivolt per stored unit."""

PAPER_COUNTS: Final[Mapping[int, tuple[int, ...]]] = {
    TRAINING: (781, 227, 463, 2118, 309, 179),
    VALIDATION: (126, 141, 118, 587, 83, 82),
    TEST: (285, 77, 130, 703, 89, 102),
}
"""Frames of Class-IL tasks 0-1, 2-3, ... 10-11 in the paper's table of task splits."""


@dataclass(frozen=True)
class Person:
    """A generated person: split (of seed 0), year, and number of frames of each class."""

    name: str
    split: int
    term: int
    frames: tuple[int, ...]


def _small_population() -> list[Person]:
    """Return 72 people in 18 groups of four (two training, one validation, one test) with equal frames of four rhythms.

    Every rhythm occurs in six groups, two in each term: 54 training frames per class, 27 validation and 27 test.
    """
    people: list[Person] = []
    for group in range(18):
        rhythms = {(group + 3 * step) % len(RHYTHMS) for step in range(4)}
        count = 4 + (group // 3) % 2
        frames = tuple(count if code in rhythms else 0 for code in range(len(RHYTHMS)))
        for split in (TRAINING, TRAINING, VALIDATION, TEST):
            people.append(Person(f"P{len(people) + 1:04d}", split, group // 6, frames))
    return people


def paper_population(frames_each: int = 22) -> list[Person]:
    """Return people with 22 frames of one pair of rhythms each; the last of each task and split has the remainder.

    The counts per task and split are exactly those of the paper, with 291 people (the paper has 292).
    """
    people: list[Person] = []
    for split, counts in PAPER_COUNTS.items():
        for task, count in enumerate(counts):
            sizes = [frames_each] * (count // frames_each)
            sizes[-1] += count % frames_each
            for number, size in enumerate(sizes):
                frames = [0] * len(RHYTHMS)
                frames[2 * task] = (size + 1) // 2
                frames[2 * task + 1] = size // 2
                name = f"P{len(people) + 1:04d}"
                people.append(Person(name, split, number % 3, tuple(frames)))
    return people


@dataclass(frozen=True)
class Recorder:
    """Effects of a year's recorder on a lead: mains hum and an offset in mV, a smoothing filter in seconds."""

    hum: float = 0.0
    offset: float = 0.0
    smoothing: float = 0.0


_RECORDERS: Final = (Recorder(), Recorder(smoothing=0.015, offset=0.15), Recorder(hum=0.1, offset=-0.15))
_MAINS: Final = 50.0
"""Mains frequency in hertz."""
_TERM_ENDS: Final = ("2019-01-01", "2020-01-01", "2021-01-01")


@dataclass(frozen=True, eq=False, kw_only=True)
class GeneratedPerson(Source):
    """Generated 12-lead ECG of a person: frames of 5 s at 500 Hz, stored in microvolts.

    `difficulty` sets how far the classes overlap.
    """

    number: int
    person: Person
    difficulty: Difficulty

    def read(self, common: Common) -> Frames:
        """Generate the samples of a person, rhythm by rhythm, each frame in all twelve leads."""
        codes = np.repeat(np.arange(len(common.classes)), self.person.frames)
        term_end = np.datetime64(_TERM_ENDS[self.person.term], "s")
        day = term_end - np.timedelta64(1 + self.number % 360, "D")
        begins = np.arange(len(codes)) * FRAME_LENGTH
        rate = FRAME_LENGTH / FRAME_SECONDS
        windows = common.offered(begins, codes, FRAME_LENGTH, rate, patient=self.record, time=day)

        patient = draw_patient(np.random.default_rng([SEED, self.number]))
        recorder = _RECORDERS[self.person.term]
        frames = []
        for frame, code in enumerate(codes):
            rhythm = common.classes[code]
            stream = np.random.default_rng([SEED, self.number, frame])
            frames.append(_record_frame(rhythm, patient, recorder, stream, self.difficulty))

        microvolts = np.rint(np.concatenate(frames) / _MICROVOLT)
        stored = np.clip(microvolts, -32768, 32767).astype(np.int16)
        gain = np.full(len(stored), _MICROVOLT, np.float32)
        offset = np.zeros_like(gain)
        missing = np.zeros(len(gain), bool)
        return Frames(windows, stored, gain, offset, missing)


def _rules(population: Sequence[Person]) -> Rules:
    people = {person.name: person for person in population}

    def split(index: Index, seed: int) -> NDArray[np.int8]:
        """Return the population's own split for seed 0; other seeds permute people with equal frames and year.

        So counts per class, split and year are the same for every seed.
        """
        chosen = [people[name] for name in index.patient_names]
        splits = np.array([person.split for person in chosen], np.int8)
        if seed == 0:
            return splits
        stream = np.random.default_rng([SEED, seed])
        alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for position, person in enumerate(chosen):
            alike.setdefault((person.term, person.frames), []).append(position)
        for positions in alike.values():
            splits[positions] = stream.permutation(splits[positions])
        return splits

    return Rules(split=split, integers=True, reads_files=False, version=2)


def _generated(population: Sequence[Person], difficulty: Difficulty) -> list[Source]:
    sources: list[Source] = []
    for number, person in enumerate(population):
        sources.append(GeneratedPerson((person.name,), number=number, person=person, difficulty=difficulty))
    return sources


@packaged("synthetic", classes=tuple(RHYTHMS), channels=LEAD_NAMES, units="mV", rules=_rules(_small_population()))
def synthetic(data_root: Path | None) -> list[Source]:
    """Generate 72 people."""
    return _generated(_small_population(), CLINIC)


@packaged("synthetic_paper", classes=tuple(RHYTHMS), channels=LEAD_NAMES, units="mV", rules=_rules(paper_population()))
def synthetic_paper(data_root: Path | None) -> list[Source]:
    """Generate 291 people, whose frames add up to the paper's table of task splits.

    Classes overlap more than in `synthetic`.
    """
    return _generated(paper_population(), AMBULATORY)


_LIMBS: Final = np.array([(1, 0), (0, 1), (-1, 1), (-0.5, -0.5), (1, -0.5), (-0.5, 1)])
"""Matrix [6, 2] from I and II to the limb leads: Einthoven's and Goldberger's laws."""
_INDEPENDENT: Final = np.array([*DOWER.values()])
_ALL_FROM_INDEPENDENT: Final = np.block([[_LIMBS, np.zeros((6, 6))], [np.zeros((6, 2)), np.eye(6)]])


def _record_frame(
    rhythm: str, patient: Patient, recorder: Recorder, stream: np.random.Generator, difficulty: Difficulty
) -> NDArray[np.float64]:
    """Generate a frame in twelve leads, [12, 2500] mV, with breathing, muscle noise and the recorder's effects."""
    time = np.arange(FRAME_LENGTH, dtype=np.float64) * (FRAME_SECONDS / FRAME_LENGTH)
    dipole = draw_dipole(rhythm, patient, stream, FRAME_LENGTH, difficulty)
    leads: NDArray[np.float64] = _INDEPENDENT @ dipole
    if rhythm == "NOISE":
        leads = leads * stream.uniform(0.3, 1.0) + _artefacts(stream, time)
    elif stream.random() < difficulty.artefacts:
        leads = leads + stream.uniform(0, ARTEFACT_LEVEL) * _artefacts(stream, time)
    breaths_per_second = stream.uniform(0.15, 0.4)
    breath = 2 * np.pi * (breaths_per_second * time + stream.uniform(0, 1, (8, 1)))
    wander = patient.wander * stream.uniform(0.3, 1.0, (8, 1))
    leads += wander * np.sin(breath)
    leads = _smooth(leads, recorder.smoothing) + recorder.offset
    mains = 2 * np.pi * (_MAINS * time + stream.uniform())
    leads += recorder.hum * np.sin(mains)
    leads += patient.noise * stream.standard_normal(leads.shape)
    return np.asarray(_ALL_FROM_INDEPENDENT @ leads)


def _artefacts(stream: np.random.Generator, time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Draw muscle noise in bursts, electrode movement and lost contact, [8, len(time)] mV."""
    shape = (8, len(time))
    middle = stream.uniform(0, FRAME_SECONDS)
    width = stream.uniform(0.4, 2.0)
    burst = np.exp(-0.5 * ((time - middle) / width) ** 2)
    amplitude = stream.uniform(0.15, 0.4)
    muscle = amplitude * (0.2 + burst) * stream.standard_normal(shape)
    walk = np.cumsum(stream.standard_normal(shape), axis=1)
    drift = walk * stream.uniform(0.002, 0.015)
    steps = np.zeros(shape)
    for _ in range(int(stream.integers(0, 4))):
        height = stream.normal(0, 0.4, (8, 1))
        begin = stream.uniform(0, FRAME_SECONDS)
        steps += height * (time > begin)
    return np.asarray(muscle + drift - drift.mean(1, keepdims=True) + steps)


def _smooth(signal: NDArray[np.float64], seconds: float) -> NDArray[np.float64]:
    """Apply a Gaussian low-pass filter of the given standard deviation."""
    if seconds == 0:
        return signal
    width = seconds * FRAME_LENGTH / FRAME_SECONDS
    reach = int(4 * width) + 1
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    kernel /= kernel.sum()
    padded = np.pad(signal, ((0, 0), (reach, reach)), mode="edge")
    return np.stack([np.convolve(row, kernel, mode="valid") for row in padded])
