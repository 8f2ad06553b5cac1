"""A model of the ECG: the waves of each beat are Gaussian bumps of a cardiac dipole, projected onto twelve leads.

After McSharry, Clifford, Tarassenko and Smith, "A dynamical model for generating synthetic electrocardiogram signals",
IEEE Transactions on Biomedical Engineering 50(3), 2003. There, Gaussians at angles of a limit cycle form the waves P,
Q, R, S and T, and a process of RR intervals drives the cycle. Here, the Gaussians lie at times relative to each R peak
(the solution of that model's third equation without its relaxation term), for three dipole components instead of one
lead and for any sequence of beats. Dower's transformation gives the leads (Dower, Machado and Osborne, "On deriving the
electrocardiogram from vectorcardiographic leads", Clinical Cardiology 3, 1980).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAD_NAMES: Final = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")

DOWER: Final = {
    "I": (0.632, -0.235, 0.059),
    "II": (0.235, 1.066, -0.132),
    "V1": (-0.515, 0.157, -0.917),
    "V2": (0.044, 0.164, -1.387),
    "V3": (0.882, 0.098, -1.277),
    "V4": (1.213, 0.127, -0.601),
    "V5": (1.125, 0.127, -0.086),
    "V6": (0.831, 0.076, 0.230),
}
"""The independent leads from dipole components X (left), Y (down), Z (back)."""

_REACH: Final = 4.0
"""Standard deviations after which a bump is cut off (3e-4 of its height)."""


@dataclass(frozen=True, eq=False)
class Beat:
    """The waves of one kind of beat.

    Shapes: centre [w], seconds from the R peak; width [w], standard deviation in seconds; dipole [w, 3], mV. Centres of
    waves in `follows_rate` scale with the square root of the RR interval, as the QT interval does (Bazett).
    """

    centre: NDArray[np.float64]
    width: NDArray[np.float64]
    dipole: NDArray[np.float64]
    follows_rate: NDArray[np.bool_]

    def scaled(self, wave: int, factor: float) -> Beat:
        """Return the beat with one wave's amplitude multiplied."""
        dipole = self.dipole.copy()
        dipole[wave] *= factor
        return replace(self, dipole=dipole)

    def moved(self, wave: int, seconds: float) -> Beat:
        """Return the beat with one wave at another time from the R peak."""
        centre = self.centre.copy()
        centre[wave] = seconds
        return replace(self, centre=centre)


P, Q, R, S, T = range(5)


NORMAL_BEAT: Final = Beat(
    centre=np.array([-0.165, -0.028, 0.0, 0.028, 0.270]),
    width=np.array([0.022, 0.009, 0.011, 0.011, 0.050]),
    dipole=np.array(
        [
            [0.06, 0.12, 0.01],
            [-0.10, -0.04, -0.12],
            [0.85, 0.95, 0.30],
            [-0.10, -0.16, 0.35],
            [0.22, 0.26, -0.10],
        ]
    ),
    follows_rate=np.array([False, False, False, False, True]),
)
"""A sinus beat of textbook proportions: P before a narrow QRS, T after it."""


VENTRICULAR_BEAT: Final = Beat(
    centre=np.array([-0.165, -0.050, 0.0, 0.060, 0.300]),
    width=np.array([0.022, 0.024, 0.032, 0.034, 0.060]),
    dipole=np.array(
        [
            [0.0, 0.0, 0.0],
            [-0.10, -0.20, 0.10],
            [0.55, 1.25, -0.60],
            [-0.30, -0.35, 0.40],
            [-0.25, -0.45, 0.25],
        ]
    ),
    follows_rate=np.array([False, False, False, False, True]),
)
"""A beat that starts in a ventricle: no P, a wide QRS on another axis, a T of opposite sign."""


def draw_beats(
    times: NDArray[np.float64], intervals: NDArray[np.float64], beats: list[Beat], length: int, rate: float
) -> NDArray[np.float64]:
    """Return the dipole of k beats over time, [3, length] mV.

    d(t) = sum over beats and waves of dipole * exp(-(t - time - centre)^2 / (2 width^2)).

    `times` [k] are R peaks in seconds, `intervals` [k] the RR interval before each, `rate` samples per second.
    """
    signal = np.zeros((3, length))
    for time, interval, beat in zip(times, intervals, beats, strict=True):
        stretch = np.where(beat.follows_rate, np.sqrt(np.clip(interval, 0.3, 1.5)), 1.0)
        for centre, width, dipole in zip(time + beat.centre * stretch, beat.width * stretch, beat.dipole, strict=True):
            first = max(0, int((centre - _REACH * width) * rate))
            last = min(length, int((centre + _REACH * width) * rate) + 1)
            if first < last and dipole.any():
                distance = (np.arange(first, last) / rate - centre) / width
                signal[:, first:last] += dipole[:, None] * np.exp(-0.5 * distance**2)
    return signal
