"""Tiny generated frame sets, one for each scenario kind, on which a whole run takes a fraction of a second."""

from __future__ import annotations

import hashlib
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

_GAIN, _OFFSET = 1e-3, 0.05


def tiny_frames(scenario: ScenarioName, *, tasks: int = 3, seed: int = 0) -> FrameSet:
    """A frame set for one scenario: every class is a frequency of its own in noise, every task has a gain of its own.

    class_il: `tasks` pairs of classes, 10 training, 6 validation and 6 test instances a task. time_il: three terms
    (whatever `tasks` says) of four classes, 12, 8 and 8 instances each. domain_il: `tasks` leads of recordings that
    carry any subset of three labels, 10, 6 and 6 instances each.

    Every recording has a patient of its own, in one split only. Frames are stored as int16 with gain and offset.

    Args:
        scenario: which scenario the set is for.
        tasks: number of tasks in class_il and domain_il.
        seed: of the noise.
    """
    codes, split, group = _recordings(scenario, tasks)
    stream = np.random.default_rng([seed, SCENARIO_KINDS.index(scenario), tasks])
    multi_label = scenario == "domain_il"
    classes = codes.shape[1]
    lead_names = tuple(["I", "II", "III", "aVR", "aVL", "aVF"][:tasks]) if multi_label else ("II",)
    recordings, leads = len(codes), len(lead_names)
    signals = [_signal(row, 1 + 0.5 * place, stream) for row, place in zip(codes, group, strict=True)]
    gains = 1 / np.arange(1, leads + 1)
    noise = 0.3 * stream.standard_normal((recordings, leads, FRAME_LENGTH))
    values = (np.stack(signals)[:, None] * gains[:, None] + noise).reshape(-1, FRAME_LENGTH)
    labels: NDArray[Any] = codes.astype(np.uint8) if multi_label else codes.argmax(1).astype(np.int64)
    terms = np.array(["2018-06-01", "2019-06-01", "2020-06-01"], dtype="datetime64[s]")
    frames = np.clip(np.rint((values - _OFFSET) / _GAIN), -32768, 32767).astype(np.int16)
    return FrameSet(
        name="synthetic",
        frames=frames,
        gain=np.full(len(frames), _GAIN, np.float32),
        offset=np.full(len(frames), _OFFSET, np.float32),
        unit="mV",
        patients=np.repeat(np.arange(recordings, dtype=np.int32), leads),
        patient_names=tuple(f"P{number:03d}" for number in range(recordings)),
        labels=np.repeat(labels, leads, axis=0),
        classes=tuple("ABCDEFGHIJKL"[:classes]),
        split=np.repeat(split.astype(np.int8), leads),
        leads=np.tile(np.arange(leads, dtype=np.int16), recordings),
        lead_names=lead_names,
        times=np.repeat(terms[group], leads) if scenario == "time_il" else None,
        data_hash=hashlib.sha256(frames.tobytes() + codes.tobytes()).hexdigest(),
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
    return RunConfig(**(settings | changes))


def _recordings(scenario: ScenarioName, tasks: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Multi-hot labels [n, C], split [n] and group (pair or term) [n] of every recording, in mixed order."""
    rows: list[tuple[list[int], int, int]] = []
    for split, counts in _RECORDINGS.items():
        for number in range(counts[scenario == "time_il"]):
            if scenario == "domain_il":
                rows += [([(code >> label) & 1 for label in range(3)], split, 0) for code in (number, 7 - number)]
            elif scenario == "class_il":
                rows += [([int(c == code) for c in range(2 * tasks)], split, code // 2) for code in range(2 * tasks)]
            else:
                rows += [([int(c == code) for c in range(4)], split, term) for term in range(3) for code in range(4)]
    order = np.random.default_rng(1).permutation(len(rows))
    codes, splits, groups = (np.array([rows[place][part] for place in order]) for part in range(3))
    return codes.astype(np.int64), splits.astype(np.int64), groups.astype(np.int64)


def _signal(labels: NDArray[np.int64], gain: float, stream: np.random.Generator) -> NDArray[np.float64]:
    """The sum of the frequencies of the classes that are present, at random phases."""
    time = np.arange(FRAME_LENGTH) / FRAME_LENGTH
    waves = [np.sin(2 * np.pi * (8 * (code + 1) * time + stream.uniform())) for code in np.flatnonzero(labels)]
    return gain * np.sum(waves, axis=0) if waves else np.zeros(FRAME_LENGTH)
