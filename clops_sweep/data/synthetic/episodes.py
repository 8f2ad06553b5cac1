"""From a rhythm to a frame of a recording: episodes end, ectopic beats occur, atria fibrillate, people move.

`Difficulty` sets how often, and thus how far the classes overlap. Without overlap, a network with ten times as many
frames separates all rhythms.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.synthetic.ecg_model import draw_beats
from clops_sweep.data.synthetic.rhythms import (
    FRAME_SECONDS,
    LEAD_IN,
    RHYTHMS,
    Patient,
    Stream,
    Strip,
    premature_beat,
    sinus_interval,
)


@dataclass(frozen=True)
class Difficulty:
    """How far the classes of a data set overlap, whatever the number of frames.

    A frame's label is the rhythm at its beginning, as in the Cardiology data set: the sooner the rhythm ends, the less
    of the frame shows it.
    """

    short_episodes: Mapping[str, float]
    """Share of a rhythm's frames in which it ends before the frame does and sinus rhythm follows."""
    episode_end: tuple[float, float]
    """Earliest and latest end of such an episode, as a share of the frame."""
    ectopy: float
    """Mean number of isolated beats of another origin per frame of any rhythm: premature ventricular beats, and in
    rhythms of the ventricles beats from the sinus node. In 24 hours half of all healthy young men have some (Brodsky et
    al., American Journal of Cardiology 39, 1977)."""
    artefacts: float
    """Share of frames that have the artefacts of NOISE, but weaker (`ARTEFACT_LEVEL`)."""


CLINIC: Final = Difficulty(
    short_episodes={
        "AFIB": 0.2,
        "AVB": 0.5,
        "BIGEMINY": 0.4,
        "EAR": 0.1,
        "IVR": 0.9,
        "JUNCTIONAL": 0.9,
        "SVT": 0.5,
        "TRIGEMINY": 0.2,
        "VT": 0.9,
        "WENCKEBACH": 0.2,
    },
    episode_end=(0.05, 1.0),
    ectopy=0.05,
    artefacts=0.0,
)
"""People at rest: hard enough with a hundred frames per task."""

AMBULATORY: Final = Difficulty(
    short_episodes={
        "AFIB": 0.7,
        "AVB": 0.7,
        "BIGEMINY": 0.15,
        "IVR": 0.9,
        "JUNCTIONAL": 0.9,
        "SVT": 0.6,
        "TRIGEMINY": 0.4,
        "VT": 0.5,
        "WENCKEBACH": 0.3,
    },
    episode_end=(0.02, 0.6),
    ectopy=0.3,
    artefacts=0.6,
)
"""People in daily life, as with the patch recorder of the Cardiology data set: they move, and many episodes are
short."""

ARTEFACT_LEVEL: Final = 0.6
"""Largest amplitude of these artefacts, as a share of that in NOISE."""


def draw_dipole(
    rhythm: str, patient: Patient, stream: Stream, length: int, difficulty: Difficulty
) -> NDArray[np.float64]:
    """Draw the heart's dipole over a frame that begins in the rhythm, [3, length] mV, without the recorder's noise."""
    rate = length / FRAME_SECONDS
    strip = RHYTHMS[rhythm](patient, stream)
    end = FRAME_SECONDS
    if stream.random() < difficulty.short_episodes.get(rhythm, 0.0):
        end = float(stream.uniform(*difficulty.episode_end)) * FRAME_SECONDS
        strip = _then_sinus(strip, end + LEAD_IN, patient, stream)
    strip = _with_ectopy(strip, rhythm, patient, stream, difficulty.ectopy)
    times = np.array(strip.times) - LEAD_IN
    signal = draw_beats(times, np.array(strip.intervals), strip.beats, length, rate)
    if rhythm == "AFIB":
        is_in_episode = np.arange(length) < end * rate
        waves = _fibrillatory_waves(stream, length, rate)
        signal += is_in_episode * patient.fibrillation[:, None] * waves
    return signal


def _then_sinus(strip: Strip, end: float, patient: Patient, stream: Stream) -> Strip:
    """Return the strip up to `end` seconds, followed by sinus rhythm."""
    mixed = Strip()
    for interval, beat in zip(strip.intervals, strip.beats, strict=True):
        if mixed.end + interval > end:
            break
        mixed.add(interval, beat)
    while mixed.unfinished:
        mixed.add(sinus_interval(patient, stream), patient.sinus)
    return mixed


def _with_ectopy(strip: Strip, rhythm: str, patient: Patient, stream: Stream, per_frame: float) -> Strip:
    """Return the strip with some beats replaced by early ones of another origin, each with a compensatory pause."""
    intervals = list(strip.intervals)
    beats = list(strip.beats)
    other = patient.sinus if rhythm in ("IVR", "VT") else premature_beat(patient, stream)
    expected = per_frame * strip.end / FRAME_SECONDS
    for _ in range(int(stream.poisson(expected))):
        index = int(stream.integers(1, len(beats) - 1))
        early = intervals[index] * stream.uniform(0.25, 0.45)
        intervals[index] -= early
        intervals[index + 1] += early
        beats[index] = other
    changed = Strip()
    for interval, beat in zip(intervals, beats, strict=True):
        changed.add(interval, beat)
    return changed


def _fibrillatory_waves(stream: Stream, length: int, rate: float) -> NDArray[np.float64]:
    """Draw a wave of 4 to 8 Hz with drifting frequency and height, [length], of amplitude about 1."""
    time = np.arange(length) / rate
    mean_frequency = stream.uniform(4.5, 7.5)
    drift = np.sin(2 * np.pi * stream.uniform(0.1, 0.4) * time)
    frequency = mean_frequency + 0.6 * drift
    phase = 2 * np.pi * np.cumsum(frequency) / rate + stream.uniform(0, 2 * np.pi)
    swell = np.sin(2 * np.pi * stream.uniform(0.2, 0.7) * time + stream.uniform(0, 2 * np.pi))
    height = 1 + 0.4 * swell
    return np.asarray(height * (np.sin(phase) + 0.3 * np.sin(2 * phase)))
