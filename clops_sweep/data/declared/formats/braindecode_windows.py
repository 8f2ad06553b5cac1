"""`Recordings.from_braindecode`: the windows of a braindecode data set, each of which becomes a recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.label_table import positions
from clops_sweep.errors import UsageError, listed, shown

_WHERE: Final = "from_braindecode: "
_STIMULUS: Final = "stim"
_NO_TARGET: Final = "targets come from create_windows_from_events, or target_name of the data set"


@dataclass(frozen=True)
class BraindecodeWindows:
    """The windows of a data set, and what its recordings say about them.

    Attributes:
        signals: [n, channels, samples].
        rate: sampling rate in Hz.
        channels: names of the channels.
        targets: [n] whole numbers.
        columns: columns [n] of the descriptions, by name.
        names: [n] names of the windows: number of the recording, then of the window.
    """

    signals: NDArray[np.float32]
    rate: float
    channels: tuple[str, ...]
    targets: NDArray[np.int64]
    columns: Mapping[str, list[Any]]
    names: list[str]


def braindecode_windows(
    dataset: Any, columns: Sequence[str], channels: Sequence[str] | Sequence[int] | None
) -> BraindecodeWindows:
    """Return the windows of a `BaseConcatDataset`.

    Args:
        dataset: the data set, after windows were created.
        columns: columns of `description` to read.
        channels: names or positions of the channels; by default all but stimulus channels.

    Raises:
        UsageError: it holds no windows, recordings differ in channels, rate or length, a window has no target, or a
            description has no such column.
    """
    parts = getattr(dataset, "datasets", None)
    if not parts:
        raise UsageError(f"{_WHERE}expected a BaseConcatDataset of windows, not {shown(dataset)}")
    signals, targets, names = list[NDArray[np.float32]](), list[int](), list[str]()
    described: dict[str, list[Any]] = {column: [] for column in columns}
    first = _Header.of(parts[0], channels)
    for number, part in enumerate(parts):
        header = _Header.of(part, channels)
        if header != first:
            raise UsageError(
                f"{_WHERE}recording {number} has {header}; expected {first}, as the first one has: resample and pick "
                "channels in braindecode, or give channels"
            )
        _require_within(part, number)
        for window, (signal, target) in enumerate(_windows(part, number)):
            signals.append(signal[list(header.places)])
            targets.append(target)
            names.append(f"{number}-{window}")
        for column in columns:
            described[column] += [_described(part, number, column)] * len(part)
    lengths = sorted({signal.shape[1] for signal in signals})
    if len(lengths) != 1:
        raise UsageError(f"{_WHERE}windows have {listed(lengths)} samples; expected windows of one length")
    return BraindecodeWindows(np.stack(signals), first.rate, first.channels, np.array(targets), described, names)


@dataclass(frozen=True)
class _Header:
    """What windows of all recordings must have in common."""

    channels: tuple[str, ...]
    places: tuple[int, ...]
    rate: float

    def __str__(self) -> str:
        return f"channels {', '.join(self.channels)} at {self.rate:g} Hz"

    @classmethod
    def of(cls, part: Any, channels: Sequence[str] | Sequence[int] | None) -> _Header:
        """Return the header of the windows of a recording."""
        is_windowed = hasattr(part, "metadata") and hasattr(part, "y")
        source = getattr(part, "windows", None)
        if source is None:
            source = getattr(part, "raw", None)
        if not is_windowed or source is None:
            raise UsageError(
                f"{_WHERE}{type(part).__name__} holds no windows; create them first, as by create_windows_from_events"
            )
        names = [str(name) for name in source.ch_names]
        if channels is None:
            kinds = source.get_channel_types()
            chosen = [channel for channel, kind in enumerate(kinds) if kind != _STIMULUS]
        else:
            chosen = list(positions(_WHERE, names, channels))
        return cls(tuple(names[channel] for channel in chosen), tuple(chosen), float(source.info["sfreq"]))


def _require_within(part: Any, number: int) -> None:
    """Refuse windows that end after their recording: resampling a recording keeps the sample numbers of its windows."""
    if getattr(part, "windows", None) is not None:
        return
    samples = int(part.raw.n_times)
    end = int(part.metadata["i_stop_in_trial"].max())
    if end > samples:
        raise UsageError(
            f"{_WHERE}recording {number} has {samples} samples and a window that ends at sample {end}; expected "
            "windows within their recording: resample or crop it before windows are created, which keep their "
            "sample numbers"
        )


def _windows(part: Any, number: int) -> Iterator[tuple[NDArray[np.float32], int]]:
    """Yield each window of a recording [all channels, samples] with its target."""
    for window in range(len(part)):
        signal, target, *_ = part[window]
        if not isinstance(target, int | np.integer) or target < 0:
            raise UsageError(
                f"{_WHERE}window {window} of recording {number} has the target {shown(target)}; expected the position "
                f"of its class, from 0: {_NO_TARGET}"
            )
        yield np.asarray(signal, np.float32), int(target)


def _described(part: Any, number: int, column: str) -> Any:
    """Return what the description of a recording says in a column."""
    description = part.description
    if description is None or column not in description:
        known = [] if description is None else [str(name) for name in dict(description)]
        raise UsageError(
            f"{_WHERE}the description of recording {number} has no {column!r}; it has {listed(known) or 'nothing'}"
        )
    return description[column]
