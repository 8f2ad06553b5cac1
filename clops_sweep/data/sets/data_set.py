"""A data set during preparation: its recordings under a data root, splits and checks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DatasetInfo, OptionValue, Rules
from clops_sweep.data.declared.portions import Portion
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.frames import VALIDATION
from clops_sweep.data.left_out import Collected, LeftOut
from clops_sweep.data.recording_facts import Facts
from clops_sweep.data.records import Common, Index, Source, Windows
from clops_sweep.data.splits import random_split
from clops_sweep.data.splits.fixed_folds import FixedFolds
from clops_sweep.data.splits.known_splits import known_split
from clops_sweep.data.splits.split_program import balanced_split, uncovered_classes
from clops_sweep.errors import UsageError, nearest

_FEW_PATIENTS: Final = 60
"""Most patients that the integer programme of `balanced_split` splits; it takes seconds, more with more patients."""

Run = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]
"""An ordered map, perhaps in several processes."""


class DataSet(ABC):
    """One data set with the given options. `named.data_set` makes it.

    Attributes:
        name: name in configs.
        rules: how its recordings become frames.
        chosen: its options.
        common: values common to its recordings; of a user's data set, known once they are found.
        given_split: whether the split is the publisher's, and equal for every split seed.
        sampling_rate: sampling rate of the frames in Hz, if known.
        frame_seconds: duration of a frame, known once records are read.
        parallel: whether several processes may read records.
        root: the folder that `file_key` is relative to; None if keys are names.
        fingerprint: SHA-256 of the user's code that declares it; None for a data set of this package.
        why_uncovered: why a class may be missing in a split, for a note.
        checks_files_on_opening: whether opening prepared frames compares its source files with those of the frames.

    Raises:
        UsageError: no such option.
    """

    why_uncovered: ClassVar[str] = ""
    checks_files_on_opening: ClassVar[bool] = False

    def __init__(self, name: str, rules: Rules, options: Mapping[str, OptionValue], common: Common) -> None:
        self.name = name
        self.rules = rules
        self.chosen = _chosen(name, rules, options)
        self.common = common
        self.given_split = False
        self.sampling_rate: float | None = None
        self.frame_seconds: float | None = None
        self.parallel = False
        self.root: Path | None = None
        self.fingerprint: str | None = None
        self._parts: dict[str, int | None] = {}
        self._first: tuple[str, int, float] | None = None

    @abstractmethod
    def look(self, data_root: Path | None) -> None:
        """Check that the data set exists, without calling a user's function; UsageError otherwise."""

    @abstractmethod
    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """Return source files other than records: tables of labels and declared files."""

    @abstractmethod
    def find(self, data_root: Path | None) -> Iterable[Source]:
        """Return the records under `data_root` in a fixed order: a list, unless in memory; UsageError without any."""

    @abstractmethod
    def file_key(self, file: Path) -> str:
        """Return the key of a source file in the manifest."""

    @abstractmethod
    def accepts(self, version: int, classes: Sequence[str]) -> bool:
        """Return whether prepared frames of a version, with these classes, can be used now."""

    def recorded_info(self) -> DatasetInfo | None:
        """Return the facts that a manifest records and the content hash covers; None if the catalogue has them."""
        return None

    @abstractmethod
    def check(self, index: Index, dropped: Mapping[str, int], facts: Sequence[Facts]) -> None:
        """Check all frames together. `dropped` counts dropped frames by reason.

        Raises:
            UsageError: a class has no frame, or a channel follows the labels as triggers do.
        """

    def met(self, source: Source, windows: Windows) -> None:
        """Record the given splits of a source, after checking that it matches the first one.

        Raises:
            UsageError: its frames have another length or sampling rate.
        """
        cut = self.common.windowing
        frame = cut.frame_samples(windows.width, windows.rate)
        rate = cut.rate or windows.rate
        if self.frame_seconds is None:
            self.frame_seconds = frame / rate
        if not isinstance(source, Portion):
            return
        if self._first is None:
            self._first = (source.record, frame, windows.rate)
            self.sampling_rate = rate
        self._require_like_first(source.record, frame, windows.rate)
        columns = source.columns
        if columns.parts is not None:
            self._parts |= dict(zip(columns.patients, columns.parts, strict=True))
        self.given_split = bool(self._parts)

    def _require_like_first(self, name: str, frame: int, rate: float) -> None:
        assert self._first is not None
        first_name, first_frame, first_rate = self._first
        if self.common.windowing.rate is None and rate != first_rate:
            raise self.common.refused(
                f"sampling_rate: recording {shorten(name)!r} has {rate:g} samples a second where "
                f"{shorten(first_name)!r} has {first_rate:g}; give resample_to to have one rate for all"
            )
        if frame != first_frame:
            raise self.common.refused(
                f"signals: recording {shorten(name)!r} makes frames of {frame} samples where "
                f"{shorten(first_name)!r} makes frames of {first_frame}; give window_seconds to cut frames of one "
                "length"
            )

    def leave_out(self, records: Iterable[LeftOut]) -> None:
        """Count what is left out of a file that was read."""
        added = list(records)
        if added:
            self.common = replace(self.common, left_out=Collected([*self.common.left_out, *added]))

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
        split: NDArray[np.int8] | None = None
        if self.rules.split is not None:
            split = self.rules.split(index, seed)
        elif len(index.patient_names) > _FEW_PATIENTS:
            split = random_split.shuffled(index, seed)
        return known_split(self.counts(index), seed) if split is None else split

    def select(self, sources: Iterable[Source], run: Run) -> Iterable[Source]:
        """Return the sources with the frames that the data set's rules keep."""
        chosen = self.rules.select
        return sources if chosen is None else chosen(self.common, sources, self.chosen, run)

    def notes(self, index: Index, split: NDArray[np.int8]) -> list[str]:
        """Return notes for the user: a given split, doubtful people and order, and classes missing in a split."""
        if self.rules.split not in (None, random_split.balanced):
            return []
        notes = []
        if self.given_split:
            notes.append("the split is the given one, for every split_seed")
        if not (split == VALIDATION).any():
            remedy = "; validation=0.2 takes one from the training people" if self.given_split else ": too few people"
            notes.append(f"there is no validation set{remedy}")
        notes += self.doubts(index)
        for code, parts in uncovered_classes(self.counts(index), split).items():
            name = self.common.classes[code]
            notes.append(f"class {name} is not in the {' and '.join(parts)} split{self.why_uncovered}")
        return notes

    def fixed_folds(self, index: Index) -> tuple[tuple[FixedFolds, ...], list[str]]:
        """Return the given folds of each split seed, and notes on them; none of both if all people are dealt.

        Raises:
            UsageError: the table of folds is invalid.
        """
        return (), []

    def doubts(self, index: Index) -> list[str]:
        """Return sentences on what a user may have meant differently."""
        return []

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
