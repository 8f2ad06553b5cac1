"""A data set during preparation: its recordings under a data root, splits and checks."""

from __future__ import annotations

import os
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, Declared, OptionValue, Rules
from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.declared_files import declared_files
from clops_sweep.data.declared.markers import marker_names
from clops_sweep.data.declared.one_by_one import one_by_one
from clops_sweep.data.declared.portions import Columns, InMemory, Portion
from clops_sweep.data.declared.recordings import Recordings
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.frames import VALIDATION
from clops_sweep.data.recording_facts import Facts
from clops_sweep.data.records import Common, EveryRecordFails, Index, Source, Windows
from clops_sweep.data.shortcuts import marker_problem
from clops_sweep.data.splits import random_split
from clops_sweep.data.splits.known_splits import known_split
from clops_sweep.data.splits.split_program import balanced_split, uncovered_classes
from clops_sweep.errors import AbsentData, UsageError, nearest, nearest_or_all, one_line, user_code

FEW_PATIENTS: Final = 60
"""Most patients that the integer programme of `balanced_split` splits; it takes seconds, more with more patients."""

Run = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]
"""An ordered map, perhaps in several processes."""

_SERIES: Final = re.compile(r"[-_. ][0-9A-Za-z]{1,4}$")
"""The number of a recording after the name of its person."""
_OWN: Final = Rules(tolerates_repeats=True, version=5)


