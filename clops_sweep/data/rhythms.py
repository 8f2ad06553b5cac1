"""The twelve rhythm classes of the Cardiology data set as processes of RR intervals and kinds of beat.

Each rhythm is a function from a patient and a random stream to the beats of one frame. What a rhythm is taken to be
follows the usual electrocardiographic definitions; rates, variabilities and amplitudes vary between patients and
overlap between rhythms, so that no single number tells two classes apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.ecg_model import Beat, P, R, T, draw_beats, normal_beat, ventricular_beat

FRAME_SECONDS: Final = 5.0
_LEAD_IN: Final = 1.0
"""Seconds generated before the frame begins, so that it starts anywhere in a beat."""

Stream = np.random.Generator


@dataclass(frozen=True, eq=False)
class Patient:
    """What stays the same over all of a person's frames: morphology, resting rate, and what the recorder adds."""

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
    """A patient with an own heart axis, wave shapes, resting rate and noise level."""
    return Patient(
        sinus=_aberrant(_personal(normal_beat(), stream), stream),
        ectopic=_personal(ventricular_beat(), stream),
        interval=float(np.clip(stream.normal(0.82, 0.12), 0.6, 1.1)),
        variability=float(stream.uniform(0.02, 0.06)),
        fibrillation=stream.normal(0, 1, 3) * 0.02 + np.array([0.03, 0.05, -0.03]),
        noise=float(stream.uniform(0.02, 0.07)),
        wander=float(stream.uniform(0.02, 0.15)),
    )


def _aberrant(beat: Beat, stream: Stream) -> Beat:
    """The beat as a slow bundle branch conducts it: in a third of people the QRS is wide in every rhythm."""
    stretch = float(stream.uniform(1.3, 2.2)) if stream.random() < 0.33 else 1.0
    qrs = np.array([1.0, stretch, stretch, stretch, 1.0])
    return replace(beat, width=beat.width * qrs, centre=beat.centre * qrs)


def _personal(beat: Beat, stream: Stream) -> Beat:
    """The beat turned to a personal axis, with personal amplitudes, widths and timing of its waves."""
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
    """The rotation about X, then Y, then Z by the given angles in radians, [3, 3]."""
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
    """Beats in the order they come: R peaks in seconds, the interval before each, and their shape."""

    times: list[float] = field(default_factory=list)
    intervals: list[float] = field(default_factory=list)
    beats: list[Beat] = field(default_factory=list)
    end: float = 0.0

    def add(self, interval: float, beat: Beat) -> None:
        """One more beat, `interval` seconds after the last."""
        interval = max(interval, 0.24)
        self.end += interval
        self.times.append(self.end)
        self.intervals.append(interval)
        self.beats.append(beat)

    @property
    def unfinished(self) -> bool:
        """Whether beats are still missing at the end of the frame."""
        return self.end < FRAME_SECONDS + _LEAD_IN + 0.5


Rhythm = Callable[[Patient, Stream], Strip]


def _sinus_interval(patient: Patient, stream: Stream, factor: float = 1.0) -> float:
    return patient.interval * factor * float(np.exp(stream.normal(0, patient.variability)))


def _repeated(beat: Beat, mean: float, spread: float, stream: Stream) -> Strip:
    strip = Strip()
    while strip.unfinished:
        strip.add(mean * float(np.exp(stream.normal(0, spread))), beat)
    return strip


def normal_sinus(patient: Patient, stream: Stream) -> Strip:
    """NSR: a P wave before every beat, RR near the resting interval, modulated by breathing."""
    strip, phase = Strip(), stream.uniform(0, 2 * np.pi)
    while strip.unfinished:
        breathing = 1 + 0.04 * np.sin(2 * np.pi * 0.25 * strip.end + phase)
        strip.add(_sinus_interval(patient, stream, breathing), patient.sinus)
    return strip


def atrial_fibrillation(patient: Patient, stream: Stream) -> Strip:
    """AFIB: no P waves, fast RR intervals without a pattern; the fibrillatory waves are added by `draw_dipole`."""
    mean = patient.interval * stream.uniform(0.55, 0.9)
    return _repeated(patient.sinus.without(P), mean, stream.uniform(0.10, 0.24), stream)


def second_degree_block(patient: Patient, stream: Stream) -> Strip:
    """AVB: P waves march on at the sinus rate, and one in two to four is not followed by a beat."""
    strip, ratio = Strip(), int(stream.integers(2, 5))
    delay = float(stream.uniform(0.02, 0.10))
    conducted = patient.sinus.moved(P, patient.sinus.centre[P] - delay)
    alone = _only_p(conducted)
    step = int(stream.integers(ratio))
    while strip.unfinished:
        interval = _sinus_interval(patient, stream, 0.9)
        strip.add(interval, alone if step % ratio == ratio - 1 else conducted)
        step += 1
    return strip


def bigeminy(patient: Patient, stream: Stream) -> Strip:
    """BIGEMINY: every other beat is a premature ventricular one, with a pause after it."""
    return _premature(patient, stream, every=2)


def trigeminy(patient: Patient, stream: Stream) -> Strip:
    """TRIGEMINY: every third beat is a premature ventricular one, with a pause after it."""
    return _premature(patient, stream, every=3)


def _premature(patient: Patient, stream: Stream, every: int) -> Strip:
    strip, coupling = Strip(), stream.uniform(0.55, 0.75)
    step = int(stream.integers(every))
    early = patient.ectopic.scaled(R, stream.uniform(0.4, 0.8))
    while strip.unfinished:
        position = step % every
        if position == every - 1:
            strip.add(_sinus_interval(patient, stream, coupling), early)
        else:
            # The pause is compensatory: the sinus node kept its beat while the ventricles were refractory.
            strip.add(_sinus_interval(patient, stream, 2 - coupling if position == 0 else 1), patient.sinus)
        step += 1
    return strip


