"""`combine`: several data sets, such as those of hospitals, as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clops_sweep.arguments import named_arguments
from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.intervals import Intervals
from clops_sweep.data.declared.portions import Columns, Portion, Signal
from clops_sweep.data.declared.recordings import Recordings, recordings_in_files
from clops_sweep.data.files.units import factor
from clops_sweep.data.frames import UNKNOWN_PERSON
from clops_sweep.data.left_out import Collected
from clops_sweep.data.records import Common, Stretch
from clops_sweep.data.windowing import Windowing
from clops_sweep.errors import UsageError, shown

_CUTTING = {
    "window": "window_seconds",
    "stride": "stride_seconds",
    "rate": "resample_to",
    "missing": "missing",
    "gaps": "gaps",
    "trim": "trim",
    "rule": "interval_rule",
}
"""Fields of `Windowing`, and the arguments that messages name."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Member(Portion):
    """A recording of one of the data sets: its common channels, in the common unit, with the common classes."""

    inner: Portion
    positions: list[int]
    factor: float
    codes: NDArray[np.int64]

    def signal(self) -> Signal:
        """Return the samples."""
        read, positions = self.inner.signal(), self.positions
        stretches = read.stretches
        notes = list(read.notes)
        if self.inner.intervals is not None:
            stretches, said = self.inner.intervals.stretches(read.rate, read.stored.shape[2])
            notes += said
        return read._replace(
            stored=read.stored[:, positions],
            gain=read.gain[positions] * self.factor,
            offset=read.offset[positions] * self.factor,
            stretches=None if stretches is None else [Stretch(a, b, int(self.codes[code])) for a, b, code in stretches],
            missing=None if read.missing is None else read.missing[:, positions],
            notes=notes,
        )

    def labelled(self) -> Intervals | None:
        """Return the labelled intervals of the recording."""
        return self.inner.labelled()

    def where(self, common: Common) -> str:
        """Start of an error message about the samples."""
        return self.inner.where(common)


def _common_channels(first: Common, others: Sequence[Common]) -> list[str]:
    """Return the channels that all data sets have, in the order of the first."""
    common = []
    for name in first.channels:
        if all(name in other.channels for other in others):
            common.append(name)
    return common


