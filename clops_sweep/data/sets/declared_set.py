"""Data sets that a user's file declares: what is special about preparing them."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, DatasetInfo, Declared, OptionValue, Rules
from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.alike_names import (
    alike_domains,
    alike_groups,
    alike_people,
    misspelt_domains,
    people_with_damaged_numbers,
    people_with_lost_zeros,
    people_with_rounded_numbers,
)
from clops_sweep.data.declared.declared_files import declared_files
from clops_sweep.data.declared.fold_table import read_folds
from clops_sweep.data.declared.markers import marker_names
from clops_sweep.data.declared.odd_groups import age_notes, synonym_notes
from clops_sweep.data.declared.one_by_one import one_by_one
from clops_sweep.data.declared.one_recording_each import names_of_series, people_with_one_recording
from clops_sweep.data.declared.placeholder_dates import placeholder_dates
from clops_sweep.data.declared.portions import Columns, InMemory
from clops_sweep.data.declared.recording_checks import UNKNOWN, is_number
from clops_sweep.data.declared.recordings import Recordings
from clops_sweep.data.declared.table_alone import READERS, TableAlone, table_alone
from clops_sweep.data.files.filters import Filters
from clops_sweep.data.files.folder import is_file, shorten
from clops_sweep.data.files.units import of_each
from clops_sweep.data.frames import UNKNOWN_PERSON
from clops_sweep.data.missing_key import missing_key
from clops_sweep.data.recording_facts import PEOPLE_NOT_GIVEN, Facts
from clops_sweep.data.records import Common, EveryRecordFails, Index, Source, Windows
from clops_sweep.data.sets.data_set import DataSet
from clops_sweep.data.shortcuts import TWO_PEOPLE, marker_problem
from clops_sweep.data.splits.fixed_folds import FixedFolds
from clops_sweep.errors import AbsentData, UsageError, either, one_line, shown, user_code

RULES: Final = Rules(version=6, whole_moments=True, tolerates_dead_leads=True, tolerates_repeats=True)

_JOINS: Final = "combine"
"""The function whose data sets have domains of their own, the names of the sources."""

_FEW: Final = 0.25
"""Largest share of people who may be in several domains by mistake."""

_FACTS_OF_A_PERSON: Final = ("sex", "gender")
"""Names of columns that hardly ever change in a person."""


class DeclaredSet(DataSet):
    """A data set of a user's file, or one whose file this process does not know. Its files and code may change."""

    checks_files_on_opening: ClassVar[bool] = True

    def __init__(self, name: str, declaration: Declared | None, options: Mapping[str, OptionValue]) -> None:
        super().__init__(name, RULES, options, Common((), (), "", name=name))
        self._declaration = declaration
        self.fingerprint = None if declaration is None else declaration.fingerprint
        self._late: list[Columns] = []

    @property
    def _declared(self) -> Declared:
        """The declaration; AbsentData if no file in this process declares the data set."""
        if self._declaration is None:
            raise AbsentData(
                f"dataset {self.name!r} is not declared by any given file; "
                + either("pass the file that declares it: --plugins FILE", "import the file that declares it")
            )
        return self._declaration

    def look(self, data_root: Path | None) -> None:
        """Find the declared files."""
        self.tables(data_root)

    def domains_of_table(self, data_root: Path | None) -> TableAlone | None:
        """Return the domains that the declaration names, once its table is read; None if no reader of tables is called.

        The function is called up to its first reader, which reads the table and no recording.

        Raises:
            UsageError: a file, the table or a column of it is missing, or the function raises an error before.
        """
        code = getattr(self._declared.member, "__code__", None)
        names = set(getattr(code, "co_names", ()))
        if names.isdisjoint(READERS) or _JOINS in names:
            return None
        self.look(data_root)
        with table_alone() as asked:
            try:
                with user_code(partial(_raised, self._declared)):
                    self._declared.member(self.root)
            except UsageError as problem:
                if asked.domains is None:
                    raise self._refused(str(problem)) from None
        return None if asked.domains is None else asked

    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """Return the declared files."""
        declared = self._declared
        self.root = data_root or declared.folder
        of_folds = () if declared.folds is None else (declared.folds,)
        return tuple(declared_files(self.name, (*declared.files, *of_folds), self.root).values())

    def fixed_folds(self, index: Index) -> tuple[tuple[FixedFolds, ...], list[str]]:
        """Return the folds of the declared table, and notes on it."""
        table = None if self._declaration is None else self._declaration.folds
        if table is None or self.root is None:
            return super().fixed_folds(index)
        try:
            if self.given_split:
                raise UsageError("folds: the split of the recordings is given, too; leave out one of them")
            return read_folds(self.root / table, index.patient_names)
        except UsageError as problem:
            raise self.common.refused(str(problem)) from None

    def find(self, data_root: Path | None) -> Iterable[Source]:
        """Return the recordings that the user's function gives."""
        self.look(data_root)
        self.common, sources = self._recordings()
        if self._declared.filters is not None:
            self._filter(self._declared.filters)
        if self._declared.markers == "keep":
            self.common = replace(self.common, markers="keep")
        reference = DATASETS[self.name].reference_lead
        if reference is not None and reference not in self.common.channels:
            known = ", ".join(self.common.channels)
            raise self.common.refused(f"reference_channel: {reference!r} is not a channel; expected one of {known}")
        self.parallel = isinstance(sources, list)
        return sources

    def _filter(self, filters: Filters) -> None:
        try:
            filters = filters.of_unit(self.common.units)
        except UsageError as problem:
            raise self.common.refused(str(problem)) from None
        units = filters.scale or self.common.units
        self.common = replace(self.common, filters=filters, units=units, stored_as=np.float32)

    def _recordings(self) -> tuple[Common, Iterable[Source]]:
        """Return the values common to the recordings, and the recordings."""
        declared = self._declared
        try:
            with user_code(partial(_raised, declared)):
                returned = declared.member(self.root)
            if isinstance(returned, Recordings):
                if declared.recording:
                    argument = next(iter(declared.recording))
                    raise UsageError(
                        f"{argument}: only for functions that yield Recording(...); pass it to Recordings(...)"
                    )
                return replace(returned.common, name=self.name), returned.sources()
            if not isinstance(returned, Iterator):
                what = "nothing" if returned is None else f"a {type(returned).__name__}"
                raise UsageError(
                    f"the function returns {what}; expected Recordings(...), or that it yields Recording(...)"
                )
            common, yielded = one_by_one(_guarded(returned, declared), declared.recording)
        except UsageError as problem:
            raise self._refused(str(problem)) from None
        return replace(common, name=self.name), self._prefixed(yielded)

    def _refused(self, what: str) -> UsageError:
        """Return an error that begins with the data set."""
        prefix = f"dataset {self.name!r}"
        return EveryRecordFails(what if what.startswith(prefix) else f"{prefix}: {what}")

    def _prefixed(self, yielded: Iterator[Source]) -> Iterator[Source]:
        try:
            yield from yielded
        except UsageError as problem:
            raise self._refused(str(problem)) from None

    def met(self, source: Source, windows: Windows) -> None:
        """Record facts of a source that were not known before its file was read, too."""
        super().met(source, windows)
        if isinstance(source, InMemory) and source.files:
            columns = source.columns
            self._late.append(replace(columns, parts=columns.parts or [None] * len(columns)))

    def file_key(self, file: Path) -> str:
        """Return the path of the file under the data root, or its whole path outside."""
        path = os.path.abspath(file)  # links are not resolved: a name under the root counts as under it
        root = None if self.root is None else os.path.join(os.path.abspath(self.root), "")
        return path[len(root) :].replace(os.sep, "/") if root is not None and path.startswith(root) else path

    def accepts(self, version: int, classes: Sequence[str]) -> bool:
        """Return whether frames are of the present version; without the declaration they are taken as they are."""
        return self._declaration is None or version == self.rules.version

    def recorded_info(self) -> DatasetInfo | None:
        """Return the declared facts, which the tasks depend on, with the numbers of classes and channels."""
        classes, channels = len(self.common.classes), len(self.common.channels)
        return replace(DATASETS[self.name], classes=classes, simultaneous_leads=channels)

    def check(self, index: Index, dropped: Mapping[str, int], facts: Sequence[Facts]) -> None:
        """Check that every class has a frame, and that no channel looks like a trigger, unless it is kept."""
        classes, labels = self.common.classes, index.labels
        is_multi_label = labels.ndim == 2
        counts = labels.sum(0, dtype=np.int64) if is_multi_label else np.bincount(labels, minlength=len(classes))
        try:
            if self._late:
                checks.together(classes, Columns.joined(self._late))
            checks.require_every_class(classes, counts, "frame", dropped)
            self._check_one_recording_per_person(index)
            if self.common.people_given and (lost := people_with_lost_zeros(index.patient_names)):
                raise UsageError(lost)
            if self.common.people_given and (damaged := people_with_damaged_numbers(index.patient_names)):
                raise UsageError(damaged)
        except UsageError as problem:
            raise self.common.refused(str(problem)) from None
        if self.common.markers == "keep":
            return
        problem_of_channel = marker_problem(facts, classes, self.common.channels)
        if problem_of_channel is not None:
            raise self.common.refused(problem_of_channel)

    def _check_one_recording_per_person(self, index: Index) -> None:
        """Refuse a person with two recordings if the declaration says that each recording is of another person."""
        is_said = self._declaration is not None and self._declaration.one_recording_per_person
        if not is_said or len(index.patient_names) == len(index.record_names):
            return
        raise UsageError(
            f"one_recording_per_person: {len(index.record_names):,} recordings are of {len(index.patient_names):,} "
            "people; leave it out"
        )

    def doubts(self, index: Index) -> list[str]:
        """Return sentences on channels, the order of recordings, and people."""
        doubts = list(self.common.notes)
        records, people = len(index.record_names), len(index.patient_names)
        channels = self.common.channels
        names = marker_names(channels, of_each(self.common.units, len(channels)))
        if names:
            doubts.append(f"channel {names[0]} is an input of the network and looks like triggers or markers")
        if index.times is None and records > people:
            doubts.append(
                "recordings of a person are in natural order of their names; give their dates "
                "with times= of arrays, or time= of files and single recordings"
            )
        if note := alike_people(index.patient_names):
            doubts.append(note)
        if note := people_with_rounded_numbers(index.patient_names):
            doubts.append(note)
        doubts += placeholder_dates(index)
        for column, (group_codes, groups) in index.groups.items():
            of_groups = _recordings_of(index, group_codes, groups)
            if note := alike_groups(column, of_groups):
                doubts.append(note)
            doubts += synonym_notes(column, of_groups)
            doubts += age_notes(column, of_groups)
            names_group = np.array([not is_number(group) and group != UNKNOWN for group in groups])
            is_named = names_group[group_codes]
            in_several = len(_people_in_several(index.patients[is_named], group_codes[is_named]))
            if 0 < in_several <= people * _FEW:  # otherwise it changes from recording to recording, as a device does
                doubts.append(
                    f"people in several groups of {shown(column)}: {in_several:,} of {people:,}; if it is a fact of a "
                    "person, such as the sex, correct the table, or two people have one name"
                )
        for column, (codes, domains) in index.domains.items():
            recordings = _recordings_of(index, codes, domains)
            if note := alike_domains(column, recordings):
                doubts.append(note)
            doubts += misspelt_domains(column, recordings)
            doubts += _people_in_domains(column, codes, index)
        people_are_given = self.common.people_given and not index.patient_names[0].startswith(UNKNOWN_PERSON)
        states_one_each = self._declaration is not None and self._declaration.one_recording_per_person
        if states_one_each:
            return doubts
        if people_are_given and (note := people_with_one_recording(index, self.common.people_column)):
            doubts.append(note)
        if not people_are_given and records == people and (series := names_of_series(index.record_names)):
            doubts.append(
                f"every recording counts as a person, but names such as {shorten(series[0])} suggest several "
                "recordings of one: people may be in two splits; give patient"
            )
        if not people_are_given:
            doubts.append(
                f"{PEOPLE_NOT_GIVEN}, because none is given; if a person has several, one person is in two splits and "
                "scores are too high: give patient, or @dataset(..., one_recording_per_person=True)"
            )
        return doubts


