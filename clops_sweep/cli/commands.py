"""All subcommands of `clops-sweep`, and the implementation of `plan` and `status`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from typing import Any

import click
from click.shell_completion import CompletionItem

from clops_sweep.cli.check import check
from clops_sweep.cli.checklist import checklist
from clops_sweep.cli.claims import claims
from clops_sweep.cli.dashboard import dashboard
from clops_sweep.cli.data import data
from clops_sweep.cli.doctor import doctor
from clops_sweep.cli.export import export
from clops_sweep.cli.group import SectionedGroup
from clops_sweep.cli.launch import launch
from clops_sweep.cli.logs import logs
from clops_sweep.cli.new import new
from clops_sweep.cli.options import cpus_option, device_option, gpus_option, json_option, print_json
from clops_sweep.cli.plan import Facts, away_in_words, counts, plan_as_data, print_plan, say_plan
from clops_sweep.cli.report import report
from clops_sweep.cli.request_options import request_options
from clops_sweep.cli.rerun import rerun
from clops_sweep.cli.rewrite import delete, merge
from clops_sweep.cli.runs import runs
from clops_sweep.cli.search import studies_in_words, study_counts
from clops_sweep.cli.show import show
from clops_sweep.cli.update_report import update_report
from clops_sweep.errors import UsageError, several, shown
from clops_sweep.experiment.limits import Device
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.launches import UnderWay, runs_under_way
from clops_sweep.store.rows import printable, reason_of

_SECONDS_BETWEEN_LOOKS, _SECONDS_BETWEEN_LOOKS_ELSEWHERE = 3.0, 15.0
_RUNNING_SHOWN = 20


class _LaunchByDefault(SectionedGroup):
    """`clops-sweep SPACE.py` is `clops-sweep launch SPACE.py`."""

    @property
    def sections(self) -> Mapping[str, Iterable[click.Command]]:
        """Return all commands by section."""
        return SECTIONS

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; `launch` if the first argument is a search-space file."""
        return super().resolve_command(ctx, ["launch", *args] if args[0].endswith(".py") else args)

    def unknown(self, name: str) -> str:
        """Return the beginning of the sentence about an unknown command."""
        return f"{shown(name)} is neither a search-space file (*.py) nor a subcommand"

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete subcommands and search-space files."""
        return super().shell_complete(ctx, incomplete) or [CompletionItem(incomplete, type="file")]


@click.group(cls=_LaunchByDefault, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="clops-sweep")
def command() -> None:
    """Sweeps of whole continual-learning runs.

    \b
    clops-sweep SPACE.py [options]   run all requested runs that are not finished

    A search-space file is Python code that is executed: run only files that you trust.
    """  # noqa: D301


@click.command("plan")
@request_options(keep=True)
@cpus_option
@gpus_option
@device_option
@json_option
def plan_command(request: Request, cpus_per_trial: float, gpus_per_trial: float, device: Device, as_json: bool) -> None:
    """Count finished, pending and failed runs and estimate the cost. Nothing is started.

    Patient splits of prepared data that are not solved yet are solved and cached with the data. Of declared data that
    are not prepared, the table is read and its columns are checked; small arrays are checked as a launch does.
    """
    from clops_sweep.execution.jobs import Resources

    resources = Resources(cpus_per_trial=cpus_per_trial, gpus_per_trial=gpus_per_trial, device=device)
    print_plan(request, resources, as_json)


@click.command()
@request_options(required=False)
@click.option(
    "--watch",
    is_flag=True,
    help="Print the report again at every change, until no run is pending.",
)
@json_option
def status(request: Request, watch: bool, as_json: bool) -> None:
    """Report the progress of a sweep, read from the store. The sweep may be running on another machine.

    Without a search-space file, it covers all launches that the store remembers.
    """
    if watch and as_json:
        raise UsageError("--watch and --json are both given; expected one of them")
    if watch:
        _watch(request)
    else:
        _say_status(request, as_json)


def _watch(request: Request) -> None:
    """Print the progress of a sweep at every change, until none of its runs is pending."""
    seconds = _SECONDS_BETWEEN_LOOKS if request.store.files.local else _SECONDS_BETWEEN_LOOKS_ELSEWHERE
    is_terminal, before = sys.stdout.isatty(), ""
    while True:
        with redirect_stdout(StringIO()) as said:
            pending = _say_status(request)
        if (text := said.getvalue()) != before:
            if is_terminal:
                click.clear()
            click.echo(text, nl=False)
            before = text
        if not pending:
            return
        time.sleep(seconds)


def _say_status(request: Request, as_json: bool = False) -> bool:
    """Print the progress of a sweep, or of all launches; return whether runs are pending, True if none is known."""
    names: dict[str, str] = {}
    data: dict[str, Any] = {}
    pending = True
    checkpointed = set[str]()
    request.data.solve_splits(config.data_key for config in request.selection.configs)
    request.check_samplers()
    state = State.of(request, launched=True)
    request = state.resolved
    if request.selection.files:
        plan = state.plan
        facts = Facts.of(state)
        pending = bool(state.to_compute)
        if as_json:
            data = plan_as_data(facts)
        else:
            say_plan(facts)
        names = {str(run.run_id): f"{run.name}, seed {run.config.seed}" for run in plan.of("failed")}
        failed = sorted(state.failed)
        checkpointed = state.checkpointed
    else:
        request.store.files.check_is_there()
        states = request.store.statuses()
        failed = sorted(run_id for run_id, state in states.items() if state == "failed")
        try:
            searches = study_counts(request.store)
        except UsageError as error:  # the runs are intact
            searches = {}
            click.echo(f"clops-sweep: {printable(str(error))}", err=True)
        trials = [{"name": name, **found} for name, found in searches.items()]
        data = {"finished": len(states) - len(failed), "failed": len(failed), "searches": trials}
        if not as_json:
            finished = several(len(states) - len(failed), "run")
            click.echo(f"{finished} finished, {len(failed)} failed in {request.store.files.shown}")
            for line in studies_in_words(searches):
                click.echo(line)
        launched = {it.name: State.of(replace(request, selection=Selection((it,)))) for it in request.selection.given}
        checkpointed = checkpointed.union(*(of_space.checkpointed for of_space in launched.values()))
        plans = {name: of_space.plan for name, of_space in launched.items()}
        for name, plan in plans.items():
            names |= {str(run.run_id): f"{run.name}, seed {run.config.seed}" for run in plan.of("failed")}
            if not as_json:
                of_space = launched[name]
                away = "".join(f"; data set {it} {away_in_words(of_space, it)}" for it in plan.unprepared)
                click.echo(f"{name}: {counts(plan)}{away}")
        data["launched"] = [
            {
                "name": name,
                "asked": len(it.asked),
                "finished": it.count_asked("finished"),
                "failed": it.count_asked("failed"),
            }
            for name, it in plans.items()
        ]
        pending = not plans or any(it.count_asked("pending", "waiting") for it in plans.values())
    rows = request.store.rows("runs", ["run_id", "status", "reason", "error"], failed) if failed else []
    reasons = {row["run_id"]: reason_of(row) for row in rows if row["status"] == "failed"}
    running = runs_under_way(request.store)
    checkpointed -= {run.run_id for run in running}
    if as_json:
        listed = [{"run_id": it, "name": names.get(it), "reason": reason} for it, reason in reasons.items()]
        going = [_running_as_data(it) for it in running]
        more = {"failed_runs": listed, "running": going, "checkpointed": len(checkpointed)}
        print_json(data | {"results": request.store.files.shown, **more})
        return pending
    if checkpointed:
        click.echo(_checkpointed_in_words(len(checkpointed)))
    for it in running[:_RUNNING_SHOWN]:
        click.echo(f"  running {printable(_running_in_words(it))}")
    if len(running) > _RUNNING_SHOWN:
        click.echo(f"  and {len(running) - _RUNNING_SHOWN} more")
    for run_id, reason in reasons.items():
        click.echo(f"  failed {run_id}: {reason}" + (f"  ({names[run_id]})" if run_id in names else ""))
    if reasons:
        click.echo(f"print the output of a run with: {request.store.command('logs', 'RUN_ID')}")
    return pending


def _checkpointed_in_words(runs: int) -> str:
    if runs == 1:
        return "1 pending run continues from its checkpoint"
    return f"{runs:,} pending runs continue from their checkpoints"


def _running_in_words(run: UnderWay) -> str:
    from clops_sweep.execution.display.display_lines import at, time_left

    where = at(run.progress) if run.progress else "starting"
    left = f", {time_left(run.ends_at - time.time())}" if run.ends_at else ""
    return f"{run.name}: {where}{left}"


def _running_as_data(run: UnderWay) -> dict[str, Any]:
    left = round(max(0.0, run.ends_at - time.time()), 1) if run.ends_at else None
    data: dict[str, Any] = {"run_id": run.run_id, "name": run.name}
    for count in ("task", "tasks", "epoch", "epochs"):
        data[count] = getattr(run.progress, count, 0)
    return {**data, "seconds_left": left}


SECTIONS: Mapping[str, Sequence[click.Command]] = {
    "Run": (new, plan_command, launch, status, logs),
    "Results": (runs, report, dashboard, show, claims, checklist, update_report, rerun, export),
    "Data and machine": (data, doctor),
    "Store": (check, merge, delete),
}
"""All commands by heading in the help."""

for _commands in SECTIONS.values():
    for _command in _commands:
        command.add_command(_command)
