"""A data set as it is prepared: its recordings, found under a data root, and what becomes of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, OptionValue, Rules
from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.declared_files import declared_files
from clops_sweep.data.declared.declared_function import DeclaredFunction
from clops_sweep.data.declared.file_recording import FileRecording
from clops_sweep.data.declared.in_memory import InMemory
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.frames import VALIDATION
from clops_sweep.data.records import Common, Index, Source
from clops_sweep.data.splits import random_split
from clops_sweep.data.splits.known_splits import known_split
from clops_sweep.data.splits.split_program import balanced_split, uncovered_classes
from clops_sweep.errors import UsageError, listed

FEW_PATIENTS: Final = 60
"""Up to so many are split by the integer programme of `balanced_split`; it takes seconds, and more with more."""

_OWN: Final = Rules(tolerates_repeats=True)


class DataSet:
    """One data set, built in or declared by a file of the user's, with the given options.

    Attributes:
        name: what configs call it.
        built_in: whether this package declares it. Its leads are then rows that are dropped one by one; otherwise the
            channels of a moment are kept together, and a missing sample is an error.
        rules: how it is prepared.
        chosen: its options.
        common: what its recordings share; of a user's data set known once they are found.
        given_split: whether the split is the publisher's, and the same for every split seed.
        sampling_rate: samples a second of the frames, where it is known.
        parallel: whether several processes may read records at a time.

    Raises:
        UsageError: no such data set, or no such option.
    """

    def __init__(self, name: str, options: Mapping[str, OptionValue] | None = None) -> None:
        if name == "vfdb":
            raise UsageError("vfdb is prepared as part of the data set 'mitbih_vfdb'; use that name")
        if name not in DATASETS:
            raise UsageError(
                f"dataset {shorten(name)!r} is not known; known: {listed(DATASETS)}; --plugins FILE adds those that a "
                "file declares"
            )
        self.name, self.built_in = name, name in DATASETS.built_in
        declared = DATASETS.declared(name)
        self.rules = (declared and declared.rules) or _OWN
        self.chosen = _chosen(name, self.rules, options or {})
        self.common = Common((), (), "")
        self.given_split = False
        self.sampling_rate: float | None = None
        self.parallel = self.built_in and self.rules.reads_files
        self._member = declared.member if declared else None
        self._parts: dict[str, int] = {}
        self._root: Path | None = None
        self._tables: tuple[Path, ...] = ()
        self._function = DeclaredFunction(name)
        if self.built_in and declared:
            said = declared.recording
            kind = np.int16 if self.rules.integers else np.float32
            self.common = Common(
                said["classes"], said["channels"], said["units"], self.rules.multi_label, kind, name=name
            )

    def look(self, data_root: Path | None) -> None:
        """Sees whether the data set is there; UsageError where it is not. A function of the user's is not called."""
        if self.built_in:
            self.find(data_root)
        else:
            self.tables(data_root)

    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """Files that frames are made from beside those of the records found: tables of labels, declared files."""
        if self.built_in:
            return self._tables
        self._root = data_root
        return tuple(declared_files(self.name, self._function.declared().files, data_root).values())

    def find(self, data_root: Path | None) -> list[Source]:
        """The records under `data_root` in a fixed order, looked at but for their samples; UsageError without any."""
        if self.built_in:
            assert self._member is not None
            found: list[Source] = self._member(data_root, **self.chosen)
            self._tables = tuple(dict.fromkeys(table for source in found for table in source.tables))
            return found
        self.look(data_root)
        self.common, listed_ones = self._function.call(self._root)
        reference = DATASETS[self.name].reference_lead
        if reference is not None and reference not in self.common.channels:
            raise self._function.refused(
                f"reference_channel: {reference!r} is none of {', '.join(self.common.channels)}"
            )
        sources, first = [], None
        try:
            for source in listed_ones:
                first = self._looked_at(source, first)
                sources.append(source)
        except UsageError as problem:
            raise self._function.refused(str(problem)) from None
        self.given_split = bool(self._parts)
        self.parallel = all(source.files for source in sources)
        self.sampling_rate = self.common.rate or (None if first is None else first[2])
        return sources

    def file_key(self, file: Path) -> str:
        """The key of a source file in the manifest: its name, or its path under the data root."""
        if self.built_in:
            return file.name
        path = os.path.abspath(file)  # links are not followed: what is under the root by name is under it
        root = None if self._root is None else os.path.join(os.path.abspath(self._root), "")
        return path[len(root) :].replace(os.sep, "/") if root is not None and path.startswith(root) else path

    def split(self, index: Index, seed: int) -> NDArray[np.int8]:
        """TRAINING, VALIDATION or TEST for every patient, [patients] int8."""
        quick = self.quick_split(index, seed)
        return balanced_split(self.counts(index), seed) if quick is None else quick

    def quick_split(self, index: Index, seed: int) -> NDArray[np.int8] | None:
        """The same where that is a matter of milliseconds; None where it takes the integer programme.

        It is the given split, that of the data set's rule, or 60/20/20 percent of the patients, by the programme where
        they are few. Looks at patients, labels, leads and times only, so that opening a set need not read its table.
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

    def select(self, index: Index) -> tuple[NDArray[np.bool_], Mapping[str, int]]:
        """Which of all offered frames to keep [n] bool, and what goes for which reason."""
        if self.rules.select is not None:
            return self.rules.select(index, self.chosen)
        return np.ones(len(index), bool), self.common.left_out

    def too_few(self, index: Index, dropped: Mapping[str, int]) -> str | None:
        """Which class has no frame, if that is so. `dropped` counts what was left out by reason."""
        if self.built_in:
            return None
        many, labels = len(self.common.classes), index.labels
        counts = labels.sum(0, dtype=np.int64) if labels.ndim == 2 else np.bincount(labels, minlength=many)
        try:
            checks.require_every_class(self.common.classes, counts, "frame", dropped)
        except UsageError as problem:
            return str(self._function.refused(str(problem)))
        return None

    def notes(self, index: Index, split: NDArray[np.int8]) -> list[str]:
        """What a user should know: that a split is given, and which classes are not in every split."""
        if self.rules.split not in (None, random_split.balanced):
            return []
        why = ": too few patients have it" if self.built_in else ""
        given = ["the split is the given one, for every split_seed"] if self.given_split else []
        if not (split == VALIDATION).any():
            remedy = "; validation=0.2 takes one from the training people" if self.given_split else ": too few people"
            given.append(f"there is no validation set{remedy}")
        return given + [
            f"class {self.common.classes[code]} is not in the {' and '.join(parts)} split{why}"
            for code, parts in uncovered_classes(self.counts(index), split).items()
        ]

    def counts(self, index: Index) -> NDArray[np.int64]:
        """Frames of every patient and class, [patients, classes]."""
        if index.labels.ndim == 2:
            return index.counts_per_patient(index.labels.shape[1])
        return index.counts_per_patient(max(len(self.common.classes), int(index.labels.max(initial=0)) + 1))

    def _looked_at(self, source: Source, first: tuple[str, int, float] | None) -> tuple[str, int, float] | None:
        """Name, frame length and rate of the first of the recordings, once a source is seen to be like it."""
        if isinstance(source, InMemory):
            self._parts |= dict(zip(source.patients, source.parts or (), strict=False))
            return _of_one_length(self.common, source.record, source.array.shape[2], source.rate, first)
        assert isinstance(source, FileRecording)
        if source.part is not None:
            self._parts[source.patient] = source.part
        try:
            samples, rate = source.extent()
        except (UsageError, OSError):
            return first  # reading it says why it cannot be read
        return _of_one_length(self.common, source.record, samples, rate, first)


def _chosen(name: str, rules: Rules, options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    for key in options:
        if key not in rules.options:
            raise UsageError(f"{name} has no option {key!r}; its options: {', '.join(rules.options) or 'none'}")
    chosen: dict[str, OptionValue] = {**rules.options, **options}
    for key, (least, most) in rules.limits.items():
        value, kind = chosen[key], type(rules.options[key])
        # Neither a truth value nor one that is not a number, which is neither below nor above anything.
        if isinstance(value, bool | str) or not least <= value <= most or kind(value) != value:
            what = "a whole number" if kind is int else "a number"
            raise UsageError(
                f"{name}: option {key} is {value!r}, expected {what} from {least:,} to {most:,}, "
                f"as in --option {key}={rules.options[key]}"
            )
        chosen[key] = kind(value)
    return chosen


def _of_one_length(
    common: Common, name: str, samples: int, rate: float, first: tuple[str, int, float] | None
) -> tuple[str, int, float]:
    """Sees whether a recording makes frames as long as the first, of which name, samples and rate are returned."""
    checks.positive("sampling_rate", rate)
    argument = "signals"
    if common.window is not None:
        samples, argument = round(common.window * rate), "window_seconds"
    frame = common.frame_samples(samples, rate)
    if not 2 <= frame <= checks.MOST_SAMPLES:
        argument = "resample_to" if 2 <= samples <= checks.MOST_SAMPLES else argument
    if min(samples, frame) < 2 or max(samples, frame) > checks.MOST_SAMPLES:
        count = samples if 2 <= frame <= checks.MOST_SAMPLES else frame
        raise UsageError(
            f"{argument}: frames of {count:,} samples come of it at {rate:g} samples a second; expected 2 to "
            f"{checks.MOST_SAMPLES:,}"
        )
    if common.stride is not None and round(common.stride * rate) < 1:
        raise UsageError(f"stride_seconds: {common.stride:g} is less than a sample at {rate:g} samples a second")
    if first is None:
        return name, frame, rate
    its_name, expected, its_rate = first
    if common.rate is None and rate != its_rate:
        raise UsageError(
            f"sampling_rate: recording {shorten(name)!r} has {rate:g} samples a second where "
            f"{shorten(its_name)!r} has {its_rate:g}; give resample_to to have one rate for all"
        )
    if frame != expected:
        raise UsageError(
            f"signals: recording {shorten(name)!r} makes frames of {frame} samples where "
            f"{shorten(its_name)!r} makes frames of {expected}; give window_seconds to cut frames of one length"
        )
    return first
