"""The twelve rhythm classes of the Cardiology data set as processes of RR intervals and kinds of beat.

Each rhythm is a function from a patient and a random stream to the beats of one frame. Rhythms follow the usual
electrocardiographic definitions. Rates, variabilities and amplitudes vary between patients and overlap between rhythms,
so that no single number separates two classes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.synthetic.ecg_model import NORMAL_BEAT, VENTRICULAR_BEAT, Beat, P, R, T

FRAME_SECONDS: Final = 5.0
LEAD_IN: Final = 1.0
"""Seconds generated before the frame begins, so that a frame can start within a beat."""

Stream = np.random.Generator


@dataclass(frozen=True, eq=False)
class Patient:
    """Properties of all frames of a person: morphology, resting rate, and recording noise."""

    sinus: Beat
    ectopic: Beat
    interval: float
    """Resting RR interval, seconds."""
    variability: float
    """Relative standard deviation of sinus RR intervals."""
    fibrillation: NDArray[np.float64]
    """Dipole amplitude of fibrillatory waves [3], mV."""
    noise: float
    """Standard deviation of measurement noise, mV."""
    wander: float
    """Amplitude of baseline wander, mV."""


def draw_patient(stream: Stream) -> Patient:
    """Draw a patient with an individual heart axis, wave shapes, resting rate and noise level."""
    return Patient(
        sinus=_aberrant(_personal(NORMAL_BEAT, stream), stream),
        ectopic=_personal(VENTRICULAR_BEAT, stream),
        interval=float(np.clip(stream.normal(0.82, 0.12), 0.6, 1.1)),
        variability=float(stream.uniform(0.02, 0.06)),
        fibrillation=stream.normal(0, 1, 3) * 0.04 + np.array([0.06, 0.10, -0.06]),
        noise=float(stream.uniform(0.02, 0.07)),
        wander=float(stream.uniform(0.02, 0.15)),
    )


def _aberrant(beat: Beat, stream: Stream) -> Beat:
    """Return the beat with slow bundle-branch conduction: a third of people have a wide QRS in every rhythm."""
    stretch = float(stream.uniform(1.3, 2.2)) if stream.random() < 0.33 else 1.0
    qrs = np.array([1.0, stretch, stretch, stretch, 1.0])
    return replace(beat, width=beat.width * qrs, centre=beat.centre * qrs)


def _personal(beat: Beat, stream: Stream) -> Beat:
    """Return the beat on an individual axis, with individual amplitudes, widths and timing of its waves."""
    waves = len(beat.centre)
    turn = _rotation(stream.normal(0, 0.25, 3))
    heights = np.exp(stream.normal(0, 0.25, (waves, 1))) * np.exp(stream.normal(0, 0.15))
    return replace(
        beat,
        centre=beat.centre * np.exp(stream.normal(0, 0.06, waves)),
        width=beat.width * np.exp(stream.normal(0, 0.12, waves)),
        dipole=beat.dipole @ turn.T * heights,
    )


def _rotation(angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rotation matrix [3, 3] about X, then Y, then Z by the given angles in radians."""
    result = np.eye(3)
    for axis, angle in enumerate(angles):
        first, second = [other for other in range(3) if other != axis]
        turn = np.eye(3)
        turn[first, first] = turn[second, second] = np.cos(angle)
        turn[first, second], turn[second, first] = -np.sin(angle), np.sin(angle)
        result = turn @ result
    return result


@dataclass
class Strip:
    """Beats in order: R peaks in seconds, the interval before each, and their shape."""

    times: list[float] = field(default_factory=list)
    intervals: list[float] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    end: float = 0.0

    def add(self, interval: float, beat: Beat) -> None:
        """Add a beat `interval` seconds after the last."""
        interval = max(interval, 0.24)
        self.end += interval
        self.times.append(self.end)
        self.intervals.append(interval)
        self.beats.append(beat)

    @property
    def unfinished(self) -> bool:
        """Whether beats are still missing at the end of the frame."""
        return self.end < FRAME_SECONDS + LEAD_IN + 0.5


Rhythm = Callable[[Patient, Stream], Strip]


def sinus_interval(patient: Patient, stream: Stream, factor: float = 1.0) -> float:
    """Draw an interval of sinus rhythm in seconds, with a mean of `factor` times the resting interval."""
    return patient.interval * factor * float(np.exp(stream.normal(0, patient.variability)))


def _repeated(beat: Beat, mean: float, spread: float, stream: Stream) -> Strip:
    strip = Strip()
    while strip.unfinished:
        strip.add(mean * float(np.exp(stream.normal(0, spread))), beat)
    return strip


def _normal_sinus(patient: Patient, stream: Stream) -> Strip:
    """NSR: a P wave before every beat, RR near the resting interval, modulated by breathing."""
    strip, phase = Strip(), stream.uniform(0, 2 * np.pi)
    while strip.unfinished:
        breathing = 1 + 0.04 * np.sin(2 * np.pi * 0.25 * strip.end + phase)
        strip.add(sinus_interval(patient, stream, breathing), patient.sinus)
    return strip


def _atrial_fibrillation(patient: Patient, stream: Stream) -> Strip:
    """AFIB: no P waves, fast and irregular RR intervals; `episodes` adds the fibrillatory waves."""
    mean = patient.interval * stream.uniform(0.55, 0.9)
    return _repeated(patient.sinus.scaled(P, 0.0), mean, stream.uniform(0.10, 0.24), stream)


