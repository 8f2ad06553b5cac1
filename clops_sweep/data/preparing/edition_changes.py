"""Differences between two editions of a data set: recordings with other labels, and people in other parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.manifest import read_manifest
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.errors import several

_Labels = frozenset[tuple[str, int]]
"""The labels of the frames of a recording, each with its number of frames."""


def labels_changed(before: Path, now: PreparedSet) -> str:
    """Return what changed in the recordings since an earlier edition: "3 recordings have other labels, 8 are new".

    Args:
        before: the folder of the earlier edition.
        now: the present edition.

    Returns:
        Empty if the names of the recordings and their labels are the same.
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
    return ", ".join(phrases)


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
    """

    by_split: tuple[int, ...]
    people: int
    of_folds: bool

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
        moved = f"{many} of {everyone} {are} now {where} than in the earlier edition, because people are dealt by their"
        if self.of_folds:
            return (
                f"{moved} labels; to keep their folds, write those of the earlier edition by 'clops-sweep data folds "
                "--edition', and declare @dataset(..., folds=FILE)"
            )
        return (
            f'{moved} labels; a column of the table with "train", "validation" and "test", which split= names, keeps '
            "them in place"
        )


def people_moved(pairs: Iterable[tuple[FrameSet, FrameSet]], *, of_folds: bool) -> Moved:
    """Return who moved between two editions of a data set.

    Args:
        pairs: the frames of the earlier edition and of the present one, for each split.
        of_folds: whether the splits are the folds of one split seed.
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
    return Moved(tuple(map(len, moved)), people, of_folds)


def _parts(frames: FrameSet) -> dict[str, tuple[int, ...]]:
    """Return the parts that each person is in, by name; several if recordings are split by time."""
    pairs = np.unique(np.stack([frames.patients, frames.split]), axis=1)
    parts: dict[str, tuple[int, ...]] = {}
    for person, part in pairs.T.tolist():
        name = frames.patient_names[person]
        parts[name] = (*parts.get(name, ()), part)
    return parts
