"""Tiny generated frame sets, one for each built-in scenario, on which a whole run takes a fraction of a second."""

from __future__ import annotations

import hashlib
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import ScenarioName
from clops_sweep.data.frames import FRAME_LENGTH, TEST, TRAINING, VALIDATION, FrameSet
from clops_sweep.experiment.config import RunConfig

SCENARIO_KINDS: tuple[ScenarioName, ...] = ("class_il", "time_il", "domain_il")
"""Scenarios with the three kinds of output: one sigmoid, a softmax, several sigmoids."""

_RECORDINGS = {TRAINING: (5, 3), VALIDATION: (3, 2), TEST: (3, 2)}
"""Recordings per class and split: in other scenarios than time_il, and in time_il (per term)."""

_LEADS = ("I", "II", "III", "aVR", "aVL", "aVF")

_GAIN, _OFFSET = 1e-3, 0.05


def tiny_frames(
    scenario: ScenarioName, *, tasks: int = 3, seed: int = 0, group: int = 2, channels: int = 1
) -> FrameSet:
    """Return a frame set for a scenario: each class has its own frequency, each task its own gain, and there is noise.

    - class_il, class_il_union and custom scenarios: `tasks` groups of classes; per class 5 training, 3 validation and 3
      test instances.
    - time_il: always three terms with four classes; per term 12 training, 8 validation and 8 test instances.
    - domain_il: `tasks` leads of recordings with any subset of three labels; per lead 10 training, 6 validation and 6
      test instances.

    Each recording has its own patient, who is in one split, and one of two sites (``domains["site"]``). Frames are
    stored as int16 with gain and offset.

    Args:
        scenario: the scenario.
        tasks: number of tasks, except in time_il.
        seed: seed of the noise.
        group: classes per task in class_il and class_il_union; at most 12 classes in total.
        channels: number of leads per instance.
    """
    codes, split, groups, site = _recordings(scenario, tasks, group)
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
    instances = leads if channels == 1 else 1  # per recording
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
        times=np.repeat(terms[groups], instances) if scenario == "time_il" else None,
        data_hash=data_hash,
        members=None if channels == 1 else rows,
        domains={"site": (np.repeat(site.astype(np.int32), instances), ("A", "B"))},
    )


def tiny_config(scenario: ScenarioName, **changes: Any) -> RunConfig:
    """Return a config for `tiny_frames`: two epochs per task, few Monte-Carlo samples, an incomplete last batch."""
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
    """Return multi-hot labels [n, C], split, group (or term) and site, each [n], of shuffled recordings."""
    targets: list[list[int]] = []
    facts: list[tuple[int, int, int]] = []
    for split, counts in _RECORDINGS.items():
        for number in range(counts[scenario == "time_il"]):
            site = number % 2
            if scenario == "domain_il":
                for code in (number, 7 - number):
                    targets.append([(code >> label) & 1 for label in range(3)])
                    facts.append((split, 0, site))
            elif scenario == "time_il":
                for term, code in product(range(3), range(4)):
                    targets.append(_one_hot(code, 4))
                    facts.append((split, term, site))
            else:
                for code in range(group * tasks):
                    targets.append(_one_hot(code, group * tasks))
                    facts.append((split, code // group, site))
    order = np.random.default_rng(1).permutation(len(facts))
    splits, groups, sites = np.array(facts, np.int64)[order].T
    return np.array(targets, np.int64)[order], splits, groups, sites


def _one_hot(code: int, classes: int) -> list[int]:
    return [int(number == code) for number in range(classes)]


@cache
def _frames(
    scenario: ScenarioName, tasks: int, group: int, seeds: tuple[int, ...], leads: int
) -> tuple[NDArray[np.int16], str]:
    """Return the stored frames of all leads, read-only like mapped files, and their hash."""
    codes, _, groups, _ = _recordings(scenario, tasks, group)
    stream = np.random.default_rng(seeds)
    signals = [_signal(row, 1 + 0.5 * number, stream) for row, number in zip(codes, groups, strict=True)]
    gains = 1 / np.arange(1, leads + 1)
    noise = 0.3 * stream.standard_normal((len(codes), leads, FRAME_LENGTH))
    values = (np.stack(signals)[:, None] * gains[:, None] + noise).reshape(-1, FRAME_LENGTH)
    frames = np.clip(np.rint((values - _OFFSET) / _GAIN), -32768, 32767).astype(np.int16)
    frames.flags.writeable = False
    return frames, hashlib.sha256(frames.tobytes() + codes.tobytes()).hexdigest()


def _signal(labels: NDArray[np.int64], gain: float, stream: np.random.Generator) -> NDArray[np.float64]:
    """Return the sum of the sine waves of the present classes, with random phases."""
    time = np.arange(FRAME_LENGTH) / FRAME_LENGTH
    waves = [np.sin(2 * np.pi * (8 * (code + 1) * time + stream.uniform())) for code in np.flatnonzero(labels)]
    return gain * np.sum(waves, axis=0) if waves else np.zeros(FRAME_LENGTH)