class DataSet:
    """One data set, built in or declared by a file of the user's, with the given options.

    Attributes:
        name: name in configs.
        built_in: whether this package declares it. Its leads are then dropped individually; otherwise the channels of a
            frame are kept together, and a missing sample is an error.
        rules: rules of preparation.
        chosen: its options.
        common: values common to its recordings; for a custom data set, known once they are found.
        given_split: whether the split is the publisher's, and equal for every split seed.
        sampling_rate: sampling rate of the frames in Hz, if known.
        frame_seconds: duration of a frame, known once records are read.
        parallel: whether several processes may read records.
        root: the data root of a custom data set, known once its files are looked for.

    Raises:
        UsageError: no such data set, or no such option.
    """

    def __init__(self, name: str, options: Mapping[str, OptionValue] | None = None) -> None:
        if name == "vfdb":
            raise UsageError("vfdb is prepared as part of the data set 'mitbih_vfdb'; use that name")
        if name not in DATASETS:
            raise UsageError(
                f"dataset {shorten(name)!r} is not known{nearest_or_all(name, DATASETS)}; --plugins FILE adds those "
                "that a file declares"
            )
        self.name, self.built_in = name, name in DATASETS.built_in
        declared = DATASETS.declared(name)
        self.rules = (declared and declared.rules) or _OWN
        self.chosen = _chosen(name, self.rules, options or {})
        self.common = Common((), (), "", name=name)
        self.given_split = False
        self.sampling_rate: float | None = None
        self.frame_seconds: float | None = None
        self.parallel = self.built_in and self.rules.reads_files
        self._member = declared.member if declared else None
        self._parts: dict[str, int | None] = {}
        self._first: tuple[str, int, float] | None = None
        self.root: Path | None = None
        self._tables: tuple[Path, ...] = ()
        self._late: list[Columns] = []
        if self.built_in and declared:
            said = declared.recording
            kind = np.int16 if self.rules.integers else np.float32
            self.common = Common(
                said["classes"], said["channels"], said["units"], self.rules.multi_label, kind, name=name
            )

    def look(self, data_root: Path | None) -> None:
        """Check that the data set exists, without calling a user's function; UsageError otherwise."""
        if self.built_in:
            self.find(data_root)
        else:
            self.tables(data_root)

    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """Return source files other than records: tables of labels and declared files."""
        if self.built_in:
            return self._tables
        declared = _declaration(self.name)
        self.root = data_root or declared.folder
        return tuple(declared_files(self.name, declared.files, self.root).values())

    def find(self, data_root: Path | None) -> Iterable[Source]:
        """Return the records under `data_root` in a fixed order: a list, unless in memory; UsageError without any."""
        if self.built_in:
            assert self._member is not None
            found: list[Source] = self._member(data_root, **self.chosen)
            self._tables = tuple(dict.fromkeys(table for source in found for table in source.tables))
            return found
        self.look(data_root)
        self.common, sources = _recordings_of(self.name, self.root)
        if (filters := _declaration(self.name).filters) is not None:
            try:
                filters = filters.of_unit(self.common.units)
            except UsageError as problem:
                raise self.common.refused(str(problem)) from None
            units = filters.scale or self.common.units
            self.common = replace(self.common, filters=filters, units=units, stored_as=np.float32)
        if _declaration(self.name).markers == "keep":
            self.common = replace(self.common, markers="keep")
        reference = DATASETS[self.name].reference_lead
        if reference is not None and reference not in self.common.channels:
            known = ", ".join(self.common.channels)
            raise self.common.refused(f"reference_channel: {reference!r} is not a channel; expected one of {known}")
        self.parallel = isinstance(sources, list)
        return sources

    def met(self, source: Source, windows: Windows) -> None:
        """Record the given splits of a source, after checking that it matches the first one.

        Raises:
            UsageError: its frames have another length or sampling rate.
        """
        name, rate = source.record, windows.rate
        cut = self.common.windowing
        frame = cut.frame_samples(windows.width, rate)
        if self.frame_seconds is None:
            self.frame_seconds = frame / (cut.rate or rate)
        if not isinstance(source, Portion):
            return
        if self._first is None:
            self._first = (name, frame, rate)
            self.sampling_rate = cut.rate or rate
        first, expected, its_rate = self._first
        if cut.rate is None and rate != its_rate:
            raise self.common.refused(
                f"sampling_rate: recording {shorten(name)!r} has {rate:g} samples a second where "
                f"{shorten(first)!r} has {its_rate:g}; give resample_to to have one rate for all"
            )
        if frame != expected:
            raise self.common.refused(
                f"signals: recording {shorten(name)!r} makes frames of {frame} samples where "
                f"{shorten(first)!r} makes frames of {expected}; give window_seconds to cut frames of one length"
            )
        if isinstance(source, InMemory) and source.files:  # its facts were not known before
            columns = source.columns
            self._late.append(replace(columns, parts=columns.parts or [None] * len(columns)))
        if source.columns.parts is not None:
            self._parts |= dict(zip(source.columns.patients, source.columns.parts, strict=True))
        self.given_split = bool(self._parts)

    def leave_out(self, counts: Mapping[str, int]) -> None:
        """Count recordings, or their intervals, that are left out, by reason."""
        self.common = replace(self.common, left_out=Counter(self.common.left_out) + Counter(counts))

    def file_key(self, file: Path) -> str:
        """Return the key of a source file in the manifest: its name, or its path under the data root."""
        if self.built_in:
            return file.name
        path = os.path.abspath(file)  # links are not resolved: a name under the root counts as under it
        root = None if self.root is None else os.path.join(os.path.abspath(self.root), "")
        return path[len(root) :].replace(os.sep, "/") if root is not None and path.startswith(root) else path

    def split(self, index: Index, seed: int) -> NDArray[np.int8]:
        """Return TRAINING, VALIDATION or TEST for every patient, [patients] int8."""
        quick = self.quick_split(index, seed)
        return balanced_split(self.counts(index), seed) if quick is None else quick

    def quick_split(self, index: Index, seed: int) -> NDArray[np.int8] | None:
        """Return the split if it takes milliseconds; None if it requires the integer programme.

        It is the given split, that of the data set's rule, or 60/20/20 percent of the patients; for few patients, by
        the programme. It uses only patients, labels, leads and times, so that opening a set need not read its table.
        """
        if self.given_split:
            return np.array([self._parts[name] for name in index.patient_names], np.int8)
        if self.rules.split is not None:
            found: NDArray[np.int8] | None = self.rules.split(index, seed)
        elif len(index.patient_names) > FEW_PATIENTS:
            found = random_split.shuffled(index, seed)
        else:
            found = None
        return known_split(self.counts(index), seed) if found is None else found

    def select(self, sources: Iterable[Source], run: Run) -> Iterable[Source]:
        """Return the sources with the frames that the data set's rules keep."""
        chosen = self.rules.select
        return sources if chosen is None else chosen(self.common, sources, self.chosen, run)

    def too_few(self, index: Index, dropped: Mapping[str, int]) -> str | None:
        """Return a sentence on a class without frames, if any. `dropped` counts dropped frames by reason."""
        if self.built_in:
            return None
        many, labels = len(self.common.classes), index.labels
        counts = labels.sum(0, dtype=np.int64) if labels.ndim == 2 else np.bincount(labels, minlength=many)
        try:
            if self._late:
                checks.together(self.common.classes, Columns.joined(self._late))
            checks.require_every_class(self.common.classes, counts, "frame", dropped)
        except UsageError as problem:
            return str(self.common.refused(str(problem)))
        return None

    def marker_problem(self, facts: Sequence[Facts]) -> str | None:
        """Return a sentence on a channel that follows the labels as triggers do, if the user did not select it."""
        if self.built_in or self.common.markers == "keep":
            return None
        problem = marker_problem(facts, self.common.classes, self.common.channels)
        return None if problem is None else str(self.common.refused(problem))

    def notes(self, index: Index, split: NDArray[np.int8]) -> list[str]:
        """Return notes for the user: a given split, doubtful people and order, and classes missing in a split."""
        if self.rules.split not in (None, random_split.balanced):
            return []
        why = ": too few patients have it" if self.built_in else ""
        given = ["the split is the given one, for every split_seed"] if self.given_split else []
        if not (split == VALIDATION).any():
            remedy = "; validation=0.2 takes one from the training people" if self.given_split else ": too few people"
            given.append(f"there is no validation set{remedy}")
        given += self.common.notes
        names = () if self.built_in else marker_names(self.common.channels, self.common.units)
        if names:
            given.append(f"channel {names[0]} is an input of the network and looks like triggers or markers")
        if not self.built_in and index.times is None and len(index.record_names) > len(index.patient_names):
            given.append("recordings of a person are in natural order of their names; give their dates as time")
        series = {_SERIES.sub("", name) for name in index.record_names}
        if not self.built_in and 1 < len(series) < len(index.record_names) == len(index.patient_names):
            first = next(name for name in index.record_names if _SERIES.search(name))
            given.append(
                f"every recording counts as a person, but names such as {shorten(first)} suggest several recordings of "
                f"one: people may be in two splits; give patient"
            )
        return given + [
            f"class {self.common.classes[code]} is not in the {' and '.join(parts)} split{why}"
            for code, parts in uncovered_classes(self.counts(index), split).items()
        ]

    def counts(self, index: Index) -> NDArray[np.int64]:
        """Return the number of frames of every patient and class, [patients, classes]."""
        if index.labels.ndim == 2:
            return index.counts_per_patient(index.labels.shape[1])
        return index.counts_per_patient(max(len(self.common.classes), int(index.labels.max(initial=0)) + 1))


