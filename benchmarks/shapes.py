"""Frame sets of the paper's shapes, made of noise and a class-dependent oscillation; only their sizes matter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clops_sweep.data.frames import FRAME_LENGTH, FrameSet

CLASS_IL = ((781, 227, 463, 2118, 309, 179), (126, 141, 118, 587, 83, 82), (285, 77, 130, 703, 89, 102))
"""Numbers of training, validation and test instances of the six tasks of Cardiology."""

TIME_IL = ((37_596, 20_586, 18_424), (12_534, 6_858, 6_143), (12_552, 6_864, 6_139))
"""Numbers of instances by split of the three terms of Chapman, with twelve leads each."""

DOMAIN_IL = ((11_598,) * 12, (3_238,) * 12, (4_041,) * 12)
"""Numbers of instances by split of the twelve leads of PhysioNet 2020."""

LEADS = ("I", "II", "III", "aVL", "aVR", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")

Counts = Sequence[Sequence[int]]


def scaled(counts: Counts, share: float) -> list[list[int]]:
    """Scale numbers down in proportion, to at least eight instances each."""
    return [[max(8, round(share * count)) for count in split] for split in counts]


def class_il(counts: Counts = CLASS_IL) -> FrameSet:
    """Return single-label frames of pairs of classes."""
    cells = [
        (split, 2 * task + position, count // 2 + (position < count % 2))
        for split, tasks in enumerate(counts)
        for task, count in enumerate(tasks)
        for position in (0, 1)
    ]
    split, label = _columns(cells)
    return _frames(split, label, classes=2 * len(counts[0]))


def time_il(counts: Counts = TIME_IL) -> FrameSet:
    """Return frames of four classes in three terms."""
    split, term = _columns([(split, term, n) for split, terms in enumerate(counts) for term, n in enumerate(terms)])
    times = np.array(["2018-06-01", "2019-06-01", "2020-06-01"], "datetime64[s]")[term]
    return _frames(split, np.arange(len(split)) % 4, classes=4, times=times)


def domain_il(counts: Counts = DOMAIN_IL) -> FrameSet:
    """Return multi-label frames of twelve leads with nine labels."""
    split, lead = _columns([(split, lead, n) for split, leads in enumerate(counts) for lead, n in enumerate(leads)])
    labels = np.eye(9, dtype=np.uint8)[np.arange(len(split)) % 9]
    return _frames(split, labels, classes=9, leads=lead)


def _columns(cells: Sequence[tuple[int, int, int]]) -> list[np.ndarray]:
    """Convert (split, value, count) to a column of splits and a column of values."""
    counts = [count for *_, count in cells]
    return [np.repeat([cell[column] for cell in cells], counts) for column in (0, 1)]


def _frames(
    split: np.ndarray,
    labels: np.ndarray,
    classes: int,
    times: np.ndarray | None = None,
    leads: np.ndarray | None = None,
) -> FrameSet:
    n = len(split)
    generator = np.random.default_rng(0)
    kind = labels if labels.ndim == 1 else labels.argmax(1)
    waves = np.sin(np.linspace(0, 2 * np.pi, FRAME_LENGTH) * (5 + np.arange(classes)[:, None])).astype(np.float32)
    frames = generator.standard_normal((n, FRAME_LENGTH), dtype=np.float32)
    for start in range(0, n, 1024):
        frames[start : start + 1024] += waves[kind[start : start + 1024]]
    return FrameSet(
        name="synthetic",
        frames=frames,
        gain=np.ones(n, np.float32),
        offset=np.zeros(n, np.float32),
        unit="mV",
        patients=np.arange(n, dtype=np.int32),
        patient_names=tuple(map(str, range(n))),
        labels=labels,
        classes=tuple(f"class {c}" for c in range(classes)),
        split=split.astype(np.int8),
        leads=np.zeros(n, np.int16) if leads is None else leads.astype(np.int16),
        lead_names=("II",) if leads is None else LEADS,
        times=times,
        data_hash=f"benchmark-{classes}-{n}",
    )
