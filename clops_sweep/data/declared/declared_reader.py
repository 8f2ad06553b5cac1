"""The reader of every data set that a file of the user's declares by a function."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DatasetInfo
from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.data.declared.declared_files import declared_files
from clops_sweep.data.declared.declared_function import DeclaredFunction, Held
from clops_sweep.data.declared.recording_items import Item
from clops_sweep.data.declared.recording_stack import Stack
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.files.resampling import resampled
from clops_sweep.data.reader import Index, OptionValue, Reader, Signals, Source, Windows
from clops_sweep.data.same_samples import samples_digest
from clops_sweep.data.splits import random_split
from clops_sweep.data.splits.split_program import balanced_split, uncovered_classes
from clops_sweep.errors import BadInput

FEW_PATIENTS: Final = 60
"""Up to so many are split by the integer programme of `balanced_split`; it takes seconds, and more with more."""

_SHORT: Final = "recording shorter than a frame"

_STEPS: Final = 19
"""Resampled samples are multiples of the greatest power of two that is 2^-19 of the recording's largest one or less."""


class DeclaredReader(Reader):
    """Recordings as a function returns or yields them, in rows of single channels, window by window.

    A function that returns what is in memory, or yields it, is called twice: for labels and patients, and for the
    samples. So no more than one call's data are in memory, and a function that does not return the same twice is
    noticed.
    """

    keeps_channels_together = True
    tolerates_repeats = True

    def __init__(self, info: DatasetInfo, chosen: Mapping[str, OptionValue] | None = None) -> None:
        self.name = info.name
        super().__init__(chosen)
        self._info = info
        self.in_parallel = False
        self._parts: dict[str, int] = {}
        self._root: Path | None = None
        self._function = DeclaredFunction(info.name)

    @property
    def parallel(self) -> bool:
        """Whether every recording is read from files of its own, which other processes can do."""
        return self.in_parallel

    def look(self, data_root: Path | None) -> None:
        """Looks for the declared files alone; the function is not called."""
        self.tables(data_root)

    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """The declared files."""
        self._root = data_root
        return tuple(declared_files(self.name, self._function.declared().files, data_root).values())

    def find(self, data_root: Path | None) -> list[Source]:
        """Calls the function, and looks at all of its recordings but for their samples."""
        self.look(data_root)
        self.common, groups = self._function.call(self._root)
        self.classes, self.lead_names, self.unit = self.common.classes, self.common.channels, self.common.units
        self.stored_as = self.common.stored_as
        reference = self._info.reference_lead
        if reference is not None and reference not in self.lead_names:
            raise self._function.refused(f"reference_channel: {reference!r} is none of {', '.join(self.lead_names)}")
        sources, first = [], None
        try:
            for place, group in enumerate(groups):
                if isinstance(group, Stack):
                    first = self._of_one_length(group.names[0], group.array.shape[2], group.rate, first)
                    self._parts |= dict(zip(group.patients, group.parts or (), strict=False))
                    sources.append(Held(group.outline(), place, len(group)).source())
                    continue
                first = self._of_one_length_as_said(group, first)
                if group.part is not None:
                    self._parts[group.patient] = group.part
                sources.append(Source(group.name, group.samples.files, group))
        except BadInput as problem:
            raise self._function.refused(str(problem)) from None
        self.given_split = bool(self._parts)
        self.in_parallel = all(source.files for source in sources)
        self.sampling_rate = self.common.rate or (None if first is None else first[2])
        return sources

    def file_key(self, file: Path) -> str:
        """Its path under the data root."""
        path = os.path.abspath(file)  # links are not followed: what is under the root by name is under it
        root = None if self._root is None else os.path.join(os.path.abspath(self._root), "")
        return path[len(root) :].replace(os.sep, "/") if root is not None and path.startswith(root) else path

    def windows(self, source: Source) -> Windows:
        """Window by window, channel after channel."""
        if isinstance(source.detail, Held):
            return self._windows_of_stack(source.detail.outline.stack)
        item: Item = source.detail
        samples, rate = item.samples.extent()
        label = item.samples.label() if item.label is None else item.label
        dropped = "no label that is used" if isinstance(label, list) and not label else _SHORT
        begins, width, labels = self.common.windows(samples, rate, label)
        return self._cut(begins, width, rate, labels, item.patient, item.time, item.domains, dropped)

    def _windows_of_stack(self, stack: Stack) -> Windows:
        begins, width, _ = self.common.windows(stack.array.shape[2], stack.rate, None)
        labels = np.repeat(stack.labels, len(begins), axis=0)
        many = np.tile(begins, len(stack))
        windows = self._cut(many, width, stack.rate, labels, stack.patients, stack.times, stack.domains, _SHORT)
        sizes = np.full(len(stack), len(begins) * len(self.lead_names))
        return replace(windows, sizes=sizes, dropped={} if len(begins) else {_SHORT: len(stack)})

    def _cut(
        self, begins: NDArray[np.int64], width: int, rate: float, labels: Any, patient: Any, time: Any, domains: Any,
        dropped: str,
    ) -> Windows:  # fmt: skip
        channels, count = len(self.lead_names), len(begins)
        shape = (0, len(self.classes)) if self.common.multi_label else (0,)
        kind = np.uint8 if self.common.multi_label else np.int64
        return Windows(
            patient=patient,
            begin=np.repeat(begins, channels),
            length=np.full(count * channels, width, np.int64),
            start=np.repeat(begins / rate, channels),
            leads=np.tile(np.arange(channels, dtype=np.int16), count),
            labels=np.repeat(np.asarray(labels, kind), channels, axis=0) if count else np.zeros(shape, kind),
            time=time,
            dropped={} if count else {dropped: 1},
            domains=domains,
        )

    def apart(self, source: Source) -> list[Source]:
        """Every recording of a stack by itself."""
        return source.detail.apart() if isinstance(source.detail, Held) else [source]

    def signals(self, source: Source, windows: Windows) -> Signals:
        """The samples as they are, or resampled (see `resampling.resampled`)."""
        width = int(windows.length[0])
        if isinstance(source.detail, Held):
            stack = self._function.samples(source)
            begins = windows.begin[: len(windows) // len(stack) : len(self.lead_names)]
            whole = width == stack.array.shape[2] and len(begins) == 1
            parts = [stack.array] if whole else [stack.array[:, :, begin : begin + width] for begin in begins]
            cut = (parts[0] if whole else np.stack(parts, axis=1)).reshape(-1, width)
            if self._keeps_rate(stack.rate) or len(stack) == 1:
                frames = self._as_stored(source, cut, width, stack.rate)
            else:
                pieces = np.split(cut, len(stack))
                frames = np.concatenate([self._as_stored(source, piece, width, stack.rate) for piece in pieces])
            gain, offset, digest = stack.gain, np.zeros(len(stack.gain)), None
        else:
            stored, gain, offset = source.detail.samples.read()
            if len(stored) != len(self.lead_names):
                raise BadInput(f"{self._where(source)}: has {len(stored)} channels; expected {len(self.lead_names)}")
            if stored.shape[1] == width and len(windows) == len(stored):
                cut = stored
            else:
                pairs = zip(windows.leads, windows.begin, strict=True)
                cut = np.stack([stored[lead, begin : begin + width] for lead, begin in pairs])
            frames = self._as_stored(source, cut, width, source.detail.samples.extent()[1])
            digest = samples_digest(stored)
        leads = windows.leads
        with np.errstate(over="ignore"):  # what is infinite in float32 is refused as not finite
            factors, zeros = gain[leads].astype(np.float32), offset[leads].astype(np.float32)
        return Signals(
            frames,
            factors,
            zeros,
            np.zeros(len(windows), bool),
            digest,
        )

    def _keeps_rate(self, rate: float) -> bool:
        return self.common.rate is None or self.common.rate == rate

    def _as_stored(self, source: Source, cut: NDArray[Any], width: int, rate: float) -> NDArray[Any]:
        self._require_finite(source, cut)
        target = self.common.frame_samples(width, rate)
        if self._keeps_rate(rate):
            with np.errstate(over="ignore", under="ignore"):
                frames = np.asarray(cut, self.stored_as)
            if not frames.any() and cut.any():
                raise BadInput(f"{self._where(source)}: has samples that float32 rounds to 0; expected another unit")
        else:
            peak = float(np.abs(np.asarray(cut, np.float64)).max()) or 1.0
            frames = resampled(cut, target, 2.0 ** (np.floor(np.log2(peak)) - _STEPS))
        if frames is not cut:
            self._require_finite(source, frames)
        return frames

    def _require_finite(self, source: Source, values: NDArray[Any]) -> None:
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            rows = np.flatnonzero(~np.isfinite(values).all(1))
            channel = self.lead_names[int(rows[0]) % len(self.lead_names)]
            raise BadInput(
                f"{self._where(source)}: channel {channel} has samples that are NaN, infinite or missing; repair the "
                "recording or leave it out"
            )

    def split(self, index: Index, seed: int) -> NDArray[np.int8]:
        """The given split; else 60/20/20 percent of the patients, by the integer programme where they are few."""
        if self.given_split:
            return np.array([self._parts[name] for name in index.patient_names], np.int8)
        if len(index.patient_names) <= FEW_PATIENTS:
            return balanced_split(self._counts(index), seed)
        return random_split.sixty_twenty_twenty(len(index.patient_names), seed)

    def quick_split(self, index: Index, seed: int) -> NDArray[np.int8] | None:
        """None where the integer programme is asked."""
        return None if len(index.patient_names) <= FEW_PATIENTS else self.split(index, seed)

    def select(self, index: Index) -> tuple[NDArray[np.bool_], Mapping[str, int]]:
        """All of them."""
        return np.ones(len(index), bool), self.common.left_out

    def too_few(self, index: Index, dropped: Mapping[str, int]) -> str | None:
        """Which class has no frame."""
        many, labels = len(self.classes), index.labels
        counts = labels.sum(0, dtype=np.int64) if labels.ndim == 2 else np.bincount(labels, minlength=many)
        try:
            checks.require_every_class(self.classes, counts, "frame", dropped)
        except BadInput as problem:
            return str(self._function.refused(str(problem)))
        return None

    def notes(self, index: Index, split: NDArray[np.int8]) -> list[str]:
        """That a split is given, and which classes are not in every split."""
        missing = uncovered_classes(self._counts(index), split)
        given = ["the split is the given one, for every split_seed"] if self.given_split else []
        return given + [
            f"class {self.classes[code]} is not in the {' and '.join(parts)} split" for code, parts in missing.items()
        ]

    def _counts(self, index: Index) -> NDArray[np.int64]:
        several = index.labels.ndim == 2
        return index.counts_per_patient(index.labels.shape[1] if several else int(index.labels.max(initial=0)) + 1)

    def _of_one_length_as_said(self, item: Item, first: tuple[str, int, float] | None) -> tuple[str, int, float] | None:
        try:
            samples, rate = item.samples.extent()
        except (BadInput, OSError):
            return first  # whoever reads it says why it cannot be read
        return self._of_one_length(item.name, samples, rate, first)

    def _of_one_length(
        self, name: str, samples: int, rate: float, first: tuple[str, int, float] | None
    ) -> tuple[str, int, float]:
        """Sees whether a recording makes frames as long as the first, of which name, samples and rate are returned."""
        checks.positive("sampling_rate", rate)
        argument = "signals"
        if self.common.window is not None:
            samples, argument = round(self.common.window * rate), "window_seconds"
        frame = self.common.frame_samples(samples, rate)
        if not 2 <= frame <= checks.MOST_SAMPLES:
            argument = "resample_to" if 2 <= samples <= checks.MOST_SAMPLES else argument
        if min(samples, frame) < 2 or max(samples, frame) > checks.MOST_SAMPLES:
            count = samples if 2 <= frame <= checks.MOST_SAMPLES else frame
            raise BadInput(
                f"{argument}: frames of {count:,} samples come of it at {rate:g} samples a second; expected 2 to "
                f"{checks.MOST_SAMPLES:,}"
            )
        if self.common.stride is not None and round(self.common.stride * rate) < 1:
            raise BadInput(f"stride_seconds: {self.common.stride:g} is less than a sample at {rate:g} samples a second")
        if first is None:
            return name, frame, rate
        its_name, expected, its_rate = first
        if self.common.rate is None and rate != its_rate:
            raise BadInput(
                f"sampling_rate: recording {shorten(name)!r} has {rate:g} samples a second where "
                f"{shorten(its_name)!r} has {its_rate:g}; give resample_to to have one rate for all"
            )
        if frame != expected:
            raise BadInput(
                f"signals: recording {shorten(name)!r} makes frames of {frame} samples where "
                f"{shorten(its_name)!r} makes frames of {expected}; give window_seconds to cut frames of one length"
            )
        return first

    def _where(self, source: Source) -> str:
        if source.files:
            return shorten(source.files[0])
        return f"dataset {self.name!r}: signals: recording {shorten(source.record)!r}"
