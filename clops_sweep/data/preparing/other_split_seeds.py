"""Split seeds that leave a task without a class in a part of the split, and seeds that do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.scenarios.scarce import UncoveredTask
from clops_sweep.data.splits.fold_names import fold_of, folds
from clops_sweep.errors import UsageError, listed

CANDIDATES: Final = range(20)
"""Split seeds that are tried."""


@dataclass(frozen=True)
class Refusal:
    """Split seeds that leave a task without a class in a part of the split.

    Attributes:
        sentence: which seeds, which task, and what to do.
        covering: the seeds of `CANDIDATES` with which each part of the split has each class of each task.
        is_stratifiable: whether the seeds work in a split that is stratified by the domain of the tasks.
    """

    sentence: str
    covering: tuple[int, ...]
    is_stratifiable: bool


def refusal_of(
    problems: Mapping[int, UncoveredTask],
    frames: FrameSet,
    key: DataKey,
    data: PreparedData,
    tasks_of: Callable[[FrameSet], object],
    domain: str | None = None,
) -> Refusal | None:
    """Return what is wrong with some split seeds, and which seeds work; None if the split is given, or a fold.

    Args:
        problems: the error of each split seed.
        frames: the frames, with any split.
        key: the key of the frames.
        data: the prepared data, for other splits.
        tasks_of: builds the tasks on frames.
        domain: the column of the data that defines the tasks, if one does.
    """
    splits = data.other_splits(key, CANDIDATES)
    if splits is None:
        return None
    seeds = sorted(problems)
    covering = _covering(splits, frames, tasks_of)
    sentence = f"{_failing(frames.name, seeds, problems[seeds[0]])}; {_remedy(covering)}"
    is_stratifiable = False
    if domain is not None and key.stratify is None:
        stratified = data.other_splits(key._replace(stratify=domain), seeds) or {}
        is_stratifiable = _covering(stratified, frames, tasks_of) == seeds
    if is_stratifiable:
        sentence += f"; or give RunConfig stratify={domain!r}, with which split_seed {listed(seeds)} " + (
            "has them" if len(seeds) == 1 else "have them"
        )
    return Refusal(sentence, tuple(covering), is_stratifiable)


def fold_refusal(
    problems: Mapping[int, UncoveredTask],
    frames: FrameSet,
    key: DataKey,
    data: PreparedData,
    tasks_of: Callable[[FrameSet], object],
    domain: str | None = None,
) -> str:
    """Return what is wrong with a fold of some split seeds, and whether folds stratified by the domain are right.

    Args:
        problems: the error of each split seed.
        frames: the frames of the fold.
        key: the key of the frames, with the fold.
        data: the prepared data, for other folds.
        tasks_of: builds the tasks on frames.
        domain: the column of the data that defines the tasks, if one does.
    """
    seed = min(problems)
    what = str(problems[seed]).removeprefix(f"{frames.name}: ")
    problem = f"{frames.name}: split = {key.split!r}, split_seed {seed}: {what}"
    if domain is None or key.stratify is not None or key.split is None:
        return problem
    _, count = fold_of(key.split)
    stratified = key.signals._replace(split_seed=seed, stratify=domain)
    try:
        for split in folds(count):
            tasks_of(data.frames(stratified._replace(split=split)))
    except UsageError:
        return problem
    return (
        f"{problem}; or give RunConfig stratify={domain!r}, with which all {count} folds of split_seed {seed} have "
        "each class of each task in each part"
    )


def _covering(
    splits: Mapping[int, NDArray[np.int8]], frames: FrameSet, tasks_of: Callable[[FrameSet], object]
) -> list[int]:
    """Return the seeds of the splits whose parts have each class of each task."""
    covering = []
    for seed, split in splits.items():
        if uncovered(tasks_of, replace(frames, split=split)) is None:
            covering.append(seed)
    return covering


def uncovered(tasks_of: Callable[[FrameSet], object], frames: FrameSet) -> UncoveredTask | None:
    """Return the error about a task without a class in a part of the split; None if the split covers every task."""
    try:
        tasks_of(frames)
    except UncoveredTask as problem:
        return problem
    return None


def _failing(name: str, seeds: Sequence[int], problem: UncoveredTask) -> str:
    what = problem.what.removeprefix(f"{name}: ")
    if len(seeds) == 1:
        return f"{name}: split_seed {seeds[0]}: {what}"
    return f"{name}: split_seed {listed(seeds)}: a task lacks a class in a part of the split; with {seeds[0]}, {what}"


def _remedy(covering: Sequence[int]) -> str:
    """Return what to do, from the candidates whose parts have each class of each task."""
    tried = f"of split_seed {CANDIDATES[0]} to {CANDIDATES[-1]}"
    every = "each class of each task in each part"
    if not covering:
        return (
            f"none {tried} has {every}: divide the people yourself with split=..., a train, validation or test for "
            "each recording (a column, in a table), leave the task or class out of the data or pool it with another "
            "one, or add people who have it"
        )
    return f'{tried}, these have {every}: "split_seed": {[*covering]}'