@named_arguments
def combine(
    members: Mapping[str, Recordings],
    *,
    classes: Mapping[str, str] | None = None,
    channels: Sequence[str] | None = None,
    window_seconds: float | None = None,
    stride_seconds: float | None = None,
    resample_to: float | None = None,
    distinct_people: bool = False,
) -> Recordings:
    """Return the recordings of several data sets as one, with the domain "source": tasks of `domain_il`, or one pool.

    Args:
        members: the recordings of each data set, by name.
        classes: the common class of each class, such as ``{"(AFIB": "AF", "AFIB": "AF", "N": "N"}``; by default classes
            of one name are one.
        channels: the channels to use; by default those that all data sets have.
        window_seconds: duration of the frames, as the other two; by default that of the data sets, if they agree.
        stride_seconds: time between frames.
        resample_to: sampling rate of the frames in Hz.
        distinct_people: whether people of one name in two data sets are different people.

    Raises:
        UsageError: the data sets do not fit together, or a person is in two of them. A recording whose samples are in
            two of them is refused when frames are prepared.
    """
    if not isinstance(members, Mapping) or len(members) < 2:
        raise checks.refused("combine", 'two data sets at least, such as {"A": Recordings(...), "B": ...}', members)
    commons = {name: member.common for name, member in members.items()}
    given = checks.windowing(window_seconds, stride_seconds, resample_to)
    windowing = _windowing(given, {name: common.windowing for name, common in commons.items()})
    multi_label = {name: common.multi_label for name, common in commons.items()}
    if len(set(multi_label.values())) > 1:
        raise UsageError(f"combine: labels differs: {multi_label}; make it equal")
    first, *others = commons.values()
    named = list(dict.fromkeys(name for common in commons.values() for name in common.classes))
    mapped = {name: name for name in named} if classes is None else dict(classes)
    target = checks.names("classes", list(dict.fromkeys(mapped.values())), least=2)
    wanted = list(channels or _common_channels(first, others))
    owner: dict[str, str] = {}
    portions: list[Member] = []
    for source, recordings in members.items():
        common = commons[source]
        for what, names, offered in (("class", common.classes, mapped), ("channel", wanted, common.channels)):
            lacking = next((name for name in names if name not in offered), None)
            if lacking is not None:
                raise UsageError(f"combine: {what} {shown(lacking)} is not in {shown(source)}, or not in classes")
        converted = factor(common.units, first.units)
        if not wanted or converted is None:
            what = f"{common.units}, not {first.units}" if wanted else "other channels"
            raise UsageError(f"combine: {shown(source)} has {what}; expected common channels of one unit")
        codes = np.array([target.index(mapped[name]) for name in common.classes])
        positions = [common.channels.index(name) for name in wanted]
        for whole in recordings.sources():
            for inner in whole.apart():
                if not isinstance(inner, Portion):
                    raise UsageError(
                        f"combine: the files of {shown(source)} are read with read=... when frames are prepared, also "
                        "with a table, so its people are not known before; give the files of all data sets to one "
                        "from_folder instead, with a table that has a column for domains"
                    )
                known = _columns(inner.columns, source, codes, len(target), distinct_people)
                other = owner.setdefault(known.patients[0], source)
                if other != source:
                    raise UsageError(
                        f"combine: person {shown(known.patients[0])} is in {shown(other)} and in {shown(source)}; "
                        "leave out one of them, or give distinct_people=True if they are two people"
                    )
                portion = Member(
                    known.names,
                    inner.files,
                    columns=known,
                    inner=inner,
                    positions=positions,
                    factor=converted,
                    codes=codes,
                    member=source,
                )
                portions.append(portion)
    if any(portion.columns.parts for portion in portions):  # a given split of some
        portions = [
            replace(portion, columns=replace(portion.columns, parts=portion.columns.parts or [None]))
            for portion in portions
        ]
    columns = Columns.joined([portion.columns for portion in portions])
    kinds = {common.stored_as for common in commons.values()}
    kind = np.int16 if kinds == {np.int16} and given.rate is None else np.float32
    notes = tuple(dict.fromkeys(note for common in commons.values() for note in common.notes))
    kept = any(common.markers == "keep" for common in commons.values())
    joined = Common(
        target,
        tuple(wanted),
        first.units,
        next(iter(multi_label.values())),
        kind,
        windowing,
        markers="keep" if kept else "refuse",
        notes=notes,
        left_out=_left_out(commons),
    )
    return recordings_in_files(joined, portions, columns)


def _left_out(commons: Mapping[str, Common]) -> Collected:
    """Return what data sets leave out; the domain of a recording is its data set."""
    left_out = Collected()
    for source, common in commons.items():
        left_out.join(common.left_out, source)
    return left_out


def _windowing(given: Windowing, members: Mapping[str, Windowing]) -> Windowing:
    """Return how the frames of all data sets are cut: as given, and otherwise as all of them agree.

    Raises:
        UsageError: they do not agree.
    """
    agreed: dict[str, Any] = {}
    for name, argument in _CUTTING.items():
        is_given = name in ("window", "stride", "rate") and getattr(given, name) is not None
        if is_given:
            continue
        values = {source: getattr(windowing, name) for source, windowing in members.items()}
        if len(set(values.values())) > 1:
            raise UsageError(f"combine: {argument} differs: {values}; make it equal")
        agreed[name] = next(iter(values.values()))
    return replace(given, **agreed)


def _columns(columns: Columns, source: str, codes: NDArray[np.int64], many: int, distinct: bool) -> Columns:
    """Return the facts about one recording of a data set, as those of the combined one."""
    labels = columns.labels
    name = f"{source}/{columns.names[0]}"
    person = columns.patients[0]
    if person.startswith(UNKNOWN_PERSON):
        person = f"{UNKNOWN_PERSON}{name}"
    elif distinct:
        person = f"{source}/{person}"
    if labels is not None and labels.ndim == 2:
        several = np.zeros((1, many), np.uint8)
        np.maximum.at(several[0], codes, labels[0])
        labels = several
    elif labels is not None:
        labels = codes[labels]
    domains = {"source": [source]}
    return replace(columns, names=[name], patients=[person], labels=labels, domains=domains, groups={})
