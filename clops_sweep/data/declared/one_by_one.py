"""`Recording`: the items that a declared generator yields, validated one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.portions import Columns, InMemory, stacked, stored_as
from clops_sweep.data.records import Common
from clops_sweep.errors import UsageError, shown


@dataclass(frozen=True, eq=False)
class Recording:
    """One recording of a generator, for data larger than memory.

    Fields are those of `Recordings` in the singular. Common values (`classes`, `channels`, `units`, `sampling_rate`)
    are given to `@dataset` or by the first recording; later ones may have another `sampling_rate` if frames are
    resampled.
    """

    signal: Any
    label: Any
    patient: Any
    time: Any = None
    domains: Mapping[str, Any] | None = None
    split: str | None = None
    name: str | None = None
    gain: Any = None
    sampling_rate: float | None = None
    channels: Sequence[str] | None = None
    units: str | None = None
    classes: Sequence[str] | None = None
    groups: Mapping[str, Any] | None = None


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
    window, stride, rate = checks.windowing(
        *(given.get(n) for n in ("window_seconds", "stride_seconds", "resample_to"))
    )
    array = checks.signal("recording 0: signal", first.signal)
    common = Common(
        checks.names("classes", shared["classes"], least=2),
        checks.names("channels", shared["channels"]),
        checks.units(shared["units"]),
        _is_row(first.label),
        stored_as(array.dtype, rate),
        window,
        stride,
        rate,
        missing=checks.missing(given.get("missing", "refuse")),
    )
    usual = checks.positive("sampling_rate", shared["sampling_rate"])

    def items() -> Iterator[InMemory]:
        for place, recording in enumerate(chain([first], recordings)):
            try:
                yield _item(recording, place, common, usual, first)
            except UsageError as problem:
                raise UsageError(f"recording {place}: {problem}") from None

    return common, _checked(common, stacked(items()))


def _checked(common: Common, groups: Iterator[InMemory]) -> Iterator[InMemory]:
    """Yield the recordings; after the last one, validate them together."""
    seen: list[Columns] = []
    for group in groups:
        columns = group.columns
        seen.append(replace(columns, parts=columns.parts or [None] * len(columns)))
        yield group
    checks.together(common.classes, Columns.joined(seen))


def _item(recording: Any, place: int, common: Common, usual: float, first: Recording) -> InMemory:
    if not isinstance(recording, Recording):
        raise UsageError(f"is {shown(recording)}; expected Recording(...)")
    for name in ("classes", "channels", "units"):
        value = getattr(recording, name)
        if value is not None and value != getattr(first, name):
            raise UsageError(f"{name}: {shown(value)} is not what the first recording has")
    array = checks.signal("signal", recording.signal)
    if len(array) != len(common.channels):
        raise UsageError(
            f"signal: has {len(array)} channels; expected {len(common.channels)}, as there are in channels"
            + checks.transposed(array, len(common.channels))
        )
    if common.stored_as is np.int16 and stored_as(array.dtype, common.rate) is not np.int16:
        raise UsageError(f"signal: is of {array.dtype}; expected whole numbers of 16 bits, as the first recording has")
    rate = usual if recording.sampling_rate is None else checks.positive("sampling_rate", recording.sampling_rate)
    if rate != usual and common.rate is None:
        raise UsageError(f"sampling_rate: {rate:g} where the first has {usual:g}; give resample_to to have one for all")
    if _is_row(recording.label) != common.multi_label:
        raise UsageError("label: expected one label, or 0 and 1 for each class, for all recordings alike")
    if (recording.patient is None) != (first.patient is None):
        raise UsageError("patient: expected names or numbers for all recordings, or for none")
    if (recording.time is None) != (first.time is None):
        raise UsageError("time: expected a date for all recordings, or for none")
    named = {}
    for argument in ("domains", "groups"):
        given, expected = getattr(recording, argument), getattr(first, argument) or {}
        if not isinstance(given, Mapping | None):
            raise checks.refused(argument, 'a mapping such as {"site": "A"}', given)
        if set(given or {}) != set(expected):
            raise UsageError(f"{argument}: has {sorted(given or {})} where the first has {sorted(expected)}")
        named[argument] = {name: [value] for name, value in (given or {}).items()}
    columns = checks.columns(
        [str(place) if recording.name is None else checks.text("name", recording.name)],
        common.classes,
        [recording.label],
        None if recording.patient is None else [recording.patient],
        None if recording.time is None else [recording.time],
        named["domains"],
        None if recording.split is None else [recording.split],
        named["groups"],
        one=True,
    )
    # The array is copied, because the generator may reuse it.
    gain = checks.gains(recording.gain, len(array))
    return InMemory(columns.names, columns=columns, array=array.copy()[None], rate=rate, gain=gain)
