"""Filters of signals, for data sets and encoders."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from clops_sweep.data.files.units import factor, known
from clops_sweep.errors import UsageError, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ORDER, _QUALITY = 4, 30.0


@dataclass(frozen=True)
class Filters:
    """Scaling, a band-pass and a notch filter of zero phase, and clipping, in this order.

    Attributes:
        bandpass: edges in Hz, either None for a high-pass or low-pass: Butterworth of order 4, forwards and backwards.
        notch: frequency in Hz, of quality 30, such as that of the mains.
        scale: unit that the signals are converted to.
        clip: least and largest sample.
        gain: the factor to `scale`.
    """

    bandpass: tuple[float | None, float | None] | None = None
    notch: float | None = None
    scale: str | None = None
    clip: tuple[float, float] | None = None
    gain: float = 1.0

    @classmethod
    def given(cls, bandpass: Any, notch: Any, scale: Any, clip: Any) -> Self | None:
        """Return validated filters, None without any; `clip=5` means (-5, 5)."""
        limits = (-clip, clip) if _number(clip) else clip
        for name, value, example in (("bandpass", bandpass, (0.5, 40)), ("clip", limits, (-5, 5))):
            if value is None:
                continue
            pair = tuple(value) if isinstance(value, list | tuple) else ()
            edges = [edge for edge in pair if edge is not None or name == "clip"]
            numeric = len(pair) == 2 and edges and all(map(_number, edges)) and edges == sorted(set(edges))
            if not numeric or (name == "bandpass" and edges[0] <= 0):
                raise UsageError(f"{name}: expected (low, high) such as {example}, not {shown(value)}")
        if notch is not None and not (_number(notch) and notch > 0):
            raise UsageError(f"notch: expected a frequency in Hz such as 50, not {shown(notch)}")
        if scale is not None and not (isinstance(scale, str) and known(scale)):
            raise UsageError(f'scale: expected a unit such as "mV", not {shown(scale)}')
        pairs = (None if pair is None else tuple(pair) for pair in (bandpass, limits))
        made = cls(next(pairs), notch, scale, next(pairs))
        return None if made == cls() else made

    def of_unit(self, unit: str) -> Self:
        """Return the filters for signals of a unit; UsageError if it cannot be converted to `scale`."""
        gain = 1.0 if self.scale is None else factor(unit, self.scale)
        if gain is None:
            raise UsageError(f"scale: signals in {unit} cannot be converted to {self.scale}; leave scale out")
        return replace(self, gain=gain)

    def __call__(self, signals: NDArray[Any], rate: float) -> NDArray[Any]:
        """Return filtered signals [..., samples] in float64; pieces between missing samples are filtered alone.

        Raises:
            UsageError: a frequency is too high for the rate, or a signal too short.
        """
        import numpy as np
        from scipy.signal import butter, iirnotch, tf2sos

        filtered = np.asarray(signals, np.float64) * self.gain
        low, high = self.bandpass or (None, None)
        for name, edge in (("bandpass", low), ("bandpass", high), ("notch", self.notch)):
            if edge is not None and edge >= rate / 2:
                raise UsageError(f"{name}: {edge:g} Hz is not below half the sampling rate of {rate:g} Hz")
        if self.bandpass is not None:
            kind: Any = "high" if high is None else "low" if low is None else "band"
            edges: Any = self.bandpass if kind == "band" else low or high
            filtered = _zero_phase(butter(_ORDER, edges, kind, fs=rate, output="sos"), filtered)
        if self.notch is not None:
            filtered = _zero_phase(tf2sos(*iirnotch(self.notch, _QUALITY, fs=rate)), filtered)
        return filtered if self.clip is None else np.clip(filtered, *self.clip)


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and abs(float(value)) < float("inf")


def _zero_phase(sections: Any, signals: NDArray[Any]) -> NDArray[Any]:
    import numpy as np
    from scipy.signal import sosfiltfilt

    padded = 3 * (2 * len(sections) + 1 - min((sections[:, 2] == 0).sum(), (sections[:, 5] == 0).sum()))
    if signals.shape[-1] <= padded:
        raise UsageError(f"bandpass or notch: {signals.shape[-1]} samples are too few; expected more than {padded}")
    if np.isfinite(signals).all():
        return np.asarray(sosfiltfilt(sections, signals))
    rows = signals.reshape(-1, signals.shape[-1])
    filtered = np.full(rows.shape, np.nan)
    for row, signal in zip(filtered, rows, strict=True):
        ends = np.flatnonzero(np.diff(np.isfinite(signal), prepend=False, append=False))
        for begin, end in zip(ends[::2], ends[1::2], strict=True):
            if end - begin > padded:
                row[begin:end] = sosfiltfilt(sections, signal[begin:end])
    return filtered.reshape(signals.shape)
