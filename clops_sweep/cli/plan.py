"""Output of `plan` and `status`: the state of runs, and the cost of pending ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import click

from clops_sweep.cli.options import print_json
from clops_sweep.cli.search import (
    print_searches,
    print_tuned,
    replicates_in_words,
    search_as_data,
    tuned_as_data,
    tuned_rows,
)
from clops_sweep.cli.task_counts import say_tasks, tasks_as_data, unchecked
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.data.prepared.freshness import changes_in_words
from clops_sweep.errors import DamagedStore, listed, several
from clops_sweep.execution.fit import check_fit
from clops_sweep.execution.tried_networks import TriedNetworks
from clops_sweep.experiment.fields import SPLIT_AXES
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.experiment.tasks import in_sequential_order
from clops_sweep.machine import available_cores, usable_gpus
from clops_sweep.planning.changes import KEPT_IF_EQUAL, changes, runs_of_earlier_editions
from clops_sweep.planning.declared_tables import NeededColumns, check_declared
from clops_sweep.planning.doubts import doubts
from clops_sweep.planning.memories import memories
from clops_sweep.planning.small_arrays import with_small_arrays
from clops_sweep.planning.state import State
from clops_sweep.planning.task_tables import task_tables

_FEW_HOURS = 0.1  # shorter times are printed in seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clops_sweep.analysis.tables.tuning import TunedMethod
    from clops_sweep.execution.jobs import Resources
    from clops_sweep.experiment.spaces.search_space import TunedSpace
    from clops_sweep.planning.costs import CostEstimate
    from clops_sweep.planning.plan import Plan, PlannedRun
    from clops_sweep.planning.request import Request


def counts(plan: Plan) -> str:
    """Return the state of the runs in one line."""
    pending = plan.count_asked("pending", "waiting")
    shared = f" (for {plan.cells_and_seeds} cells and seeds)" if plan.cells_and_seeds > len(plan.asked) else ""
    return (
        f"{several(len(plan.asked), 'run')} asked for{shared}, {plan.count_asked('finished')} finished, "
        f"{pending} pending, {plan.count_asked('failed')} failed"
    )


@dataclass(frozen=True)
class Facts:
    """A state, and what `plan` and `status` print beside it.

    Attributes:
        state: the state of what was asked for.
        resources: resources of a trial.
        device: the device that the pending runs will be computed on, and the reason; None if not determined.
    """

    state: State
    resources: Resources
    device: str | None = None

    @classmethod
    def of(cls, state: State, resources: Resources | None = None) -> Facts:
        """Collect the facts of a state.

        Args:
            state: the state of what was asked for.
            resources: the requested resources of a trial; None skips the choice of a device.
        """
        if resources is None:
            from clops_sweep.execution.jobs import Resources

            return cls(state, Resources())
        if not state.to_compute or state.on_other_data:
            return cls(state, resources)
        from clops_sweep.execution.devices import choose

        choice = choose(state, resources)
        return cls(state, choice.resources, choice.words)

    @cached_property
    def tuned(self) -> list[TunedMethod]:
        """The state of the tuning of each method of a tuned space."""
        return tuned_rows(self.state)

    @cached_property
    def changed(self) -> list[str]:
        """A sentence for each data set or plug-in that changed since finished runs."""
        return [*runs_of_earlier_editions(self.state), *changes(self.state)]

    @cached_property
    def cost(self) -> CostEstimate | None:
        """The cost of the pending runs; None without any, and if a launch would be refused."""
        pending = [] if self.state.on_other_data else self.state.to_compute_unless_stored
        return _estimated(self.state, pending, self.resources) if pending else None


def print_plan(request: Request, resources: Resources, as_json: bool) -> None:
    """Print the output of `plan` and `launch --dry-run`, in words or as JSON.

    Args:
        request: what was asked for.
        resources: the requested resources of a trial.
        as_json: whether to print JSON.
    """
    request.data.solve_splits(config.data_key for config in request.selection.configs)
    request.check_samplers()
    state = State.of(request)
    facts = Facts.of(state, resources)
    fit = check_fit(state)
    held = memories(state.resolved)
    before = _pretraining(state, resources)
    tables = task_tables(state.resolved.selection.configs, request.data)
    needed = [NeededColumns(table.dataset, table.domain, table.stratify) for table in tables if table.rows is None]
    check_declared(needed, request.data)
    complete = with_small_arrays(tables, state.resolved)
    open_questions = unchecked(tables, request.data, {table.dataset for table in complete if table.rows is not None})
    if as_json:
        extra = {
            "tasks": tasks_as_data(complete),
            "unchecked": open_questions,
            "memories": [vars(it) | {"differ": it.differ} for it in held],
            "doubts": [*doubts(state), *fit.doubts],
            "remarks": [*kinds_in_words(state.plan), *networks_in_words(state)],
            "pretraining": [plan_as_data(it) for it in before],
        }
        print_json({"results": request.store.files.shown, **plan_as_data(facts), **extra})
        return
    for of in before:
        cost = _in_words(of.cost, of.resources) if of.cost and not of.cost.unknown else "no estimate"
        click.echo(f"pretraining of encoders, before the others: {counts(of.state.plan)}; {cost}")
    say_plan(facts)
    for sentence in open_questions:
        click.echo(sentence)
    say_tasks(complete)
    for of_runs in held:
        click.echo(of_runs.words)
    for sentence in (*doubts(state), *fit.doubts, *kinds_in_words(state.plan), *networks_in_words(state)):
        click.echo(sentence)


def _pretraining(state: State, resources: Resources) -> list[Facts]:
    """Return the facts of the runs that become encoders, after those that become encoders of these."""
    first = state.of_encoders
    if first is None:
        return []
    return [*_pretraining(first, resources), Facts.of(first, resources)]


def kinds_in_words(plan: Plan) -> list[str]:
    """Return sentences on pending runs that do not train on cached features."""
    sentences = []
    tuned = Counter(run.config.encoder for run in plan.of("pending", "waiting") if run.config.lora_rank)
    for name, count in tuned.items():
        trains = "trains" if count == 1 else "train"
        sentences.append(
            f"{several(count, 'run')} {trains} adapters of encoder {name!r} and use frames, not cached features"
        )
    return sentences


def networks_in_words(state: State) -> list[str]:
    """Return sentences on the custom networks of pending runs that the native kernels compute on this machine."""
    request = state.resolved
    pending = [run.config for run in state.plan.of("pending", "waiting", "failed")]
    known = [it for it in pending if NETWORKS.is_foreign(it.network) and request.data_hash(it) is not None]
    if not known:
        return []
    configs = [in_sequential_order(config) for config in known]
    return list(TriedNetworks(request.data.root).told(configs, request.frames(configs)))


def unequal_in_words(space: TunedSpace) -> str:
    """Return a sentence on methods of a tuned space that are tuned on different numbers of trials; else empty."""
    trials = {phase.method: phase.search.n_trials for phase in space.phases if phase.search is not None}
    if len(set(trials.values())) < 2:
        return ""
    counts = ", ".join(f"{method} {count:,}" for method, count in trials.items())
    return (
        f"tuning of {space.name!r} is unequal, which favours methods with more trials: {counts}; trials_each gives "
        "every method the same number"
    )


def away_in_words(state: State, dataset: str) -> str:
    """Say why the frames of a data set cannot be used."""
    data = state.resolved.data
    if data.is_outdated(dataset):
        changed = changes_in_words(data.changes(dataset)) or "its files or code"
        return f"has changed since it was prepared on this machine ({changed})"
    return "is not prepared on this machine"


def _again(state: State, dataset: str) -> str:
    """Say how a data set that changed is prepared again, and what becomes of stored runs; empty for others."""
    data = state.resolved.data
    if not data.is_outdated(dataset):
        return ""
    command = data_command("prepare", dataset, prepared_root=data.root, data_root=data.source)
    return f" until '{command}' or a launch prepares it again; then, {KEPT_IF_EQUAL}"


def _unprepared_in_words(state: State) -> list[str]:
    """Return a sentence for each data set that is not prepared on this machine."""
    sentences = []
    for name in state.unprepared:
        away = away_in_words(state, name)
        sentences.append(f"data set {name} {away}: its runs count as pending{_again(state, name)}")
    return sentences


def say_plan(facts: Facts) -> None:
    """Print the state of the runs and the pending ones."""
    state = facts.state
    if state.plan.asked:
        click.echo(f"{counts(state.plan)}{_open_in_words(state)}")
    for sentence in state.on_other_data:
        click.echo(sentence)
    if state.searches and state.to_compute and not state.on_other_data:
        click.echo(_to_do_in_words(state))
    print_searches(state.searches, state.tuned)
    print_tuned(facts.tuned)
    for tuning in state.tuned:
        if not tuning.is_decided and (sentence := unequal_in_words(tuning.space)):
            click.echo(sentence)
    if state.resolved.selection.claims:
        for tuning in state.tuned:
            if not tuning.is_decided and (sentence := tuning.space.splits_fixed):
                click.echo(sentence)
    for sentence in facts.changed:
        click.echo(sentence)
    for sentence in (*_unprepared_in_words(state), *state.may_be_refused):
        click.echo(sentence)
    say_first(state.plan)
    files = state.asked.store.files
    if not files.is_there():
        click.echo(f"results {files.shown}: no such folder yet")
    if facts.device:
        click.echo(f"device: {facts.device}")
    cost = facts.cost
    if cost is None:
        return
    if cost.known:
        click.echo(_in_words(cost, facts.resources))
    if cost.unknown:
        of, kind = ("it", "its") if len(state.to_compute) == 1 else ("them", "their")
        which = f"{len(cost.unknown)} of them" if cost.known else of
        click.echo(f"no estimate for {which}: no run of {kind} kind is finished")
    if state.searches and cost.known:
        click.echo(
            "the estimate assumes that runs of searches cost as much as their base config, and are neither "
            "pruned nor stored already"
        )


def _to_do(state: State) -> tuple[int, int]:
    """Return the greatest numbers of runs that are left to compute: those of trials, and others."""
    of_trials = sum(search.left * len(search.space.replicates()) for search in state.searches)
    return of_trials - sum(state.stored_of_trials), len(state.to_compute) - of_trials


def _open_in_words(state: State) -> str:
    """Return which methods have no runs yet, since their configuration is not chosen; empty if all have."""
    waiting = []
    for tuned in state.tuned:
        if tuned.to_report is not None:
            waiting += [choice.method or tuned.space.name for choice in tuned.choices if choice.state == "open"]
    return f"; configuration of {listed(waiting)} not chosen yet" if waiting else ""


def _to_do_in_words(state: State) -> str:
    """Return the number of runs that are left to compute, those of searches apart."""
    of_trials, others = _to_do(state)
    parts = [f"{of_trials:,} of trials"]
    if others:
        what = f"to report{_reported_in_words(state, others)}" if state.tuned else "of grids"
        parts.append(f"{others:,} {what}")
    stored = sum(state.stored_of_trials)
    there = f"; the store has {several(stored, 'run')} of trials already" if stored else ""
    return f"up to {several(of_trials + others, 'run')} to do: {', '.join(parts)}{there}"


def _reported_in_words(state: State, runs: int) -> str:
    """Return what makes all the runs to report, as in " (3 configurations x 5 folds x 2 seeds)"; else nothing."""
    if len(state.tuned) != 1 or state.plan.of("pending", "waiting"):
        return ""
    to_report = state.tuned[0].to_report
    if to_report is None:
        return ""
    replicates: list[dict[str, Any]] = []
    for request in to_report.requests():
        replicate = {name: getattr(request.config, name) for name in (*SPLIT_AXES, "seed")}
        if replicate not in replicates:
            replicates.append(replicate)
    configurations, rest = divmod(runs, len(replicates))
    if rest or len(replicates) < 2:
        return ""
    return f" ({several(configurations, 'configuration')} x {replicates_in_words(replicates)})"


def plan_as_data(facts: Facts) -> dict[str, Any]:
    """Return the plan as data: counts, searches, and hours of a core or GPU for pending runs."""
    state, plan, cost = facts.state, facts.state.plan, facts.cost
    of_trials, others = (0, 0) if state.on_other_data else _to_do(state)
    stored = sum(state.stored_of_trials)
    return {
        "asked": len(plan.asked),
        "cells_and_seeds": plan.cells_and_seeds,
        **{state: plan.count_asked(state) for state in ("finished", "failed")},
        "pending": plan.count_asked("pending", "waiting"),
        "first": [{"run_id": run.run_id, "status": run.state} for run in plan.first],
        "without_kept": plan.without_kept,
        "to_do": {"runs": of_trials + others, "of_trials": of_trials, "others": others, "stored": stored},
        "unprepared": state.unprepared,
        "unprepared_because": _unprepared_in_words(state),
        "changed_code": facts.changed,
        "launch_refused": state.on_other_data,
        "may_be_refused": state.may_be_refused,
        "store_exists": state.asked.store.files.is_there(),
        "searches": [search_as_data(it) for it in state.searches],
        "tuned": tuned_as_data(facts.tuned),
        "estimate": None if cost is None or not cost.known else _cost_as_data(cost, facts.resources),
        "device": facts.device,
        "runs_estimated": cost.known if cost else 0,
        "runs_without_estimate": len(cost.unknown) if cost else 0,
    }


def _cost_as_data(cost: CostEstimate, resources: Resources) -> dict[str, Any]:
    """Return an estimate as data: hours, what they are computed from, and wall-clock hours on this machine."""
    hours = _hours(cost, resources)
    return {
        **{name: getattr(cost, name) for name in ("hours", "longest")},
        "core_hours": hours.get("core"),
        "gpu_hours": hours.get("GPU"),
        "devices": sorted(cost.devices),
        "wall_clock_hours": _wall_clock(cost, resources),
        "finished_runs": cost.finished,
        "finished_runs_of_other_data": cost.other_data,
    }


def say_first(plan: Plan) -> None:
    """Print the number of runs that are needed only for the task order of others, and whether one of them failed."""
    if again := plan.without_kept:
        are, they = ("is", "it is") if again == 1 else ("are", "they are")
        click.echo(f"{several(again, 'run')} {are} finished without what --keep asks for; {they} computed again")
    failed = sum(run.state == "failed" for run in plan.first)
    if left := len(plan.first) - failed:
        come, whose = ("comes", "its") if left == 1 else ("come", "their")
        click.echo(f"{several(left, 'run')} not requested {come} first: {whose} s decides the task order of others")
    if failed:
        has, them = ("has", "it") if failed == 1 else ("have", "them")
        click.echo(
            f"{several(failed, 'run')} not requested {has} failed, and the task order of others waits for "
            f"{them}; --retry failed runs {them} again"
        )


def say_cost(state: State, to_do: Sequence[PlannedRun], resources: Resources) -> None:
    """Print the cost of the runs that are about to start, if it is known for all of them."""
    try:
        cost = _estimated(state, to_do, resources)
    except DamagedStore as error:  # a damaged part hides finished runs from the estimate, nothing else
        click.echo(f"no estimate: {error}", err=True)
        return
    if cost.known and not cost.unknown:
        click.echo(_in_words(cost, resources))


def _estimated(state: State, pending: Sequence[PlannedRun], resources: Resources) -> CostEstimate:
    """Estimate the cost of runs from finished ones."""
    from clops_sweep.planning.costs import estimate

    device = "cuda" if resources.gpus_per_trial else None
    data = state.resolved.data

    def present(dataset: str) -> str | None:
        return "prepared from other files" if data.is_outdated(dataset) else data.prepared_hash(dataset)

    return estimate(pending, state.plan.of("finished"), state.resolved.store, device, cache(present))


def _hours(cost: CostEstimate, resources: Resources) -> dict[str, float]:
    """Return GPU-hours and core-hours by unit."""
    if len(cost.devices) > 1:
        return {"core- or GPU": cost.hours}
    found = {"core": cost.hours * resources.cpus_per_trial}
    if cost.devices <= {"cuda"}:
        found = {"GPU": cost.hours * (resources.gpus_per_trial or 1), **found}
    return found | ({"GPU": 0.0} if cost.devices <= {"cpu"} else {})


def _in_words(cost: CostEstimate, resources: Resources) -> str:
    """Describe the cost, wall-clock time on this machine, and the basis of the estimate."""
    (unit, hours), *others = ((unit, hours) for unit, hours in _hours(cost, resources).items() if hours)
    scale, time = (1, "hours") if hours >= _FEW_HOURS else (3600, "seconds")
    words = f"about {_number(scale * hours)} {unit}-{time}"
    words += "".join(f" and {_number(scale * more)} {of}-{time}" for of, more in others)
    by_clock = _wall_clock(cost, resources)
    if by_clock is not None:
        where = f"on {several(_each_of(unit, resources)[1], unit)}"
        if resources.workers == "this process":
            where = "in one process"
        words += f", {_clock(by_clock)} of wall-clock time {where} without other load"
    words += f"; from {several(cost.finished, 'finished run')} of the same kind"
    if cost.other_data:
        which = "" if cost.other_data == cost.finished else f", {cost.other_data} of them"
        words += f"{which} on another edition of the data, with perhaps more or fewer tasks and people"
    return words


def _each_of(unit: str, resources: Resources) -> tuple[float, int]:
    """Return how many GPUs or cores a trial takes, and how many this machine has."""
    if unit == "GPU":
        return resources.gpus_per_trial or 1, len(usable_gpus())
    return resources.cpus_per_trial, available_cores()


def _wall_clock(cost: CostEstimate, resources: Resources) -> float | None:
    """Return the hours that the runs take on this machine without other load; None if they are not known."""
    units = [unit for unit, hours in _hours(cost, resources).items() if hours]
    if not units or len(cost.devices) != 1:
        return None
    each, there = _each_of(units[0], resources)
    if not there:
        return None
    at_once = 1 if resources.workers == "this process" else max(1, int(there / each))
    return max(cost.hours / at_once, cost.longest)  # no sweep is faster than its longest run


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.2g}"


def _clock(hours: float) -> str:
    seconds = round(3600 * hours)
    if seconds < 100:
        return f"{max(1, seconds)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"