def _recordings_of(index: Index, codes: NDArray[np.int32], domains: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of the recordings of each domain, from the code of each frame [n]."""
    pairs = np.unique(np.stack([codes, index.records], axis=1), axis=0)
    recordings: dict[str, list[str]] = {name: [] for name in domains}
    for code, record in pairs.tolist():
        recordings[domains[code]].append(index.record_names[record])
    return recordings


def _people_in_several(patients: NDArray[np.int32], codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the people with frames of several domains, from the codes of both for each frame [n]."""
    pairs = np.unique(np.stack([patients, codes], axis=1), axis=0)
    people, domains_of_person = np.unique(pairs[:, 0], return_counts=True)
    return people[domains_of_person > 1]


def _people_in_domains(column: str, codes: NDArray[np.int32], index: Index) -> Iterator[str]:
    """Yield a sentence on people with frames of several domains.

    Each domain may number its people anew: then a name stands for two people, who often differ in sex or age.
    """
    in_several = _people_in_several(index.patients, codes)
    if not len(in_several):
        return
    count = f"{len(in_several):,} of {len(index.patient_names):,}"
    anew = f"if each {column} numbers its people anew, write the {column} into their names"
    for group, (group_codes, groups) in index.groups.items():
        if group.casefold() not in _FACTS_OF_A_PERSON:
            continue
        is_known = np.array([name != UNKNOWN for name in groups])[group_codes]
        of_several = np.intersect1d(in_several, _people_in_several(index.patients[is_known], group_codes[is_known]))
        if len(of_several):
            yield (
                f"{TWO_PEOPLE} {count} people are in several domains of {shown(column)}, and {len(of_several):,} of "
                f"these have several values of {shown(group)}: {anew}, or correct the table"
            )
            return
    if len(in_several) <= len(index.patient_names) * _FEW:
        yield (
            f"people in several domains of {shown(column)}: {count}; each of their "
            "domains counts them, and all their recordings are in one part of a split"
        )
    else:
        yield (
            f"people in several domains of {shown(column)}: {count}; right if they were recorded in each, as with "
            f"several devices or sessions; {anew}"
        )


def _guarded(yielded: Iterator[Any], declared: Declared) -> Iterator[Any]:
    """Yield from a generator; errors of its code become one sentence."""
    end = object()
    while True:
        with user_code(partial(_raised, declared)):
            recording = next(yielded, end)
        if recording is end:
            return
        yield recording


def _raised(declared: Declared, error: BaseException) -> UsageError:
    """Return one sentence about an error of a declared function, with its line and the file that it was reading."""
    code = getattr(declared.member, "__code__", None)
    where = ""
    called = list[FrameType]()
    for frame, line in traceback.walk_tb(error.__traceback__):
        if code is not None and frame.f_code.co_filename == code.co_filename:
            where = f" in line {line}"
            called.clear()
        else:
            called.append(frame)
    reason = missing_key(error, only=_only_file(declared)) or one_line(error)[:300]
    file = _file_in_use(called) if where else ""
    if file and file not in reason:
        where += f", reading {shorten(file)}"
    return UsageError(f"the function raises {type(error).__name__}{where}: {reason}")


def _only_file(declared: Declared) -> Path | None:
    """Return the file that a data set declares, if it is the only one."""
    is_one = len(declared.files) == 1 and not any(sign in declared.files[0] for sign in "*?[")
    return Path(declared.files[0]) if is_one else None


def _file_in_use(frames: Iterable[FrameType]) -> str:
    """Return the file that functions of libraries were called with; empty without one.

    Libraries that read a damaged file often leave its name out of their errors.
    """
    for frame in frames:
        for name in frame.f_code.co_varnames[: frame.f_code.co_argcount]:
            value = frame.f_locals.get(name)
            if isinstance(value, str | bytes | os.PathLike) and is_file(Path(os.fsdecode(value))):
                return os.fsdecode(value)
    return ""