def _chosen(name: str, rules: Rules, options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    for key in options:
        if key not in rules.options:
            there = ", ".join(rules.options) or "none"
            raise UsageError(f"{name} has no option {key!r}{nearest(key, rules.options)}; its options: {there}")
    chosen: dict[str, OptionValue] = {**rules.options, **options}
    for key, (least, most) in rules.limits.items():
        value, kind = chosen[key], type(rules.options[key])
        # Refuse bool and NaN, which compare with everything as False.
        if isinstance(value, bool | str) or not least <= value <= most or kind(value) != value:
            what = "a whole number" if kind is int else "a number"
            raise UsageError(
                f"{name}: option {key} is {value!r}, expected {what} from {least:,} to {most:,}, "
                f"as in --option {key}={rules.options[key]}"
            )
        chosen[key] = kind(value)
    return chosen


def _declaration(name: str) -> Declared:
    """Return the declaration of a data set.

    Raises:
        AbsentData: no file in this process declares it.
    """
    declared = DATASETS.declared(name)
    if declared is None:
        raise AbsentData(
            f"dataset {name!r} is not declared by any given file; pass the file that declares it: --plugins FILE"
        )
    return declared


def _recordings_of(name: str, root: Path | None) -> tuple[Common, Iterable[Source]]:
    """Return the values common to the recordings of a data set, and its recordings."""
    declared = _declaration(name)
    try:
        with user_code(partial(_raised, declared)):
            returned = declared.member(root)
        if isinstance(returned, Recordings):
            if declared.recording:
                given = next(iter(declared.recording))
                raise UsageError(f"{given}: only for functions that yield Recording(...); pass it to Recordings(...)")
            return replace(returned.common, name=name), returned.sources()
        if not isinstance(returned, Iterator):
            what = "nothing" if returned is None else f"a {type(returned).__name__}"
            raise UsageError(f"the function returns {what}; expected Recordings(...), or that it yields Recording(...)")
        common, yielded = one_by_one(_guarded(returned, declared), declared.recording)
    except UsageError as problem:
        raise _refused(name, str(problem)) from None
    return replace(common, name=name), _prefixed(name, yielded)


def _refused(name: str, what: str) -> UsageError:
    """Return an error that begins with the data set."""
    return EveryRecordFails(what if what.startswith(f"dataset {name!r}") else f"dataset {name!r}: {what}")


def _prefixed(name: str, yielded: Iterator[Source]) -> Iterator[Source]:
    try:
        yield from yielded
    except UsageError as problem:
        raise _refused(name, str(problem)) from None


def _guarded(yielded: Iterator[Any], declared: Declared) -> Iterator[Any]:
    """Yield from a generator; errors of its code become one sentence."""
    ended = object()
    while True:
        with user_code(partial(_raised, declared)):
            each = next(yielded, ended)
        if each is ended:
            return
        yield each


def _raised(declared: Declared, error: BaseException) -> UsageError:
    """Return one sentence about an error of a declared function, with its line."""
    place = getattr(declared.member, "__code__", None)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if place is not None and frame.filename == place.co_filename
    ]
    line = f" in line {lines[-1]}" if lines else ""
    return UsageError(f"the function raises {type(error).__name__}{line}: {one_line(error)[:300]}")
