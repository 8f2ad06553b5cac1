"""The prepared data sets of a machine, as runs need them: hashes, facts and frames."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.same_samples import OF_LEAKS
from clops_sweep.data.shortcuts import OF_GROUPS, SHOWN_AT_LAUNCH
from clops_sweep.errors import DamagedStore, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from clops_sweep.data.encoders import Encoders
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.prepared.freshness import Change
    from clops_sweep.data.preparing.features import CachedFeatures

_SHOWN = "left_out_shown"
"""File in a prepared folder: when it was prepared, once a launch has shown what was left out."""


@dataclass(frozen=True)
class PreparedData:
    """Prepared data sets under one folder.

    Attributes:
        root: the folder of prepared data sets.
        source: folder with the publishers' folders, or None.
        encoders: encoders whose features can be used; None for no encoders.
    """

    root: Path
    source: Path | None = None
    encoders: Encoders | None = field(default=None, repr=False, compare=False)
    _hashes: dict[DataKey, str] = field(default_factory=dict, repr=False, compare=False)
    _opened: dict[DataKey, FrameSet] = field(default_factory=dict, repr=False, compare=False)
    _found: dict[DataKey, CachedFeatures] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def found(
        cls,
        root: str | PathLike[str] | None = None,
        source: str | PathLike[str] | None = None,
        encoders: Encoders | None = None,
    ) -> PreparedData:
        """Use the given folders, or else CLOPS_PREPARED_ROOT and CLOPS_DATA_ROOT, or else the user's cache folder."""
        from clops_sweep.data.prepared.commands import default_prepared_root

        chosen = source or os.environ.get("CLOPS_DATA_ROOT")
        return cls(Path(root) if root else default_prepared_root(), Path(chosen) if chosen else None, encoders)

    def data_hash(self, key: DataKey) -> str | None:
        """Return the data hash of frames; None if they are not prepared here. Nothing is written or solved.

        Raises:
            UsageError: the patients cannot be split as `key` says, or the encoder's weights are missing here.
        """
        from clops_sweep.data.preparing.prepare import data_hash

        known = self._hashes.get(key)
        if known is None:
            if key.start_from is not None:
                known = self._started_hash(key)
            elif key.encoder is None:
                known = data_hash(key.dataset, prepared_root=self.root, data_root=self.source, **key.view)
            elif (known := self.data_hash(key.signals)) is not None:
                features = self._features(key)
                known = None if features is None else features.data_hash(known)
            if known is None:
                return None
            self._hashes[key] = known
        return known

    def forget(self) -> None:
        """Forget hashes and frames that were read, because a data set may have been prepared again since."""
        self._hashes.clear()
        self._opened.clear()
        self._found.clear()

    def _started_hash(self, key: DataKey) -> str | None:
        """Return the data hash of frames for runs that start from a stored model; it covers the model's weights."""
        from clops_sweep.data.files.hashes import hash_of

        known = self.data_hash(key.without_start)
        if known is None or self.encoders is None or key.start_from is None:
            return None
        return hash_of(frames=known, start=self.encoders.model_hash(key.start_from))

    def prepared_hash(self, dataset: str) -> str | None:
        """Return what all views of a data set share as it is prepared here; None if it is not, or is damaged."""
        from clops_sweep.data.preparing.still_equal import current_set

        with suppress(UsageError, OSError):
            prepared = current_set(dataset, self.root, self.source)
            return None if prepared is None else prepared.manifest.data_hash
        return None

    def prepare(self, keys: Iterable[DataKey]) -> None:
        """Prepare the data sets that are not prepared yet, with their patient splits and features.

        Notes on channels that were left out, padding, shortcuts and people who may be in two splits go to standard
        error. So does what was left out of declared data, the first time.

        Raises:
            UsageError: files are missing or not as published, or an encoder cannot be used on the data.
        """
        import numpy as np

        from clops_sweep.data.left_out import sentences, sentences_on_domains
        from clops_sweep.data.prepared.earlier_editions import mark_used
        from clops_sweep.data.prepared.manifest import left_out, mostly_dropped, prepared_content
        from clops_sweep.data.preparing.prepare import prepare

        seeds: dict[str, set[int]] = {}
        encoded: dict[DataKey, None] = {}
        splits = list(keys)
        for key in splits:
            if self.encoders is not None and key.start_from is not None:
                self.encoders.model_hash(key.start_from)  # report a missing model before anything is prepared
            of_set = seeds.setdefault(key.dataset, set())
            if key.split is None and key.stratify is None:
                of_set.add(key.split_seed)
            if key.encoder is not None and self.encoders is not None and self.encoders.is_fitted(key.encoder):
                encoded[key] = None
            elif key.encoder is not None:  # features do not depend on the split
                whole = DataKey(
                    key.dataset, 0, key.normalize, key.leads, encoder=key.encoder, is_adapted=key.is_adapted
                )
                encoded[whole] = None
        for key in encoded:
            if self.encoders is not None and key.encoder is not None:
                self.encoders.identity(key.encoder)  # report an invalid encoder before anything is prepared
        for name, split_seeds in seeds.items():
            before = prepared_content(self.root / name)
            made = prepare(name, prepared_root=self.root, data_root=self.source, progress=True, split_seeds=split_seeds)
            if made.manifest.data_hash != before:
                self._hashes.clear()
                self._opened.clear()
                if moved := self.people_moved(key for key in splits if key.dataset == name):
                    print(f"{name}: {moved}", file=sys.stderr)
            mark_used(made.folder)
            is_declared = made.manifest.info is not None
            losses = [*sentences(left_out(made.manifest)), *sentences_on_domains(left_out(made.manifest))]
            if losses and is_declared and _is_first_time(made.folder):
                if warning := mostly_dropped(made.manifest, len(np.unique(made.table.recordings))):
                    print(f"{name}: warning: {warning}", file=sys.stderr)
                print(f"{name}: dropped: {'; '.join(losses)}", file=sys.stderr)
            begins = (*SHOWN_AT_LAUNCH, *OF_LEAKS) if is_declared else SHOWN_AT_LAUNCH
            if made.manifest.data_hash != before:
                begins = (*begins, OF_GROUPS)
            for note in made.manifest.notes:
                if note.startswith(begins):
                    print(f"{name}: {note}", file=sys.stderr)
        self.forget()  # features may be computed again
        for key in encoded:
            if (features := self._features(key)) is not None:
                features.compute(self.frames(key.signals), progress=True)

    def solve_splits(self, keys: Iterable[DataKey]) -> None:
        """Solve the patient splits of data sets that are prepared, as `prepare` does; others are left as they are.

        Raises:
            UsageError: a prepared set is damaged, or cannot be split as requested.
        """
        from clops_sweep.data.prepared.prepared_split import make_splits
        from clops_sweep.data.preparing.still_equal import current_set

        seeds: dict[str, set[int]] = {}
        for key in dict.fromkeys(keys):  # one of each: a set that is not prepared is looked up anew each time
            is_dealt = (key.split, key.stratify, key.validation) != (None, None, None)
            if not is_dealt and self.data_hash(key.signals) is None:
                seeds.setdefault(key.dataset, set()).add(key.split_seed)
        for name, split_seeds in seeds.items():
            prepared = current_set(name, self.root, self.source)
            if prepared is not None:
                make_splits(prepared, split_seeds, progress=True)

    def other_splits(self, key: DataKey, seeds: Collection[int]) -> dict[int, NDArray[np.int8]] | None:
        """Return the split of each instance [n] for other split seeds, solved where necessary.

        None if the data are not prepared here, or if their split is given, a fold, or has an added validation set.

        Raises:
            UsageError: the prepared set is damaged, or a person has too few frames to be split by time.
        """
        from clops_sweep.data.prepared.prepared_split import make_splits, split_of, within
        from clops_sweep.data.preparing.still_equal import current_set

        prepared = current_set(key.dataset, self.root, self.source)
        if prepared is None or prepared.manifest.given_split or (key.split, key.validation) != (None, None):
            return None
        if key.stratify is None:
            make_splits(prepared, seeds, progress=True)
        members = self.frames(key.signals).members
        rows = slice(None) if members is None else members[:, 0]
        splits = {}
        for seed in seeds:
            of_people = split_of(prepared, seed, stratify=key.stratify)
            splits[seed] = within(prepared, of_people, key.split_within)[rows]
        return splits

    def frames(self, key: DataKey) -> FrameSet:
        """Return the frames, mapped from the disk; features if the key names an encoder.

        Raises:
            UsageError: they are not prepared.
        """
        from clops_sweep.data.preparing.prepare import open_frames

        if key.start_from is not None:
            frames, content = self.frames(key.without_start), self.data_hash(key)
            if content is None or self.encoders is None:
                raise UsageError(f"dataset {key.dataset!r}: start_from = {key.start_from!r} is not known here")
            model = self.encoders.start_model(key.start_from, frames)
            return replace(frames, data_hash=content, start_model=model)
        whole = key.signals
        signals = self._opened.get(whole)
        if signals is None:
            signals = open_frames(key.dataset, prepared_root=self.root, data_root=self.source, **key.view)
            self._opened[whole] = signals
        if key.encoder is None:
            return signals
        features = self._features(key)
        if features is None:
            raise UsageError(f"dataset {key.dataset!r}: encoder {key.encoder!r} is not known here")
        return features.frames(signals)

    def check_encoder(self, key: DataKey) -> None:
        """Check that the encoder of a key can be used on its data, if these are prepared here.

        Raises:
            UsageError: it cannot be used.
        """
        if key.encoder is not None and self.data_hash(key.signals) is not None:
            features = self._features(key)
            if features is not None:
                features.check(self.frames(key.signals))

    def signals(self, key: DataKey) -> FrameSet | None:
        """Return the signals that runs on a key began with, with the data hash of these runs; None if not prepared."""
        try:
            content = self.data_hash(key)
        except UsageError:
            if key.encoder is None and key.start_from is None:
                raise
            return None  # the weights are on another machine
        return None if content is None else replace(self.frames(key.signals), data_hash=content)

    def holding(self, key: DataKey, data_hash: str) -> PreparedData:
        """Return the prepared data with the frames of a run: these, or an earlier edition; these without any.

        Args:
            key: the key of the run.
            data_hash: the data hash of the run.
        """
        from clops_sweep.data.prepared.earlier_editions import earlier_roots, mark_used

        for root in (self.root, *earlier_roots(key.dataset, self.root)):
            data = self if root == self.root else PreparedData(root, None, self.encoders)
            with suppress(UsageError):
                data.solve_splits([key])  # data that are prepared again have no split of the run's seed yet
                if data.data_hash(key) == data_hash:
                    mark_used(root / key.dataset)
                    return data
        return self

    def labels_changed(self, dataset: str, earlier: PreparedData) -> str:
        """Return `edition_changes.labels_changed` since an earlier edition; empty if the data set is not prepared."""
        from clops_sweep.data.preparing.edition_changes import labels_changed
        from clops_sweep.data.preparing.still_equal import current_set

        with suppress(UsageError):
            now = current_set(dataset, self.root, self.source)
            if now is not None:
                return labels_changed(earlier.root / dataset, now)
        return ""

    def people_moved(self, keys: Iterable[DataKey]) -> str:
        """Return how many people are in other parts than in the last earlier edition, as a sentence.

        Args:
            keys: the splits, all of one data set.

        Returns:
            Empty without an earlier edition, if it cannot be split in this way, or if the split is given.
        """
        from clops_sweep.data.prepared.earlier_editions import earlier_roots
        from clops_sweep.data.preparing.edition_changes import people_moved, why_folds_differ
        from clops_sweep.data.preparing.still_equal import required_current_set

        splits = list(dict.fromkeys(key.signals._replace(normalize="none") for key in keys))
        roots = earlier_roots(splits[0].dataset, self.root) if splits else []
        if not roots or self.has_given_split(splits[0].dataset):
            return ""
        earlier = PreparedData(roots[0], None, self.encoders)
        schemes = {key._replace(split=None) for key in splits}
        of_folds = len(splits) > 1 and len(schemes) == 1 and all(key.split for key in splits)
        with suppress(UsageError):  # the earlier edition lacks a column, or has too few people
            for data in (self, earlier):
                data.solve_splits(splits)
            before = required_current_set(splits[0].dataset, earlier.root, None)
            now = required_current_set(splits[0].dataset, self.root, self.source)
            pairs = [(earlier.frames(key), self.frames(key)) for key in splits]
            because = why_folds_differ(before, now, splits)
            return str(people_moved(pairs, of_folds=of_folds, because=because))
        return ""

    def fold_of_people(self, dataset: str, k: int, split_seed: int = 0, stratify: str | None = None) -> dict[str, int]:
        """Return the number of the fold whose test set has each person, from 1, by name.

        Raises:
            UsageError: the data set is not prepared, or cannot be divided into k folds.
        """
        from clops_sweep.data.prepared.prepared_split import fold_of_people
        from clops_sweep.data.preparing.still_equal import required_current_set

        prepared = required_current_set(dataset, self.root, self.source)
        return fold_of_people(prepared, k, split_seed, stratify)

    def groups(self, key: DataKey, data_hash: str) -> dict[str, tuple[NDArray[np.int32], tuple[str, ...]]]:
        """Return the domains and the columns for subgroups of the instances [n] of some frames, as codes and names.

        Raises:
            UsageError: the frames are not prepared, or have another data hash.
        """
        from clops_sweep.data.preparing.still_equal import required_current_set

        if self.data_hash(key) != data_hash:
            raise UsageError(
                f"dataset {key.dataset!r}: is not prepared in {self.root}, or has changed since the run; expected the "
                "prepared frames that the run was computed on, for its subgroups"
            )
        signals = self.frames(key.signals)
        prepared = required_current_set(key.dataset, self.root, self.source)
        table, manifest = prepared.table, prepared.manifest
        rows = slice(None) if signals.members is None else signals.members[:, 0]
        groups = {name: (table.group(name)[rows], names) for name, names in manifest.groups.items()}
        return {**signals.domains, **groups}

    def recording_names(self, signals: FrameSet) -> NDArray[np.object_]:
        """Return the name of the recording of each of some signals, str [n]; see `signals`.

        Raises:
            UsageError: the data set is not prepared.
        """
        from clops_sweep.data.preparing.still_equal import required_current_set

        names = required_current_set(signals.name, self.root, self.source).table.record_names()
        return names if signals.members is None else names[signals.members[:, 0]]

    def notes(self, dataset: str) -> tuple[str, ...]:
        """Return the notes on a declared data set; none if it is not prepared, or not declared by a user."""
        from clops_sweep.data.preparing.still_equal import current_set

        prepared = current_set(dataset, self.root, self.source)
        if prepared is None or prepared.manifest.info is None:
            return ()
        return prepared.manifest.notes

    def group_names(self, dataset: str) -> tuple[str, ...]:
        """Return the names of the columns for subgroups of a data set; none if it is not prepared."""
        from clops_sweep.data.preparing.still_equal import current_set

        prepared = current_set(dataset, self.root, self.source)
        return () if prepared is None else tuple(prepared.manifest.groups)

    def is_outdated(self, dataset: str) -> bool:
        """Return whether a data set was prepared here, and its files or code changed since."""
        from clops_sweep.data.prepared.manifest import read_manifest
        from clops_sweep.data.preparing.still_equal import current_set

        with suppress(DamagedStore):
            is_usable = current_set(dataset, self.root, self.source) is not None
            return not is_usable and read_manifest(self.root / dataset) is not None
        return False

    def other_project(self, dataset: str) -> str | None:
        """Return the file of another project that a data set of this name was prepared for, else None."""
        from clops_sweep.data.prepared.freshness import other_project

        return other_project(self.root / dataset, dataset)

    def changes(self, dataset: str) -> list[Change]:
        """Return what changed since a data set was prepared here; empty if it is not, or if nothing changed."""
        from clops_sweep.data.prepared.prepared_folder import changes_since

        return changes_since(dataset, self.root, self.source)

    def has_given_split(self, dataset: str) -> bool:
        """Return whether the split of a data set is given, and so the same for every split seed; False if unknown."""
        from clops_sweep.data.preparing.still_equal import current_set

        prepared = current_set(dataset, self.root, self.source)
        return prepared is not None and prepared.manifest.given_split

    def of_prepared(self, keys: Iterable[DataKey]) -> list[FrameSet]:
        """Return the signals of the keys that are prepared."""
        return [frames for key in dict.fromkeys(keys) if (frames := self.signals(key)) is not None]

    def _features(self, key: DataKey) -> CachedFeatures | None:
        """Return the features of a key with an encoder; None without it, or if the data set is not prepared."""
        from clops_sweep.data.preparing.features import CachedFeatures
        from clops_sweep.data.preparing.still_equal import current_set

        features = self._found.get(key)
        if features is None:
            prepared = current_set(key.dataset, self.root, self.source)
            if prepared is None or self.encoders is None or not key.encoder:
                return None
            features = CachedFeatures(prepared, key, self.encoders, self.data_hash(key.signals))
            self._found[key] = features
        return features


def _is_first_time(folder: Path) -> bool:
    """Return whether this function is called for the first time since a folder was prepared, which it notes there.

    In a read-only folder, every time is the first.
    """
    from clops_sweep.data.files.folder import write_file
    from clops_sweep.data.prepared.manifest import MANIFEST

    made_at = str((folder / MANIFEST).stat().st_mtime_ns).encode()
    noted = folder / _SHOWN
    with suppress(OSError):
        if noted.is_file() and noted.read_bytes() == made_at:
            return False
        write_file(noted, made_at)
    return True