def _second_degree_block(patient: Patient, stream: Stream) -> Strip:
    """AVB: P waves march on at the sinus rate, and one in two to four is not followed by a beat."""
    strip, ratio = Strip(), int(stream.integers(2, 5))
    delay = float(stream.uniform(0.02, 0.10))
    conducted = patient.sinus.moved(P, patient.sinus.centre[P] - delay)
    alone = _only_p(conducted)
    step = int(stream.integers(ratio))
    while strip.unfinished:
        interval = sinus_interval(patient, stream, 0.9)
        strip.add(interval, alone if step % ratio == ratio - 1 else conducted)
        step += 1
    return strip


def premature_beat(patient: Patient, stream: Stream) -> Beat:
    """Return a beat from a focus in the ventricles: wide, and at least about as tall as sinus beats."""
    return patient.ectopic.scaled(R, stream.uniform(0.8, 1.6))


def _premature(patient: Patient, stream: Stream, every: int) -> Strip:
    """BIGEMINY, TRIGEMINY: every second or third beat is premature and ventricular, followed by a pause."""
    strip, coupling = Strip(), stream.uniform(0.55, 0.75)
    step = int(stream.integers(every))
    early = premature_beat(patient, stream)
    while strip.unfinished:
        position = step % every
        if position == every - 1:
            strip.add(sinus_interval(patient, stream, coupling), early)
        else:
            # the pause is compensatory: the sinus node kept its beat while the ventricles were refractory
            strip.add(sinus_interval(patient, stream, 2 - coupling if position == 0 else 1), patient.sinus)
        step += 1
    return strip


def _ectopic_atrial(patient: Patient, stream: Stream) -> Strip:
    """EAR: a low atrial focus is the pacemaker; P is inverted and closer to the QRS, the rate like sinus rhythm."""
    beat = patient.sinus.scaled(P, -stream.uniform(0.6, 1.2)).moved(P, -float(stream.uniform(0.10, 0.14)))
    return _repeated(beat, patient.interval * stream.uniform(0.85, 1.1), patient.variability, stream)


def _idioventricular(patient: Patient, stream: Stream) -> Strip:
    """IVR: wide beats at 45 to 100 per minute, very regular, without P waves."""
    return _repeated(patient.ectopic, stream.uniform(0.6, 1.3), 0.02, stream)


def _junctional(patient: Patient, stream: Stream) -> Strip:
    """JUNCTIONAL: narrow beats at 45 to 90 per minute; P is absent or follows the QRS, inverted."""
    beat = patient.sinus.scaled(P, 0.0)
    if stream.random() < 0.5:
        beat = patient.sinus.scaled(P, -0.7).moved(P, float(stream.uniform(0.07, 0.12)))
    return _repeated(beat, stream.uniform(0.68, 1.3), 0.02, stream)


def _supraventricular_tachycardia(patient: Patient, stream: Stream) -> Strip:
    """SVT: narrow beats at 120 to 200 per minute, very regular, P hidden in the preceding T."""
    return _repeated(patient.sinus.scaled(P, 0.0), stream.uniform(0.30, 0.50), 0.012, stream)


def _ventricular_tachycardia(patient: Patient, stream: Stream) -> Strip:
    """VT: wide beats at 110 to 190 per minute."""
    beat = patient.ectopic.scaled(R, stream.uniform(0.6, 1.6)).scaled(T, 0.5)
    return _repeated(beat, stream.uniform(0.32, 0.55), 0.025, stream)


def _wenckebach(patient: Patient, stream: Stream) -> Strip:
    """WENCKEBACH: PR grows from beat to beat until one P wave is not followed by a beat; then the cycle repeats."""
    strip, cycle = Strip(), int(stream.integers(3, 6))
    growth = float(stream.uniform(0.05, 0.09))
    step, p_time = int(stream.integers(cycle)), 0.0
    base = -float(patient.sinus.centre[P])
    while strip.unfinished:
        p_time += sinus_interval(patient, stream, 0.9)
        position = step % cycle
        delay = base + growth * position
        beat = patient.sinus.moved(P, -delay)
        strip.add(p_time + delay - strip.end, _only_p(beat) if position == cycle - 1 else beat)
        step += 1
    return strip


def _only_p(beat: Beat) -> Beat:
    dipole = beat.dipole.copy()
    dipole[P + 1 :] = 0
    return replace(beat, dipole=dipole)


RHYTHMS: Final[Mapping[str, Rhythm]] = {
    "AFIB": _atrial_fibrillation,
    "AVB": _second_degree_block,
    "BIGEMINY": partial(_premature, every=2),
    "EAR": _ectopic_atrial,
    "IVR": _idioventricular,
    "JUNCTIONAL": _junctional,
    "NOISE": _normal_sinus,
    "NSR": _normal_sinus,
    "SVT": _supraventricular_tachycardia,
    "TRIGEMINY": partial(_premature, every=3),
    "VT": _ventricular_tachycardia,
    "WENCKEBACH": _wenckebach,
}
"""In alphabetical order, as the tasks pair them. NOISE is sinus rhythm with `artefacts`."""
