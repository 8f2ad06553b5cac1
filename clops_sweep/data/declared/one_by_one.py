"""`Recording`: the items that a declared generator yields, validated one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from clops_sweep.arguments import arguments_of_class
from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.clocks import Moment, moment
from clops_sweep.data.declared.grids import on_grid
from clops_sweep.data.declared.label_table import Labels, of_recording
from clops_sweep.data.declared.markers import left_out_note, marker_names
from clops_sweep.data.declared.portions import Columns, InMemory, stacked, stored_as
from clops_sweep.data.declared.stated_variables import StatedVariables
from clops_sweep.data.files.resampling import at_rate, resampling_notes
from clops_sweep.data.files.units import of_each
from clops_sweep.data.records import Common
from clops_sweep.errors import UsageError, prefixed, shown

_USUAL_SECONDS: Final = 1.0
"""Most seconds by which channels end apart where sensors stop one after another."""
_MOST_LOST: Final = 0.1
"""Share of the longest channel that may be cut with a note."""

_MOST_NAMES: Final = 8
"""Most channels that are named in the repr of a recording."""


@arguments_of_class
@dataclass(frozen=True, eq=False)
class Recording:
    """One recording of a generator or of a `read` function, for data larger than memory.

    Fields are those of `Recordings` in the singular. Common values (`classes`, `channels`, `units`, `sampling_rate`)
    are given to `@dataset` or by the first recording; later ones may have another `sampling_rate` if frames are
    resampled.

    If the channels have several rates, `signal` is a list of arrays and `sampling_rate` a list: they are brought to
    `resample_to`, or to the highest rate, by a polyphase filter, and cut to the shortest channel. `intervals` are
    labelled intervals (start, end, label) in seconds, instead of `label`; they may be dates if `start`, the date of the
    first sample, is given. `timestamps` [samples], seconds or dates, bring irregular
    samples to a grid of `sampling_rate` by linear interpolation, with missing samples where they jump: where a step is
    more than twice the usual one. `markers` are channels of triggers, which are left out unless `channels` of the data
    set names them, or "keep". `notes` says what was assumed or changed; preparation counts equal notes.
    """

    signal: Any
    label: Any = None
    patient: Any = None
    time: Any = None
    domains: Mapping[str, Any] | None = None
    split: str | None = None
    name: str | None = None
    gain: Any = None
    sampling_rate: Any = None
    channels: Sequence[str] | None = None
    units: Any = None
    classes: Sequence[str] | None = None
    groups: Mapping[str, Any] | None = None
    intervals: Sequence[tuple[float, float, str]] | None = None
    timestamps: Any = None
    start: Any = None
    notes: Sequence[str] = ()
    markers: Sequence[str] | Literal["keep"] = ()

    def __repr__(self) -> str:
        """One line: name, shape, channels, units and sampling rate."""
        of_name = "" if self.name is None else f" {self.name}"
        facts = [_shape_in_words(self.signal)]
        if self.channels is not None:
            names = list(map(str, self.channels))
            cut = ["..."] if len(names) > _MOST_NAMES else []
            facts.append(f"channels {', '.join([*names[:_MOST_NAMES], *cut])}")
        if self.units is not None:
            facts.append(_values_in_words(self.units))
        if self.sampling_rate is not None:
            facts.append(f"{_values_in_words(self.sampling_rate)} Hz")
        return f"<Recording{of_name}: {'; '.join(facts)}>"


@dataclass(frozen=True, eq=False, repr=False)
class RecordingOfFile(Recording):
    """A recording with what its file states beside the samples, which is compared with what is declared.

    What the reader of the file was told is compared at once, and the rest by `item`.
    """

    stated: StatedVariables = field(default_factory=StatedVariables)

    def with_notes_on_given(self) -> RecordingOfFile:
        """Return the recording with notes on its own rate, units and channels, and without what they contradict."""
        stated = self.stated
        samples, count = _sizes(self.signal)
        rate = self.sampling_rate
        has_rate = isinstance(rate, int | float | np.number) and not isinstance(rate, bool)
        channels = None
        if isinstance(self.channels, list | tuple | np.ndarray):
            channels = [str(name) for name in self.channels]
        units = None
        if self.units is not None:
            units = [self.units] * count if isinstance(self.units, str) else list(self.units)
        notes = stated.notes(samples, float(rate) if has_rate else None, units, channels)
        if rate is not None:
            stated = replace(stated, rates={}, distances={}, times={})
        if channels is not None:
            stated = replace(stated, names={})
        if units is not None:
            stated = replace(stated, units={})
        return replace(self, notes=[*self.notes, *notes], stated=stated)


def _sizes(signal: Any) -> tuple[int, int]:
    """Return the samples and the number of channels of a signal; 0 samples if its channels have several lengths."""
    if isinstance(signal, list | tuple):
        lengths = {np.size(channel) for channel in signal if not isinstance(channel, list | tuple)}
        return lengths.pop() if len(lengths) == 1 else 0, len(signal)
    shape = np.shape(signal)
    return shape[-1] if shape else 0, shape[0] if len(shape) > 1 else 1


def _shape_in_words(signal: Any) -> str:
    """Return the shape of a signal: "2 x 1,000 samples"; of a list of channels, the samples of each."""
    if isinstance(signal, list | tuple) and len({np.shape(channel) for channel in signal}) > 1:
        return f"{', '.join(f'{np.size(channel):,}' for channel in signal)} samples"
    shape = np.shape(signal)
    if not shape:
        return type(signal).__name__
    return f"{' x '.join(f'{size:,}' for size in shape)} samples"


def _values_in_words(values: Any) -> str:
    """Return one value, or the values of the channels, once if they are equal."""
    each = [values] if isinstance(values, str) or np.ndim(values) == 0 else values
    texts = []
    for value in each:
        texts.append(f"{value:g}" if isinstance(value, float) else str(value))
    return ", ".join(dict.fromkeys(texts))


def markers_of(recording: Recording, wanted: Sequence[str | int] | None) -> tuple[str, ...]:
    """Return the channels of a recording that look like markers and that nothing asks for."""
    if recording.channels is None or recording.markers == "keep":
        return ()
    if wanted is not None:
        return tuple(name for name in recording.markers if name not in wanted)
    names = checks.names("channels", recording.channels)
    return tuple(dict.fromkeys([*recording.markers, *marker_names(names, recording.units)]))


def _without_channels(recording: Any, names: Sequence[str]) -> Any:
    """Return a recording without some channels, if it has them."""
    if not isinstance(recording, Recording) or recording.channels is None:
        return recording
    kept = [position for position, name in enumerate(recording.channels) if name not in names]
    many = len(recording.channels)
    if len(kept) == many or len(recording.signal) != many:
        return recording

    def some(value: Any) -> Any:
        several = np.ndim(value) == 1 and len(value) == many
        return [value[position] for position in kept] if several else value

    return replace(
        recording,
        signal=[recording.signal[position] for position in kept],
        channels=[recording.channels[position] for position in kept],
        units=recording.units if isinstance(recording.units, str) else some(recording.units),
        gain=some(recording.gain),
        sampling_rate=some(recording.sampling_rate),
    )


class Described(NamedTuple):
    """What a table says about a recording: its facts, and the arguments that name columns, such as "patient"."""

    columns: Columns
    given: frozenset[str]


def _is_row(label: Any) -> bool:
    """Return whether a label is a row of several labels."""
    try:
        return np.ndim(label) == 1
    except Exception:  # an object that NumPy cannot convert is refused when it is read as a name
        return False


def one_by_one(recordings: Iterator[Any], given: Mapping[str, Any]) -> tuple[Common, Iterator[InMemory]]:
    """Return values common to a generator's recordings, and the recordings, with similar ones stacked.

    They are validated as they are generated, and together after the last one.

    Args:
        recordings: `Recording`s.
        given: common values of `@dataset`, by argument of `Recordings`.

    Raises:
        UsageError: the generator is empty, or its first recording is invalid.
    """
    try:
        first = next(recordings)
    except StopIteration:
        raise UsageError("yields no Recording; expected one at least") from None
    if not isinstance(first, Recording):
        raise UsageError(f"yields {shown(first)}; expected Recording(...)")
    shared = {name: given.get(name, getattr(first, name)) for name in ("classes", "channels", "units", "sampling_rate")}
    for name, value in shared.items():
        if value is None:
            raise UsageError(f"{name}: neither @dataset(...) nor the first Recording(...) gives it")
    windowing = checks.windowing(**{name: given[name] for name in checks.OF_WINDOWS if name in given})
    dropped = markers_of(first, given.get("channels"))
    if dropped:
        first = _without_channels(first, dropped)
        shared |= {name: given.get(name, getattr(first, name)) for name in ("channels", "units")}
    for name in ("classes", "channels", "units"):
        _require_agreement(name, given.get(name), getattr(first, name))
    array, _ = _samples(first, shared["sampling_rate"], windowing.rate, "recording 0: ")
    common = Common(
        checks.names("classes", shared["classes"], least=2),
        checks.names("channels", shared["channels"]),
        checks.units(shared["units"]),
        _is_row(first.label),
        stored_as(array.dtype, windowing.rate),
        windowing,
    )
    labels = Labels(common.classes, None, ())

    def items() -> Iterator[InMemory]:
        for number, recording in enumerate(chain([first], recordings)):
            with prefixed(f"recording {number}"):
                recording = _without_channels(recording, dropped)
                if isinstance(recording, Recording) and recording.label is not None:
                    checks.require_clear_numbers("label", recording.label, common.classes)
                yield item(recording, str(number), common, shared["sampling_rate"], first, labels)

    notes = (left_out_note(dropped),) if dropped else ()
    common = replace(common, notes=notes, left_out=labels.left_out)  # which is filled while recordings are read
    return common, _checked(common, items() if windowing.one_by_one else stacked(items()))


def _require_agreement(argument: str, of_dataset: Any, of_recording: Any) -> None:
    """Refuse classes, channels or units of a recording that are not those of its data set.

    Raises:
        UsageError: both are given and differ.
    """
    if of_dataset is None or of_recording is None:
        return
    given, own = (value if isinstance(value, str) else list(value) for value in (of_dataset, of_recording))
    if argument == "units" and isinstance(given, str) and not isinstance(own, str):
        own = given if all(unit == given for unit in own) else own
    if given != own:
        raise UsageError(
            f"{argument}: @dataset(...) says {shown(of_dataset)} and the first Recording(...) {shown(of_recording)}; "
            "expected the same, or one of them only"
        )


def _checked(common: Common, groups: Iterator[InMemory]) -> Iterator[InMemory]:
    """Yield the recordings; after the last one, validate them together."""
    seen: list[Columns] = []
    for group in groups:
        columns = group.columns
        seen.append(replace(columns, parts=columns.parts or [None] * len(columns)))
        yield group
    checks.together(common.classes, Columns.joined(seen), common.left_out)


def _samples(recording: Recording, usual: Any, wanted: float | None, where: str = "") -> tuple[NDArray[Any], float]:
    """Return the samples [channels, samples] of a recording at one rate, and the rate."""
    rates = usual if recording.sampling_rate is None else recording.sampling_rate
    signal = recording.signal
    if np.ndim(rates):
        each_rate = [checks.positive("sampling_rate", rate) for rate in rates]
        if len(each_rate) != len(signal):
            raise UsageError(
                f"{where}sampling_rate: has {len(each_rate)} rates; expected one for each of {len(signal)} channels"
            )
        rates = wanted or max(each_rate)
        channels = [checks.signal(f"{where}signal", channel)[0] for channel in signal]
        signal = [at_rate(channel, rate, rates) for channel, rate in zip(channels, each_rate, strict=True)]
        shortest = min(map(len, signal))
        signal = [channel[:shortest] for channel in signal]
    array = checks.signal(f"{where}signal", signal)
    rate = checks.positive("sampling_rate", rates)
    if recording.timestamps is not None:
        array = on_grid(array, recording.timestamps, rate, where)
    return array, rate


def _notes(recording: Recording, usual: Any, rate: float, channels: Sequence[str]) -> tuple[str, ...]:
    """Return what was done to the channels of a recording to bring them to one rate and one length.

    Raises:
        UsageError: much more would be cut than usual where sensors stop one after another.
    """
    rates = usual if recording.sampling_rate is None else recording.sampling_rate
    if not np.ndim(rates):
        return ()
    notes = resampling_notes(zip(channels, rates, strict=True), rate)
    seconds = [np.size(channel) / given for channel, given in zip(recording.signal, rates, strict=True)]
    shortest, longest = int(np.argmin(seconds)), int(np.argmax(seconds))
    lost = seconds[longest] - seconds[shortest]
    if 1 / min(rates) < lost <= _USUAL_SECONDS:
        notes.append(f"channel {channels[shortest]} ends within a second before others, which are cut to its end")
    if lost > _USUAL_SECONDS:
        if lost > _MOST_LOST * seconds[longest]:
            raise UsageError(
                f"signal: channel {channels[shortest]} lasts {seconds[shortest]:g} s where {channels[longest]} lasts "
                f"{seconds[longest]:g} s; correct sampling_rate, cut all to one length, or append NaN to the shorter"
            )
        notes.append(f"channel {channels[shortest]} ends more than a second before others, which are cut to its end")
    return tuple(notes)


def item(
    recording: Any,
    default_name: str,
    common: Common,
    usual: Any,
    first: Recording,
    labels: Labels,
    described: Described | None = None,
    files: tuple[Path, ...] = (),
) -> InMemory:
    """Return a validated recording.

    Args:
        recording: the recording.
        default_name: its name, unless it has one.
        common: values common to the recordings.
        usual: the sampling rate of recordings that have none.
        first: the first recording, which has the same optional fields.
        labels: maps labels of intervals to classes.
        described: what a table says about it, if there is one.
        files: the files that hold it.

    Raises:
        UsageError: it is invalid.
    """
    if not isinstance(recording, Recording):
        raise UsageError(f"is {shown(recording)}; expected Recording(...)")
    for name in ("classes", "channels", "units"):
        value = getattr(recording, name)
        if value is not None and value != getattr(first, name):
            raise UsageError(f"{name}: {shown(value)} is not what the first recording has")
    array, rate = _samples(recording, usual, common.windowing.rate)
    if len(array) != len(common.channels):
        raise UsageError(
            f"signal: has {len(array)} channels; expected {len(common.channels)}, as there are in channels"
            + checks.transposed(array, len(common.channels))
        )
    if not np.ndim(usual) and rate != usual and common.windowing.rate is None:
        raise UsageError(f"sampling_rate: {rate:g} where the first has {usual:g}; give resample_to to have one for all")
    if described is None:
        columns = _facts(recording, default_name, common, first)
    else:
        columns = _agreed(recording, default_name, common, first, labels, described)
    intervals = None
    if recording.intervals is not None:
        where = files[0].name if files else columns.names[0]
        domains = {name: values[0] for name, values in columns.domains.items()}
        intervals = of_recording(recording.intervals, labels, where, domains, begin_of(recording))
    # The array is copied, because the generator may reuse it.
    array, gain = array.copy()[None], checks.gains(recording.gain, len(array))
    notes = (*recording.notes, *_notes(recording, usual, rate, common.channels))
    if isinstance(recording, RecordingOfFile):
        given_rate = usual if recording.sampling_rate is None else recording.sampling_rate
        units = of_each(common.units, len(common.channels))
        notes += tuple(
            recording.stated.notes(
                array.shape[-1],
                None if np.ndim(given_rate) or recording.timestamps is not None else rate,
                units or None,
                common.channels,
            )
        )
    return InMemory(
        columns.names, files, columns=columns, intervals=intervals, array=array, rate=rate, gain=gain, notes=notes
    )


def begin_of(recording: Recording) -> Moment | None:
    """Return the start of a recording: its field, or the first of its timestamps if that is a date.

    Raises:
        UsageError: the field is no date, or differs from the timestamps.
    """
    timestamps = recording.timestamps
    has_first = timestamps is not None and np.size(timestamps) > 0
    first = moment(np.ravel(timestamps)[0]) if has_first else None
    given = recording.start
    if given is None:
        return first
    known = moment(checks.date_text(given) if isinstance(given, str) else given)
    if known is None:
        raise checks.refused("start", "a date such as 2020-01-31 22:00:00", given)
    if first is not None and first != known:
        raise UsageError(
            f"start: is {shown(str(given))} and the first of timestamps is {shown(str(np.ravel(timestamps)[0]))}; "
            "expected the same moment, or leave start out"
        )
    return known


def _agreed(
    recording: Recording, default_name: str, common: Common, first: Recording, labels: Labels, described: Described
) -> Columns:
    """Return the facts about a recording from a table and from itself.

    Raises:
        UsageError: both give a fact and differ, or neither gives a label.
    """
    given, said = described.given, described.columns
    has_label = "label" in given
    if has_label and recording.intervals is not None and "start" not in given:
        raise UsageError("label: both the table and the intervals of the recording give labels; leave one of them out")
    own = _facts(recording, default_name, common, first, needs_label=not has_label)
    merged = replace(own, names=[default_name])
    if has_label and said.labels is not None:
        if own.labels is not None and not np.array_equal(own.labels, said.labels):
            raise _disagreement("label", _class_names(said, common), _class_names(own, common))
        merged = replace(merged, labels=said.labels)
    elif "start" in given:
        if own.labels is not None:
            raise UsageError("label: both the intervals of the table and the recording give labels; leave one out")
        merged = replace(merged, labels=None)
    if "patient" in given or recording.patient is None:
        if recording.patient is not None and own.patients != said.patients:
            raise _disagreement("patient", said.patients[0], own.patients[0])
        merged = replace(merged, patients=said.patients)
    if said.times is not None:
        if own.times is not None and (own.times != said.times).any():
            raise _disagreement("time", str(said.times[0]), str(own.times[0]))
        merged = replace(merged, times=said.times)
    if said.parts is not None:
        if own.parts is not None and list(own.parts) != list(said.parts):
            raise UsageError("split: the table and the recording differ; expected the same, or one of them only")
        merged = replace(merged, parts=said.parts)
    for argument, from_table, from_file in (
        ("domains", said.domains, own.domains),
        ("groups", said.groups, own.groups),
    ):
        for name in from_table.keys() & from_file.keys():
            if list(from_table[name]) != list(from_file[name]):
                raise _disagreement(f"{argument}[{name!r}]", from_table[name][0], from_file[name][0])
    return replace(merged, domains={**own.domains, **said.domains}, groups={**own.groups, **said.groups})


def _disagreement(argument: str, from_table: str, from_file: str) -> UsageError:
    return UsageError(
        f"{argument}: the table says {shown(from_table)} and the recording {shown(from_file)}; correct one of them, or "
        "take it from one side only"
    )


def _class_names(columns: Columns, common: Common) -> str:
    """Return the classes of one recording, for messages."""
    labels = columns.labels
    assert labels is not None
    codes = np.flatnonzero(labels[0]) if labels.ndim == 2 else labels[:1]
    return ", ".join(common.classes[code] for code in codes)


def _has_zone(time: Any) -> bool:
    """Return whether a value is a date with a time zone."""
    known = moment(time)
    return known is not None and known.zoned


def _facts(
    recording: Recording, default_name: str, common: Common, first: Recording, needs_label: bool = True
) -> Columns:
    """Return the validated facts about a recording; without labels if it has none, or intervals."""
    has_label = recording.label is not None
    if (has_label or needs_label) and _is_row(recording.label) != common.multi_label:
        raise UsageError("label: expected one label, or 0 and 1 for each class, for all recordings alike")
    if needs_label and not has_label and recording.intervals is None:
        raise UsageError("label: is missing; expected one, or intervals")
    for argument, what in (("patient", "names or numbers"), ("time", "a date")):
        if (getattr(recording, argument) is None) != (getattr(first, argument) is None):
            raise UsageError(f"{argument}: expected {what} for all recordings, or for none")
    if _has_zone(recording.time) != _has_zone(first.time):
        raise UsageError("time: some recordings have a time zone and others none; expected one kind")
    named = {}
    for argument in ("domains", "groups"):
        given, expected = getattr(recording, argument), getattr(first, argument) or {}
        if not isinstance(given, Mapping | None):
            raise checks.refused(argument, 'a mapping such as {"site": "A"}', given)
        if set(given or {}) != set(expected):
            raise UsageError(f"{argument}: has {sorted(given or {})} where the first has {sorted(expected)}")
        named[argument] = {name: [value] for name, value in (given or {}).items()}
    return checks.columns(
        [default_name if recording.name is None else checks.text("name", recording.name)],
        common.classes,
        [recording.label] if has_label and recording.intervals is None else None,
        None if recording.patient is None else [recording.patient],
        None if recording.time is None else [recording.time],
        named["domains"],
        None if recording.split is None else [recording.split],
        named["groups"],
        one=True,
    )