def ectopic_atrial(patient: Patient, stream: Stream) -> Strip:
    """EAR: a focus low in the atria paces; P is inverted and closer to the QRS, the rate much like sinus rhythm."""
    beat = patient.sinus.scaled(P, -stream.uniform(0.6, 1.2)).moved(P, -float(stream.uniform(0.10, 0.14)))
    return _repeated(beat, patient.interval * stream.uniform(0.85, 1.1), patient.variability, stream)


def idioventricular(patient: Patient, stream: Stream) -> Strip:
    """IVR: wide beats at 45 to 100 a minute, very regular, without P waves."""
    return _repeated(patient.ectopic, stream.uniform(0.6, 1.3), 0.02, stream)


def junctional(patient: Patient, stream: Stream) -> Strip:
    """JUNCTIONAL: narrow beats at 45 to 90 a minute; P is absent or follows the QRS, inverted."""
    beat = patient.sinus.without(P)
    if stream.random() < 0.5:
        beat = patient.sinus.scaled(P, -0.7).moved(P, float(stream.uniform(0.07, 0.12)))
    return _repeated(beat, stream.uniform(0.68, 1.3), 0.02, stream)


def supraventricular_tachycardia(patient: Patient, stream: Stream) -> Strip:
    """SVT: narrow beats at 120 to 200 a minute, very regular, P hidden in the T before."""
    return _repeated(patient.sinus.without(P), stream.uniform(0.30, 0.50), 0.012, stream)


def ventricular_tachycardia(patient: Patient, stream: Stream) -> Strip:
    """VT: wide beats at 110 to 190 a minute."""
    beat = patient.ectopic.scaled(R, stream.uniform(0.3, 0.8)).scaled(T, 0.5)
    return _repeated(beat, stream.uniform(0.32, 0.55), 0.025, stream)


def wenckebach(patient: Patient, stream: Stream) -> Strip:
    """WENCKEBACH: PR grows from beat to beat until one P wave is not followed by a beat; then it starts over."""
    strip, cycle = Strip(), int(stream.integers(3, 6))
    growth = float(stream.uniform(0.05, 0.09))
    step, p_time = int(stream.integers(cycle)), 0.0
    base = -float(patient.sinus.centre[P])
    while strip.unfinished:
        p_time += _sinus_interval(patient, stream, 0.9)
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
    "AFIB": atrial_fibrillation,
    "AVB": second_degree_block,
    "BIGEMINY": bigeminy,
    "EAR": ectopic_atrial,
    "IVR": idioventricular,
    "JUNCTIONAL": junctional,
    "NOISE": normal_sinus,
    "NSR": normal_sinus,
    "SVT": supraventricular_tachycardia,
    "TRIGEMINY": trigeminy,
    "VT": ventricular_tachycardia,
    "WENCKEBACH": wenckebach,
}
"""Alphabetical, as the tasks pair them. NOISE is sinus rhythm under `artefacts`."""


SHORT_EPISODES: Final[Mapping[str, float]] = {
    "AFIB": 0.2,
    "AVB": 0.2,
    "BIGEMINY": 0.9,
    "EAR": 0.3,
    "IVR": 0.5,
    "JUNCTIONAL": 0.3,
    "SVT": 0.5,
    "TRIGEMINY": 0.2,
    "VT": 0.9,
    "WENCKEBACH": 0.2,
}
"""Share of frames in which the rhythm ends before the frame does, and sinus rhythm follows: as in the Cardiology data
set, a frame's label is the rhythm at its beginning."""


def draw_dipole(rhythm: str, patient: Patient, stream: Stream, length: int) -> NDArray[np.float64]:
    """The heart's dipole over one frame of the rhythm, [3, length] mV, without what a recorder adds."""
    rate = length / FRAME_SECONDS
    strip = RHYTHMS[rhythm](patient, stream)
    end = FRAME_SECONDS
    if stream.random() < SHORT_EPISODES.get(rhythm, 0.0):
        end = float(stream.uniform(0.05, 1.0)) * FRAME_SECONDS
        strip = _then_sinus(strip, end + _LEAD_IN, patient, stream)
    times = np.array(strip.times) - _LEAD_IN
    signal = draw_beats(times, np.array(strip.intervals), strip.beats, length, rate)
    if rhythm == "AFIB":
        lasting = np.arange(length) < end * rate
        signal += lasting * patient.fibrillation[:, None] * _fibrillatory_waves(stream, length, rate)
    return signal


def _then_sinus(strip: Strip, end: float, patient: Patient, stream: Stream) -> Strip:
    """The strip up to `end` seconds, and sinus rhythm after it."""
    mixed = Strip()
    for interval, beat in zip(strip.intervals, strip.beats, strict=True):
        if mixed.end + interval > end:
            break
        mixed.add(interval, beat)
    while mixed.unfinished:
        mixed.add(_sinus_interval(patient, stream), patient.sinus)
    return mixed


def _fibrillatory_waves(stream: Stream, length: int, rate: float) -> NDArray[np.float64]:
    """A wave of 4 to 8 Hz whose frequency and height drift, [length], of amplitude about 1."""
    time = np.arange(length) / rate
    frequency = stream.uniform(4.5, 7.5) + 0.6 * np.sin(2 * np.pi * stream.uniform(0.1, 0.4) * time)
    phase = 2 * np.pi * np.cumsum(frequency) / rate + stream.uniform(0, 2 * np.pi)
    height = 1 + 0.4 * np.sin(2 * np.pi * stream.uniform(0.2, 0.7) * time + stream.uniform(0, 2 * np.pi))
    return np.asarray(height * (np.sin(phase) + 0.3 * np.sin(2 * phase)))
