"""Tiny generated frame sets, one for each built-in scenario, on which a whole run takes a fraction of a second."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import ScenarioName
from clops_sweep.data.frames import FRAME_LENGTH, TEST, TRAINING, VALIDATION, FrameSet
from clops_sweep.experiment.config import RunConfig

SCENARIO_KINDS: tuple[ScenarioName, ...] = ("class_il", "time_il", "domain_il")
"""One sigmoid, a softmax, several sigmoids."""

_RECORDINGS = {TRAINING: (5, 3), VALIDATION: (3, 2), TEST: (3, 2)}
"""Recordings per class, elsewhere and in time_il."""

_LEADS = ("I", "II", "III", "aVR", "aVL", "aVF")

_GAIN, _OFFSET = 1e-3, 0.05


def tiny_frames(
    scenario: ScenarioName, *, tasks: int = 3, seed: int = 0, group: int = 2, channels: int = 1
) -> FrameSet:
    """A frame set for one scenario: every class is a frequency of its own in noise, every task has a gain of its own.

    class_il, class_il_union: `tasks` groups of classes, 5 training, 3 validation and 3 test instances a class. time_il:
    three terms (whatever `tasks` says) of four classes, 12, 8 and 8 instances each. domain_il: `tasks` leads of
    recordings that carry any subset of three labels, 10, 6 and 6 instances each. Of a user's own scenario as class_il.

    Every recording has a patient of its own, in one split only, and one of two sites (a column of `domains`). Frames
    are stored as int16 with gain and offset.

    Args:
        scenario: which scenario the set is for.
        tasks: number of tasks in class_il, class_il_union and domain_il.
        seed: of the noise.
        group: classes of a task in class_il and class_il_union; 12 in all at most.
        channels: with more than one, instances are of so many leads at once.
    """
    codes, split, place, site = _recordings(scenario, tasks, group)
    kind = SCENARIO_KINDS.index(scenario) if scenario in SCENARIO_KINDS else 0
    multi_label = scenario == "domain_il"
    classes = codes.shape[1]
    lead_count = channels if channels > 1 else tasks
    lead_names = _LEADS[:lead_count] if multi_label or channels > 1 else ("II",)
    recordings, leads = len(codes), len(lead_names)
    frames, data_hash = _frames(scenario, tasks, group, (seed, kind, tasks), leads)
    labels: NDArray[Any] = codes.astype(np.uint8) if multi_label else codes.argmax(1).astype(np.int64)
    terms = np.array(["2018-06-01", "2019-06-01", "2020-06-01"], dtype="datetime64[s]")
    rows = np.arange(recordings * leads, dtype=np.int64).reshape(recordings, leads)
    instances = leads if channels == 1 else 1  # of a recording
    return FrameSet(
        name="synthetic",
        frames=frames,
        gain=np.full(len(frames), _GAIN, np.float32),
        offset=np.full(len(frames), _OFFSET, np.float32),
        unit="mV",
        patients=np.repeat(np.arange(recordings, dtype=np.int32), instances),
        patient_names=tuple(f"P{number:03d}" for number in range(recordings)),
        labels=np.repeat(labels, instances, axis=0),
        classes=tuple("ABCDEFGHIJKL"[:classes]),
        split=np.repeat(split.astype(np.int8), instances),
        leads=np.tile(np.arange(instances, dtype=np.int16), recordings),
        lead_names=lead_names,
        times=np.repeat(terms[place], instances) if scenario == "time_il" else None,
        data_hash=data_hash,
        members=None if channels == 1 else rows,
        domains={"site": (np.repeat(site.astype(np.int32), instances), ("A", "B"))},
    )


def tiny_config(scenario: ScenarioName, **changes: Any) -> RunConfig:
    """A config to go with `tiny_frames`: two epochs a task, few samples, a last batch that is not full."""
    settings: dict[str, Any] = {
        "scenario": scenario,
        "dataset": "synthetic",
        "epochs_per_task": 2,
        "batch_size": 8,
        "mc_samples": 3,
        "storage_fraction": 0.4,
        "acquisition_fraction": 0.5,
        "beta_learning_rate": 1e-2,
        "learning_rate": 1e-3,
    }
    return RunConfig(**settings).replace(**changes)


def _recordings(
    scenario: ScenarioName, tasks: int, group: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Multi-hot labels [n, C], split [n], place (group or term) [n] and site [n] of every recording, in mixed order."""
    rows: list[tuple[list[int], int, int, int]] = []
    for split, counts in _RECORDINGS.items():
        for number in range(counts[scenario == "time_il"]):
            site = number % 2
            if scenario == "domain_il":
                both = (number, 7 - number)
                rows += [([(code >> label) & 1 for label in range(3)], split, 0, site) for code in both]
            elif scenario == "time_il":
                cells = ((term, code) for term in range(3) for code in range(4))
                rows += [([int(c == code) for c in range(4)], split, term, site) for term, code in cells]
            else:
                classes = range(group * tasks)
                rows += [([int(c == code) for c in classes], split, code // group, site) for code in classes]
    order = np.random.default_rng(1).permutation(len(rows))
    codes, splits, places, sites = (np.array([rows[row][part] for row in order], np.int64) for part in range(4))
    return codes, splits, places, sites


@cache
def _frames(
    scenario: ScenarioName, tasks: int, group: int, seeds: tuple[int, ...], leads: int
) -> tuple[NDArray[np.int16], str]:
    """What is stored of all leads of the recordings, read-only as a file's, and its hash."""
    codes, _, place, _ = _recordings(scenario, tasks, group)
    stream = np.random.default_rng(seeds)
    signals = [_signal(row, 1 + 0.5 * number, stream) for row, number in zip(codes, place, strict=True)]
    gains = 1 / np.arange(1, leads + 1)
    noise = 0.3 * stream.standard_normal((len(codes), leads, FRAME_LENGTH))
    values = (np.stack(signals)[:, None] * gains[:, None] + noise).reshape(-1, FRAME_LENGTH)
    frames = np.clip(np.rint((values - _OFFSET) / _GAIN), -32768, 32767).astype(np.int16)
    frames.flags.writeable = False
    return frames, hashlib.sha256(frames.tobytes() + codes.tobytes()).hexdigest()


def _signal(labels: NDArray[np.int64], gain: float, stream: np.random.Generator) -> NDArray[np.float64]:
    """The sum of the frequencies of the classes that are present, at random phases."""
    time = np.arange(FRAME_LENGTH) / FRAME_LENGTH
    waves = [np.sin(2 * np.pi * (8 * (code + 1) * time + stream.uniform())) for code in np.flatnonzero(labels)]
    return gain * np.sum(waves, axis=0) if waves else np.zeros(FRAME_LENGTH)
