"""Differences between two editions of a data set: recordings with other labels, and people in other parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.data.prepared.manifest import Manifest, read_manifest
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.prepared.prepared_split import fold_of_people
from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.errors import UsageError, several

_DIGITS = 12
"""Digits of the hash of an edition in commands."""

_Labels = frozenset[tuple[str, int]]
"""The labels of the frames of a recording, each with its number of frames."""


def labels_changed(before: Path, now: PreparedSet) -> str:
    """Return what changed in the recordings since an earlier edition: "3 recordings have other labels, 8 are new".

    Args:
        before: the folder of the earlier edition.
        now: the present edition.

    Returns:
        Empty if the names of the recordings, their labels and the given folds are the same.
    """
    manifest = read_manifest(before)
    if manifest is None:
        return ""
    earlier, present = _labels(PreparedSet(before, manifest)), _labels(now)
    both = earlier.keys() & present.keys()
    relabelled = sum(earlier[name] != present[name] for name in both)
    phrases = []
    if relabelled:
        phrases.append(f"{_recordings(relabelled)} other labels")
    if new := len(present) - len(both):
        phrases.append(f"{several(new, 'recording')} {'is' if new == 1 else 'are'} new")
    if lost := len(earlier) - len(both):
        phrases.append(f"{several(lost, 'recording')} {'is' if lost == 1 else 'are'} no longer there")
    if folds := _folds_changed(manifest, now.manifest):
        phrases.append(folds)
    return ", ".join(phrases)


def _folds_changed(before: Manifest, now: Manifest) -> str:
    """Return what changed in the folds that a table gives, which folds= names; empty if they are equal."""
    earlier, present = _folds_of(before), _folds_of(now)
    if earlier == present:
        return ""
    if not earlier:
        return "folds= gives the folds, which were dealt"
    if not present:
        return "folds= is not given any more, so folds are dealt"
    return "the table that folds= names has other folds"


def _folds_of(manifest: Manifest) -> dict[tuple[int, str], int]:
    """Return the given fold of each split seed and person."""
    folds = {}
    for of_seed in manifest.folds:
        for person, fold in zip(manifest.patient_names, of_seed.parts, strict=True):
            if fold:
                folds[of_seed.split_seed, person] = fold
    return folds


def _recordings(count: int) -> str:
    return f"{several(count, 'recording')} {'has' if count == 1 else 'have'}"


def _labels(prepared: PreparedSet) -> dict[str, _Labels]:
    """Return the labels of each recording, by its name."""
    table = prepared.table
    names, records = np.unique(table.record_names().astype(str), return_inverse=True)
    labels = table.labels
    rows, codes = np.nonzero(labels) if labels.ndim == 2 else (np.arange(len(labels)), labels)
    pairs, counts = np.unique(np.stack([records[rows], codes]), axis=1, return_counts=True)
    of_records: dict[str, set[tuple[str, int]]] = {name: set() for name in names.tolist()}
    for record, code, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        of_records[str(names[record])].add((prepared.manifest.classes[code], count))
    return {name: frozenset(of_record) for name, of_record in of_records.items()}


@dataclass(frozen=True)
class Moved:
    """People of both editions of a data set who are in another part of a split than before.

    Attributes:
        by_split: their number, by split.
        people: the people of both editions.
        of_folds: whether the splits are the folds of one split seed; then `by_split` has one entry.
        because: why people of folds moved, and what keeps them; empty for people who are dealt by their labels.
    """

    by_split: tuple[int, ...]
    people: int
    of_folds: bool
    because: str = ""

    def __str__(self) -> str:
        """Return a sentence."""
        if not self.people:
            return (
                "no person of the earlier edition is in this one: if it is a data set of another project, give one of "
                "them another name, or each project a folder of its own with --prepared-root"
            )
        fewest, most = min(self.by_split), max(self.by_split)
        everyone = f"{self.people:,} people"
        where = "in another fold" if self.of_folds else "in another part (training, validation or test)"
        if not most:
            same = "fold" if self.of_folds else "part of each split"
            return f"all {everyone} of the earlier edition stay in the same {same}"
        many = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}, by split,"
        are = "is" if most == 1 else "are"
        moved = f"{many} of {everyone} {are} now {where} than in the earlier edition, because"
        if self.because:
            return f"{moved} {self.because}"
        moved += " people are dealt by their"
        if self.of_folds:
            return (
                f"{moved} labels; to keep their folds, write those of the earlier edition by 'clops-sweep data folds "
                "--edition', and declare @dataset(..., folds=FILE)"
            )
        return (
            f'{moved} labels; a column of the table with "train", "validation" and "test", which split= names, keeps '
            "them in place"
        )


def people_moved(pairs: Iterable[tuple[FrameSet, FrameSet]], *, of_folds: bool, because: str = "") -> Moved:
    """Return who moved between two editions of a data set.

    Args:
        pairs: the frames of the earlier edition and of the present one, for each split.
        of_folds: whether the splits are the folds of one split seed.
        because: see `Moved`.
    """
    moved: list[frozenset[str]] = []
    people = 0
    for earlier, present in pairs:
        before, now = _parts(earlier), _parts(present)
        both = before.keys() & now.keys()
        people = max(people, len(both))
        moved.append(frozenset(name for name in both if before[name] != now[name]))
    if of_folds:
        moved = [frozenset[str]().union(*moved)]
    return Moved(tuple(map(len, moved)), people, of_folds, because)


def _parts(frames: FrameSet) -> dict[str, tuple[int, ...]]:
    """Return the parts that each person is in, by name; several if recordings are split by time."""
    pairs = np.unique(np.stack([frames.patients, frames.split]), axis=1)
    parts: dict[str, tuple[int, ...]] = {}
    for person, part in pairs.T.tolist():
        name = frames.patient_names[person]
        parts[name] = (*parts.get(name, ()), part)
    return parts


def why_folds_differ(before: PreparedSet, now: PreparedSet, splits: Sequence[DataKey]) -> str:
    """Return why people are in other folds than in an earlier edition because of folds=, and what keeps them there.

    Args:
        before: the earlier edition.
        now: the present edition.
        splits: the folds of the runs.

    Returns:
        Empty if folds are dealt in both editions, or if a split is no fold.
    """
    if not splits or any(key.split is None for key in splits) or not (before.manifest.folds or now.manifest.folds):
        return ""
    if not now.manifest.folds:
        return "folds= is not given any more and people are dealt; declare folds= with its table again"
    first = splits[0]
    k = fold_of(first.split or "")[1]
    stratify, seed = first.stratify, first.split_seed
    theirs = f"those of the runs, which are of split_seed {seed} and {_scheme(stratify)}"
    which = ""
    for column in (None, *before.manifest.domains):
        if column != stratify and _deals(before, now, k, seed, column):
            which = f"; it has those that are {_scheme(column)}"
    options = ["--number", str(k)]
    for split_seed in dict.fromkeys(key.split_seed for key in splits):
        options += ["--split-seed", str(split_seed)]
    options += [] if stratify is None else ["--stratify", stratify]
    options += ["--edition", before.manifest.data_hash[:_DIGITS], "--output", "NEW.csv"]
    command = data_command("folds", now.manifest.name, *options, prepared_root=now.folder.parent)
    return (
        f"the table that folds= names has other folds than {theirs}{which}; to keep their folds, write the table again "
        f"by '{command}', and name this file in folds="
    )


def _scheme(stratify: str | None) -> str:
    return "not stratified" if stratify is None else f"stratified by {stratify}"


def _deals(before: PreparedSet, now: PreparedSet, k: int, split_seed: int, stratify: str | None) -> bool:
    """Return whether an earlier edition deals people into the folds of the present table when stratified in a way."""
    table = {person: fold for (seed, person), fold in _folds_of(now.manifest).items() if seed == split_seed}
    with suppress(UsageError):  # too few people of a value
        dealt = fold_of_people(before, k, split_seed, stratify)
        both = table.keys() & dealt.keys()
        return bool(both) and all(table[person] == dealt[person] for person in both)
    return False
