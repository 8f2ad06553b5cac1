"""Contract suite of scenarios."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from clops_sweep.data.frames import FRAME_LENGTH, FrameSet
from clops_sweep.data.scenarios import Scenario, ScenarioTasks, Subset, build_scenario
from clops_sweep.data.scenarios.tasks import ScenarioFunction
from clops_sweep.errors import UsageError
from clops_sweep.experiment.metrics import PAPER
from clops_sweep.experiment.plugins.registry import SCENARIOS
from clops_sweep.testing.defaults import default_options
from clops_sweep.testing.frames import tiny_config
from clops_sweep.testing.strategy_contract import check_named_strategy
from clops_sweep.testing.watch import ContractViolation, global_randomness, require

_PARTS = ("train", "validation", "test")


def check_scenario(function: ScenarioFunction, frames: FrameSet, **options: Any) -> None:
    """Check a scenario against its contract, on a suitable frame set.

    - Its tasks can be trained on (see `ScenarioTasks`): distinct names, targets of zeros and ones of the declared kind,
      instances in every split, and no patient in two splits (see `people_recur`).
    - It does not modify the frame set and draws from no global generator.
    - A second call gives the same tasks, and so does a frame set with its instances in another order.
    - If each task has its own classes, the registered headline metrics are not the default AUC metrics, because AUC
      within tasks cannot show forgetting between them.

    If the frames fit the paper's network, complete runs of one epoch must pass `check_strategy`'s suite: with CLOPS, on
    one task after another, and with multitask training, on all tasks at once.

    Args:
        function: the scenario, decorated with `clops_sweep.scenario` or not.
        frames: a frame set with the data that the scenario needs, such as one of `tiny_frames`.
        options: config fields, and values of options other than the defaults, passed as keyword arguments.

    Raises:
        ContractViolation: the scenario breaks the contract; the message says how.
    """
    options = default_options(SCENARIOS, function) | options
    arrays = {name: value.copy() for name, value in vars(frames).items() if isinstance(value, np.ndarray)}
    with global_randomness(1, "the scenario"):
        built = _built(function, frames, options)
    for name, before in arrays.items():
        require(np.array_equal(before, getattr(frames, name)), f"the scenario modifies the frame set's {name}")
    found = _difference(built, _built(function, frames, options), np.arange(len(frames)))
    require(found is None, f"{found} differs when the scenario is called again")
    blind = SCENARIOS.declaration_of(function).headline == PAPER and function in SCENARIOS.values()
    require(
        not (blind and built.has_own_classes),
        "each task has its own classes, and AUC within a task cannot show forgetting between tasks; declare "
        'headline=("balanced_accuracy", "forgetting")',
    )
    order = np.random.default_rng(3).permutation(len(frames))
    found = _difference(built, _built(function, _reordered(frames, order), options), order)
    require(found is None, f"{found} depends on the order of the instances in the frame set")
    if frames.members is None and frames.samples == FRAME_LENGTH:
        _check_runs(function, frames, options)


def _built(function: ScenarioFunction, frames: FrameSet, options: dict[str, Any]) -> Scenario:
    try:
        return build_scenario(frames, "scenario_under_test", function=function, **options)
    except UsageError as error:
        raise ContractViolation(str(error)) from None


def _difference(one: Scenario, other: Scenario, order: np.ndarray[Any, np.dtype[np.int64]]) -> str | None:
    """Return the first difference between two scenarios; instance i of the second set is order[i] of the first."""
    if (one.kind, one.outputs, one.by_position) != (other.kind, other.outputs, other.by_position):
        return "the kind of output"
    if [(it.name, it.title) for it in one.tasks] != [(it.name, it.title) for it in other.tasks]:
        return "the list of tasks"
    for task, counterpart in zip(one.tasks, other.tasks, strict=True):
        for part in _PARTS:
            ours: Subset = getattr(task, part)
            theirs: Subset = getattr(counterpart, part)
            rows = order[theirs.rows]
            place = np.argsort(rows)
            if not np.array_equal(ours.rows, rows[place]) or not np.array_equal(ours.targets, theirs.targets[place]):
                return f"task {task.name!r}"
    return None


def _reordered(frames: FrameSet, order: np.ndarray[Any, np.dtype[np.int64]]) -> FrameSet:
    members = np.arange(len(frames.frames))[:, None] if frames.members is None else frames.members
    changed: dict[str, Any] = {
        name: getattr(frames, name)[order] for name in ("patients", "labels", "split", "leads")
    } | {
        "times": None if frames.times is None else frames.times[order],
        "domains": {name: (codes[order], names) for name, (codes, names) in frames.domains.items()},
        "recordings": None if frames.recordings is None else frames.recordings[order],
        "start": None if frames.start is None else frames.start[order],
    }
    if frames.members is None:  # instance i is stored in row i, so rows are reordered too
        rows = members[order, 0]
        return replace(
            frames, **changed, frames=frames.frames[rows], gain=frames.gain[rows], offset=frames.offset[rows]
        )
    return replace(frames, **changed, members=members[order])


def _check_runs(function: ScenarioFunction, frames: FrameSet, options: dict[str, Any]) -> None:
    def with_options(frames: FrameSet) -> ScenarioTasks:
        return function(frames, **options)

    with SCENARIOS.temporarily("scenario_under_test", with_options):
        for strategy in ("clops", "multitask"):
            check_named_strategy(tiny_config("scenario_under_test", strategy=strategy, epochs_per_task=1), frames)
