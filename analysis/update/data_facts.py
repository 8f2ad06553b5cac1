"""Facts about the data that an update report is on: patients by task, windows, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.left_out import sentences
from clops_sweep.errors import several
from clops_sweep.experiment.fields import is_missing

from ..people.predicted import Bools
from .findings import CountByTask
from .last_task import TaskFacts
from .paired import Ints, Paired
from .verdicts import Tested

_AT_ONCE = 256
"""Instances whose signals are read at once."""


def described_data(
    rows: Sequence[Mapping[str, Any]], tested: Tested, noun: str, frames: FrameSet | None, split_is_given: bool
) -> dict[str, str]:
    """Return facts about the evaluation data, by name.

    Args:
        rows: the row of the run whose model is the updated one, or of each fold.
        tested: the test instances.
        noun: what an instance is in words.
        frames: the frames that the run was computed on; None if they are not prepared here.
        split_is_given: whether the data give the split.
    """
    row, paired, facts = rows[0], tested.compared, tested.facts
    compared = several(len(paired), f"test {noun}")
    if paired.unit not in ("instance", noun):
        compared = f"{compared} of {several(len(np.unique(paired.patients)), paired.unit)}"
    facts_by_name = {
        "data set": str(row["dataset"]),
        "compared on": compared,
        "scenario": f"{row['scenario']} by {facts.domain}" if facts.changes == "domains" else str(row["scenario"]),
        "classes": ", ".join(paired.classes),
        "tasks": ", ".join(facts.title(task) for task in sorted(set(paired.tasks.tolist()))),
        "split of the patients": _split(rows, split_is_given),
    }
    if frames is not None:
        if frames.frame_seconds is not None:
            facts_by_name["length"] = f"{noun}s of {frames.frame_seconds:g} s"
        facts_by_name["left out"] = "; ".join(sentences(frames.left_out)) or "nothing"
        instances = np.unique(np.concatenate([paired.instances, tested.last.instances]))
        facts_by_name["flat channels"] = (
            "; ".join(_flat_channels(frames, instances, noun)) or f"none in the test {noun}s"
        )
        if frames.leaks:
            names = f"who they are: data counts {frames.name}"
            facts_by_name["may be there twice"] = "; ".join([*frames.leaks, names])
        if frames.shortcuts:
            facts_by_name["shortcuts"] = "; ".join(frames.shortcuts)
    hashes = [str(of_row["data_hash"]) for of_row in rows]
    facts_by_name["data hash"] = hashes[0] if len(rows) == 1 else ", ".join(content[:12] for content in hashes)
    return facts_by_name


def _split(rows: Sequence[Mapping[str, Any]], is_given: bool) -> str:
    names = [row.get("split") for row in rows]
    if is_given and is_missing(names[0]):
        return "given in the data"
    seed = f"split_seed {rows[0]['split_seed']}"
    stratify = rows[0].get("stratify")
    if is_missing(names[0]):
        if is_missing(stratify):
            return f"random, {seed}"
        return f"60, 20 and 20 % of the people of each {stratify}, {seed}"
    by_value = "" if is_missing(stratify) else f", stratified by {stratify}"
    if len(rows) > 1:
        return f"{names[0]} to {names[-1]}{by_value}, {seed}: each patient is tested once"
    return f"{names[0]}{by_value}, {seed}"


def _flat_channels(frames: FrameSet, instances: Ints, noun: str) -> Iterator[str]:
    """Yield the channels that have one value throughout some instances, with the number of these."""
    if instances.max(initial=-1) >= len(frames):
        return
    counts: dict[str, int] = {}
    for first in range(0, len(instances), _AT_ONCE):
        chosen = instances[first : first + _AT_ONCE]
        signals = frames.signal(chosen)
        is_flat = signals.max(axis=-1) == signals.min(axis=-1)
        if is_flat.ndim == 1:  # an instance is one lead
            names = [frames.lead_names[code] for code in frames.leads[chosen[is_flat]].tolist()]
        else:
            names = [frames.lead_names[channel] for channel in np.nonzero(is_flat)[1].tolist()]
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    for name, count in counts.items():
        yield f"{name} in {several(count, noun)}"


def by_majority(paired: Paired, frames: FrameSet) -> str:
    """Return a sentence on the recordings of windows: how many are right before and after, each by most of its windows.

    Args:
        paired: the windows.
        frames: the frames, which have their recordings.
    """
    if frames.recordings is None:
        return ""
    _, codes = np.unique(frames.recordings[paired.instances], return_inverse=True)
    windows = np.bincount(codes)
    before, after = (2 * np.bincount(codes, model.right) > windows for model in (paired.before, paired.after))
    many = len(windows)
    return (
        f"Shares and limits count windows. Of {several(many, 'recording')}, each right if more than half of its "
        f"windows are, {int((before & ~after).sum()):,} became wrong and {int((after & ~before).sum()):,} right: "
        f"{100 * before.mean():.0f} % to {100 * after.mean():.0f} % are right."
    )


def counts_by_task(tested: Tested) -> Iterator[CountByTask]:
    """Yield the numbers of test instances and patients of each task: of all, of each class and of each subgroup."""
    parts = [tested.compared, tested.last]
    if set(tested.last.tasks) <= set(tested.compared.tasks):  # the compared instances include those of the last task
        parts = [tested.compared]
    yield _count("all", parts, [np.ones(len(part), bool) for part in parts], tested.facts)
    for name in dict.fromkeys(name for part in parts for name in part.classes):
        masks = [part.classes.get(name, np.zeros(len(part), bool)) for part in parts]
        yield _count(f"class {name}", parts, masks, tested.facts)
    for column in tested.compared.groups:
        for name in sorted({str(value) for part in parts for value in part.groups[column]}):
            yield _count(f"{column} {name}", parts, [part.groups[column] == name for part in parts], tested.facts)


def _count(name: str, parts: Sequence[Paired], masks: Sequence[Bools], facts: TaskFacts) -> CountByTask:
    instances: dict[str, int] = {}
    units: dict[str, int] = {}
    for part, mask in zip(parts, masks, strict=True):
        for task in sorted(set(part.tasks.tolist())):
            there = mask & (part.tasks == task)
            instances[facts.title(task)] = int(there.sum())
            units[facts.title(task)] = len(np.unique(part.patients[there].astype(str)))
    return CountByTask(name, instances, units)
