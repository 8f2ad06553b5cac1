"""`Recordings.from_folder(..., read=function)`: files that a function reads, in several processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final, cast

import cloudpickle
import numpy as np

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.clocks import DAY, Moment, side
from clops_sweep.data.declared.fields import SignalFields
from clops_sweep.data.declared.formats.edf_pieces import INTERRUPTED
from clops_sweep.data.declared.header_dates import header_date
from clops_sweep.data.declared.intervals import Intervals
from clops_sweep.data.declared.label_table import Labels, Listed, first_readable, other_names, positions
from clops_sweep.data.declared.markers import left_out_note
from clops_sweep.data.declared.one_by_one import Described, Recording, begin_of, item, markers_of
from clops_sweep.data.declared.portions import Columns, InMemory, stored_as
from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.data.files.library_warnings import ABOUT_CODE
from clops_sweep.data.files.units import conversion_notes, factor
from clops_sweep.data.left_out import Collected
from clops_sweep.data.missing_key import missing_key
from clops_sweep.data.records import Common, EveryRecordFails, Frames, Source
from clops_sweep.data.windowing import Windowing
from clops_sweep.errors import UsageError, one_line, prefixed, shown, user_code

_LONGEST: Final = 200
"""Most characters of a warning in a note."""
_SAME_START: Final = 1.0
"""Seconds by which a table, which may have whole seconds, and a recording may differ in its start."""


class Shipped:
    """A function of the user's, pickled by value, so that spawned processes need not import its file."""

    def __init__(self, function: Callable[[Path], Any]) -> None:
        self.function = function

    @property
    def is_of_this_package(self) -> bool:
        """Whether the function is no user's."""
        return str(getattr(self.function, "__module__", "")).split(".")[0] == "clops_sweep"

    @cached_property
    def _pickled(self) -> bytes:
        return cast(bytes, cloudpickle.dumps(self.function))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._pickled,)

    def __call__(self, path: Path) -> list[Recording]:
        """Return the recordings of a file.

        Raises:
            UsageError: the function raises, or returns anything else.
        """
        called = getattr(self.function, "__name__", "read")
        with (
            one_sentence(path),
            user_code(lambda error: _raised(path, called, error)),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            returned = self.function(path)
            is_one = returned is None or isinstance(returned, Recording)
            recordings = [returned] if is_one else list(returned)
        if not recordings or not all(isinstance(recording, Recording) for recording in recordings):
            raise UsageError(
                f"{shorten(path)}: {called}() returns {shown(returned)}; expected Recording(...), or several"
            )
        notes = _noted(caught, path, called)
        if not notes:
            return recordings
        return [replace(recording, notes=(*recording.notes, *notes)) for recording in recordings]


@lru_cache(maxsize=4)
def _unpickled(pickled: bytes) -> Shipped:
    return Shipped(cloudpickle.loads(pickled))


def _noted(caught: Sequence[warnings.WarningMessage], path: Path, called: str) -> list[str]:
    """Return notes on warnings about a file; those about code are issued again."""
    said = dict[str, None]()
    for warning in caught:
        if issubclass(warning.category, ABOUT_CODE):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
            continue
        message = one_line(warning.message)
        for name in (str(path), path.name):  # equal notes of several files are counted
            message = message.replace(name, "the file")
        said[f"{called}() warns: {message[:_LONGEST]}"] = None
    return list(said)


def _raised(path: Path, called: str, error: BaseException) -> Exception:
    if isinstance(error, OSError) and error.filename == str(path):
        return error
    reason = missing_key(error, named=path) or one_line(error)[:200]
    sentence = f"{shorten(path)}: {called}() raises {type(error).__name__}: {reason}"
    if isinstance(error, ModuleNotFoundError):
        return EveryRecordFails(f"{sentence}; install that package")
    return UsageError(sentence)


@dataclass(frozen=True, eq=False, kw_only=True)
class ReadFile(Source):
    """A file whose recordings are known once it is read, unless a table describes it as one recording.

    `first` is the first recording of all, without its signal: its channels, by name or position, and their units.
    `columns` are the facts that a table has, by the arguments in `given`. If `dated`, the start of a recording is its
    date.
    """

    read_by: Shipped
    first: Recording
    wanted: tuple[str | int, ...]
    labels: Labels
    columns: Columns | None = None
    given: frozenset[str] = frozenset()
    intervals: Intervals | None = None
    dated: bool = False

    def read(self, common: Common) -> Frames:
        """Return the frames of its only recording."""
        ((single,), _) = self.recordings(common)
        return single.read(common)

    def recordings(self, common: Common) -> tuple[list[InMemory], Labels]:
        """Return the validated recordings of the file that have a class, and labels with what is left out of it.

        Raises:
            UsageError: the file cannot be read, or one of its recordings is invalid.
        """
        labels = copy(self.labels)
        labels.left_out = Collected()
        read = self.read_by(self.files[0])
        if "label" in self.given and len(read) > 1:
            raise UsageError(
                f"{self.place}: holds {len(read)} recordings; expected one, as the table has one label for it"
            )
        recordings = list[InMemory]()
        is_alone = len(read) == 1
        for number, recording in enumerate(read):
            name = self.record if is_alone else f"{self.record}-{number}"
            with prefixed(self.place if is_alone else f"{self.place}: recording {number}"):
                made = self._made(recording, name, common, labels)
                if made is not None and self.dated:
                    date = header_date(recording, self.first)
                    made = replace(made, columns=replace(made.columns, times=date))
            if made is not None:
                recordings.append(made)
        return recordings, labels

    def _domains(self, recording: Recording) -> dict[str, str]:
        """Return the domains of a recording, by column, as the table or else the recording has them."""
        own = recording.domains if isinstance(recording.domains, Mapping) else {}
        domains = {name: checks.identifier("domains", value) for name, value in own.items()}
        if self.columns is not None:
            domains |= {name: values[0] for name, values in self.columns.domains.items()}
        return {name: domain for name, domain in domains.items() if domain}

    def _made(self, read: Recording, name: str, common: Common, labels: Labels) -> InMemory | None:
        """Return one recording, validated; None, and counted, if its label is not used."""
        recording = _with_channels(read, self.wanted, self.first.units)
        if read.channels is not None:
            names = [str(name) for name in read.channels]
            renamed = other_names("", names, self.wanted, common.channels)
            recording = replace(recording, notes=[*recording.notes, *renamed])
        text = None if recording.intervals is not None else labels.name_of(recording.label)
        if text is None and recording.intervals is None and recording.label is not None:
            checks.require_clear_numbers("label", recording.label, common.classes)
        if text is not None:
            has_row = "label" in self.given
            code = labels.of(text, name, self._domains(recording))
            if code is None and has_row:
                raise UsageError(f"label: the table has one that is in classes and the recording {shown(text)}")
            if code is None:
                return None
            recording = replace(recording, label=code)
        described = None if self.columns is None else Described(self.columns, self.given)
        rate = self.first.sampling_rate
        if self.intervals is None:
            return item(recording, name, common, rate, self.first, labels, described, self.files)
        if recording.intervals is not None:
            raise UsageError("intervals: both the table and the recording give some; leave one of them out")
        made = item(recording, name, common, rate, self.first, labels, described, self.files)
        intervals = _at_rate_of_frames(self.intervals, recording, made.rate)
        return replace(made, intervals=_from_start(intervals, begin_of(recording)))


def _at_rate_of_frames(intervals: Intervals, recording: Recording, rate: float) -> Intervals:
    """Return intervals in samples of the fastest channel in seconds, if channels are brought to another rate.

    Raises:
        UsageError: they count samples that timestamps move to a grid, or those of an interrupted file.
    """
    if not intervals.in_samples:
        return intervals
    if recording.timestamps is not None:
        raise UsageError(
            "start: is in samples, and timestamps bring the samples of the recording to other places; expected seconds"
        )
    if INTERRUPTED in recording.notes:
        raise UsageError(
            "start: is in samples, and the recording is interrupted, so that samples may count with its gaps or "
            "without; expected seconds"
        )
    if not np.ndim(recording.sampling_rate):
        return intervals
    fastest = max(recording.sampling_rate)
    if fastest == rate:
        return intervals
    rows = tuple(row._replace(start=row.start / fastest, end=row.end / fastest) for row in intervals.rows)
    return replace(intervals, rows=rows, in_samples=False)


def _from_start(intervals: Intervals, begin: Moment | None) -> Intervals:
    """Return the intervals of a table with the start of their recording, if the recording has one."""
    if begin is None or not intervals.dated:
        return intervals
    if begin.zoned != intervals.zoned:
        ours, theirs = ("a time zone", "none") if intervals.zoned else ("no time zone", "one")
        raise UsageError(
            f"start: has {ours}, and the start of the recording has {theirs}; expected both alike, as in "
            "2020-01-31 22:00:00+01:00"
        )
    if intervals.begin is not None:
        apart = begin.seconds - intervals.begin
        is_its_day = intervals.begin % DAY == 0 and 0 <= apart < DAY  # a date without a time of day
        if abs(apart) > _SAME_START and not is_its_day:
            raise UsageError(
                f"time: the recording starts {abs(apart):,.10g} s {side(apart)} the time that the table says; correct "
                "one of them, or leave time out"
            )
    return replace(intervals, begin=begin.seconds)


def _with_channels(recording: Recording, wanted: Sequence[str | int], units: Sequence[str]) -> Recording:
    """Return a recording with only the wanted channels, in the given units."""
    try:
        signal = recording.signal if np.ndim(recording.signal[0]) else [recording.signal]
    except (TypeError, LookupError):
        raise checks.refused("signal", "samples [channels, samples]", recording.signal) from None
    count = len(signal)
    named = wanted if recording.channels is None else checks.names("channels", recording.channels)
    if len(named) != count:
        raise UsageError(
            f"signal: has {count} channels; expected {len(named)}, as there are in channels"
            + checks.transposed(signal, len(named))
        )
    rows = list(range(count)) if recording.channels is None else positions("", [str(name) for name in named], wanted)
    several = isinstance(recording.units, Sequence) and not isinstance(recording.units, str)
    given: list[Any] = list(recording.units) if several else [recording.units] * count
    gain = np.array(np.broadcast_to(1.0 if recording.gain is None else recording.gain, count), np.float64)[rows]
    named_units = [unit if given[row] is None else given[row] for row, unit in zip(rows, units, strict=True)]
    for row, (channel, unit) in enumerate(zip(rows, units, strict=True)):
        converted = 1.0 if given[channel] is None else factor(given[channel], unit)
        if converted is None:
            raise UsageError(
                f"channel {named[channel]} is in {given[channel]} where the first recording is in {unit}; leave it "
                "out, or declare it as another data set"
            )
        gain[row] *= converted
    rate = recording.sampling_rate
    return replace(
        recording,
        signal=[signal[row] for row in rows],
        sampling_rate=[rate[row] for row in rows] if np.ndim(rate or 0.0) else rate,
        gain=gain,
        channels=None,
        units=None,
        classes=None,
        notes=[*recording.notes, *conversion_notes(named_units, units)],
    )


def _unused_rate(of_recording: Any, of_folder: float | None) -> tuple[str, ...]:
    """Return a note if recordings have another sampling rate than `from_folder` says."""
    if of_recording is None or of_folder is None:
        return ()
    rates = np.unique(np.asarray(of_recording, np.float64)).tolist()
    if rates == [of_folder]:
        return ()
    written = ", ".join(f"{rate:g}" for rate in rates)
    return (f"sampling_rate={of_folder:g} of from_folder is not used: recordings have {written} Hz of their own",)


def read_files(
    listed: Sequence[Listed],
    given: frozenset[str],
    read: Callable[[Path], Any],
    labels: Labels,
    signals: SignalFields,
    windowing: Windowing,
    from_header: bool = False,
) -> tuple[Common, list[ReadFile]]:
    """Return values common to files, and the files, each with its name, and the facts if a table has them."""
    shipped = Shipped(read)
    path, first = first_readable((recording.file for recording in listed), lambda file: (file, shipped(file)[0]))
    channels, units = signals.channels, signals.units
    with prefixed(shorten(path)):
        defaults: dict[str, Any] = {"channels": channels, "units": units, "sampling_rate": signals.rate}
        first_names = first.channels
        unused_rate = _unused_rate(first.sampling_rate, signals.rate)
        first = replace(first, **{key: value for key, value in defaults.items() if getattr(first, key) is None})
        for argument in defaults:
            if getattr(first, argument) is None:
                raise UsageError(f"{argument}: neither from_folder(...) nor Recording(...) gives it")
        named = checks.names("channels", first.channels)
        dropped = markers_of(first, None) if channels is None else ()
        wanted = checks.channels(channels) or tuple(name for name in named if name not in dropped)
        kept_on_purpose = first.markers == "keep" or (channels is not None and first_names is not None)
        rows = positions("", named, wanted)
        kept = [first.units] * len(named) if isinstance(first.units, str) else list(first.units)
        kept = [checks.units(kept[row]) if units is None else units for row in rows]
        sample = _with_channels(first, wanted, kept).signal[0]
    common = Common(
        labels.classes,
        tuple(named[row] for row in rows),
        ", ".join(dict.fromkeys(kept)),
        labels.multi_label,
        stored_as(np.asarray(sample).dtype, windowing.rate),
        windowing,
        left_out=labels.left_out,
        dates_of_headers=from_header,
        markers="keep" if kept_on_purpose else "refuse",
        notes=(*((left_out_note(dropped),) if dropped else ()), *unused_rate),
    )
    first = replace(first, signal=None, timestamps=None, intervals=None, channels=None, units=kept)
    labels = copy(labels)  # it goes to a process with each file
    labels.left_out = Collected()
    files = [
        ReadFile(
            (recording.name,),
            (recording.file,),
            read_by=shipped,
            first=first,
            wanted=wanted,
            labels=labels,
            columns=recording.facts,
            given=given,
            intervals=recording.intervals,
            dated=from_header,
        )
        for recording in listed
    ]
    return common, files
