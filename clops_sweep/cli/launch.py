"""`clops-sweep SPACE.py`: launches, resumes, extends and retries."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clops_sweep.cli.options import (
    EXIT_FAILED,
    EXIT_FINISHED,
    EXIT_INTERRUPTED,
    Ended,
    NotEmpty,
    Number,
    Parsed,
    cpus_option,
    device_option,
    gpus_option,
    json_option,
    print_json,
)
from clops_sweep.cli.plain_table import TERMINAL, print_table
from clops_sweep.cli.plan import counts, kinds_in_words, networks_in_words, print_plan, say_cost, say_first
from clops_sweep.cli.report import render_unless_drawn
from clops_sweep.cli.request_options import launch_command, report_command, request_options
from clops_sweep.cli.search import print_searches, print_tuned, search_as_data, tuned_as_data, tuned_rows
from clops_sweep.cli.task_counts import say_tasks
from clops_sweep.cli.warned import warned
from clops_sweep.errors import UsageError, masked, several
from clops_sweep.execution.launch import launch as launched
from clops_sweep.execution.outcome import Outcome
from clops_sweep.experiment.limits import OF_RESOURCES, Device, seconds_in
from clops_sweep.experiment.spaces.space_files import criteria_beside
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.planning.task_tables import task_tables
from clops_sweep.store.launch_folders import update_report_command
from clops_sweep.store.rows import printable, shortest

if TYPE_CHECKING:
    from clops_sweep.analysis.claims.verdicts import Verdict
    from clops_sweep.analysis.tables.best_terminal import BestOfSpace
    from clops_sweep.analysis.tables.tuning import TunedMethod

_MOST_BEST = 4
"""Most search spaces whose best configurations are printed."""


@click.command()
@request_options(keep=True)
@click.option(
    "--address",
    type=NotEmpty(),
    metavar="HOST:PORT",
    help="Attach to a Ray cluster (auto or HOST:PORT) instead of starting one here.",
)
@click.option("--ray", is_flag=True, help="Start Ray even if the runs would end sooner in this process.")
@click.option("--no-ray", is_flag=True, help="Compute in this process without Ray, one run after another.")
@cpus_option
@gpus_option
@device_option
@click.option(
    "--nice",
    type=Number(OF_RESOURCES["nice"]),
    default=0,
    show_default=True,
    help="Niceness of workers; on a shared machine, 10 gives other processes priority.",
)
@click.option(
    "--max-retries",
    type=Number(OF_RESOURCES["max_retries"]),
    default=2,
    show_default=True,
    help="Retries of a run that raised an error or whose worker died.",
)
@click.option(
    "--checkpoint-every",
    type=Number(OF_RESOURCES["checkpoint_every"]),
    default=0,
    metavar="EPOCHS",
    help="Also checkpoint each time that a task has trained this many epochs. Without it, a run checkpoints every 15 "
    "seconds (60 on S3), and after tasks of 2 seconds or more.",
)
@click.option(
    "--epoch-timeout",
    type=Number(OF_RESOURCES["epoch_timeout"]),
    metavar="SECONDS",
    help="Fail a run if an epoch takes longer.",
)
@click.option("--retry", type=click.Choice(["failed"]), help="Run failed runs again.")
@click.option(
    "--observe",
    multiple=True,
    type=NotEmpty(),
    metavar="NAME[:TARGET]",
    help="Send results of epochs, tasks and runs to tensorboard, mlflow, wandb or an observer that the file declares. "
    "Repeatable.",
)
@click.option(
    "--stop-after",
    type=Parsed("duration", seconds_in),
    metavar="DURATION",
    help="Write checkpoints and stop after this time, such as 3h55m, as on SIGTERM.",
)
@click.option(
    "--stop-status",
    type=click.IntRange(1, 255),
    default=EXIT_INTERRUPTED,
    show_default=True,
    help="Exit status of a launch that is interrupted or stopped by --stop-after.",
)
@click.option("--dry-run", is_flag=True, help="Only print what the command plan prints.")
@click.option("--no-report", is_flag=True, help="Do not render the report at the end.")
@json_option
def launch(
    request: Request,
    address: str | None,
    ray: bool,
    no_ray: bool,
    cpus_per_trial: float,
    gpus_per_trial: float,
    device: Device,
    nice: int,
    max_retries: int,
    checkpoint_every: int,
    epoch_timeout: float | None,
    retry: str | None,
    observe: tuple[str, ...],
    stop_after: float | None,
    stop_status: int,
    dry_run: bool,
    no_report: bool,
    as_json: bool,
) -> None:
    """Run all requested runs that are not finished (the default command)."""
    from clops_sweep.execution.display.live import SweepDisplay
    from clops_sweep.execution.jobs import Resources, workers_asked

    if ray and no_ray:
        raise click.UsageError("--ray and --no-ray are both given; expected one of them")
    asked = False if no_ray else ray or None
    resources = Resources(
        *(address, cpus_per_trial, gpus_per_trial, max_retries, checkpoint_every, epoch_timeout, observe),
        workers=workers_asked(asked),
        device=device,
        nice=nice,
    )
    if dry_run:
        print_plan(request, resources, as_json)
        return

    def starting(state: State, runs: Sequence[PlannedRun], resources: Resources) -> None:
        from clops_sweep import native

        chosen = native.available() or os.environ.get(native.ENVIRONMENT) == "off"
        if not (address or resources.gpus_per_trial or chosen):
            click.echo(f"clops-sweep: {native.why_missing()}", err=True)
        say_first(state.plan)
        say_tasks(task_tables(state.resolved.selection.configs, request.data))
        sentences = kinds_in_words(state.plan)
        if not resources.gpus_per_trial:
            sentences += networks_in_words(state)
        for sentence in sentences:
            click.echo(sentence)
        say_cost(state, runs, resources)

    stop_at = None if stop_after is None else time.monotonic() + stop_after
    report = None
    with redirect_stdout(sys.stderr) if as_json else nullcontext(), warned():
        try:
            outcome = launched(
                request,
                resources,
                partial(SweepDisplay, request.store.command("status"), stop_at),
                retry_failed=retry is not None,
                starting=starting,
                warn=lambda text: click.echo(f"clops-sweep: {text}", err=True),
            )
        except KeyboardInterrupt:  # interrupted while data were prepared
            click.echo("interrupted", err=True)
            raise Ended(stop_status) from None
        tuned = [] if outcome.stopped else tuned_rows(outcome.state)
        best = _best(outcome)
        decided = _verdicts(outcome)
        _say_outcome(request, outcome, best, tuned, decided)
        if not (no_report or request.shard or outcome.interrupted or outcome.stopped):
            try:
                state = outcome.state if outcome.part == "all" else State.of(request)
                report = render_unless_drawn(state, tuned)
                click.echo(f"report: {report}")
            except UsageError as error:  # the results are complete; the report can be made later
                click.echo(f"clops-sweep: no report: {error}", err=True)
            except KeyboardInterrupt:
                click.echo(f"interrupted: every run is stored; draw the report with: {report_command(request)}")
                raise Ended(stop_status) from None
    if as_json:
        more: dict[str, Any] = {"best": _best_as_data(best), "claims": _claims_as_data(decided), "report": report}
        more["resume"] = resume_command(sys.argv[1:])
        print_json(_as_data(outcome, tuned) | more)
    if outcome.interrupted:
        raise Ended(stop_status)
    raise Ended(EXIT_FINISHED if outcome.complete else EXIT_FAILED)


def _as_data(outcome: Outcome, tuned: Sequence[TunedMethod]) -> dict[str, Any]:
    """Return the outcome of a launch as data."""
    return {
        "results": outcome.store.files.shown,
        "complete": outcome.complete,
        "part": outcome.part,
        **{name: getattr(outcome, name) for name in ("interrupted", "stopped", "ran", "under_way", "checkpointed")},
        "asked": len(outcome.plan.asked),
        **outcome.counts,
        "failures": {} if outcome.stopped else outcome.failures,
        "searches": [search_as_data(it) for it in outcome.searches],
        "tuned": tuned_as_data(tuned),
        "changed_code": list(outcome.changed_code),
    }


def _best(outcome: Outcome) -> list[BestOfSpace]:
    """Return the best configurations of each search space, unless the launch was interrupted or stopped."""
    if outcome.interrupted or outcome.stopped or not outcome.plan.count_asked("finished"):
        return []
    from clops_sweep.analysis.tables.best_terminal import best_of_state

    try:
        return best_of_state(outcome.state)
    except UsageError as error:  # as folds and random splits in one search space, which the report refuses, too
        click.echo(f"clops-sweep: best configurations: {error}", err=True)
        return []


def _best_as_data(best: Sequence[BestOfSpace]) -> list[dict[str, object]]:
    if not best:
        return []
    from clops_sweep.analysis.tables.best_terminal import best_as_data

    return best_as_data(best)


def _verdicts(outcome: Outcome) -> list[Verdict]:
    """Return the verdicts on the claims of the files, unless the launch was of a part of the runs, or stopped."""
    request = outcome.state.asked
    selection = request.selection
    is_part = bool(request.shard or selection.limit or selection.where) or outcome.part != "all"
    if is_part or outcome.interrupted or outcome.stopped or not selection.claims:
        return []
    from clops_sweep.analysis.report.claims_frame import verdicts_of

    try:
        return verdicts_of(outcome.state, record=True)
    except UsageError as error:  # the report refuses it, too
        click.echo(f"clops-sweep: claims: {error}", err=True)
        return []


def _claims_as_data(verdicts: Sequence[Verdict]) -> list[dict[str, object]]:
    if not verdicts:
        return []
    from clops_sweep.analysis.report.claims_section import claims_as_data

    return claims_as_data(verdicts)


def _say_claims(outcome: Outcome, verdicts: Sequence[Verdict]) -> None:
    """Print the first verdicts as the report does, a line for each, and the command that lists more."""
    if not verdicts:
        return
    from clops_sweep.analysis.report.claims_section import MOST_IN_HEADLINE, claims_in_words
    from clops_sweep.planning.claim_seal import seal_in_words

    files = len(outcome.state.asked.selection.claims_by_file)
    for line in claims_in_words(verdicts, seal_in_words(outcome.state), files=files):
        click.echo(printable(line))
    if len(verdicts) > MOST_IN_HEADLINE:
        click.echo(f"list all claims with: {launch_command(outcome.state.asked, command='claims')}")


def _say_best(outcome: Outcome, best: Sequence[BestOfSpace]) -> None:
    """Print the best configurations, a table for each search space, and the command that lists all runs.

    Of a single run, only what is in doubt.
    """
    if outcome.plan.count_asked("finished") == 1:
        for of_space in best:
            for sentence in of_space.in_doubt:
                click.echo(printable(sentence))
        return
    if not best:
        return
    from clops_sweep.analysis.tables.best_terminal import notes_on_all, terminal_table

    digits = shortest([str(run.run_id) for run in outcome.plan.of("finished")])
    for of_space in best[:_MOST_BEST]:
        table = terminal_table(of_space, digits)
        click.echo(printable(table.title))
        texts = [list(map(printable, row)) for row in table.rows]
        print_table(table.header, texts, wrapped=table.header[:1], numbers=table.numbers, width=TERMINAL)
        for note in table.notes:
            click.echo(printable(note))
    for note in notes_on_all(best[:_MOST_BEST]):
        click.echo(printable(note))
    if len(best) > _MOST_BEST:
        click.echo(f"and {several(len(best) - _MOST_BEST, 'search space')} more, in the report")
    click.echo(f"list runs with: {outcome.state.resolved.store.command('runs')}")


def _say_update_report(outcome: Outcome, best: Sequence[BestOfSpace]) -> None:
    """Print the command of the update report of a typical run of a method with predictions, if there is one.

    It is the method with the best score of validation people, because test people must not choose a model. A run that
    began from another one is compared with it if its model and predictions are stored. Else the report is over all
    folds if each of them has such a run.
    """
    if not best:
        return
    from clops_sweep.analysis.runs_of_folds import runs_to_pool
    from clops_sweep.analysis.stages import has_update, stored_origin
    from clops_sweep.analysis.tables.best_terminal import in_order_of_validation, proposed_in_words, run_near_mean

    store = outcome.state.resolved.store
    predicted = store.predicted()
    candidates = {}
    for of_space in best:
        for row in in_order_of_validation(of_space.rows):
            run_id = run_near_mean(row)
            if run_id in predicted:
                candidates[run_id] = proposed_in_words(row, of_space.rows)
    if not candidates:
        return
    rows = {row["run_id"]: row for row in store.rows("runs", run_ids=list(candidates))}
    origins = {run_id: stored_origin(store, row) for run_id, row in rows.items()}
    fitting = [run_id for run_id in candidates if origins[run_id] or has_update(store, run_id)]
    if fitting:
        words = _options_of_report(outcome.state.resolved)
        which = "a typical run"
        origin = origins[fitting[0]]
        of_folds = runs_to_pool(store, rows[fitting[0]], outcome.state.resolved.data)
        if origin is not None:
            words += ["--against", origin]
        elif of_folds and predicted.issuperset(of_folds):
            words.append("--folds")
            which = "all folds"
        report = update_report_command(store, fitting[0], *words)
        compared = "" if origin is None else ", against the run that it began from"
        click.echo(f"update report of {which} of {rows[fitting[0]]['strategy']}{compared}: {report}")
        if why := candidates[fitting[0]]:
            click.echo(printable(why))
        if "--criteria" not in words:
            click.echo(_without_criteria(outcome.state.resolved.selection.files))


def _without_criteria(files: Sequence[Path]) -> str:
    """Return a line on the file of acceptance criteria that the update report lacks."""
    names = [criteria_beside(file).name for file in files]
    beside = f" in {names[0]} beside the search-space file" if names else ""
    return f"this report judges nothing, because no acceptance criteria were found{beside}; add --criteria FILE"


def _options_of_report(request: Request) -> list[str]:
    """Return the criteria that lie beside a search-space file, and the subgroup columns of its data, as options."""
    words: list[str] = []
    files = [criteria_beside(file) for file in request.selection.files]
    there = [file for file in files if file.is_file()]
    if there:
        words += ["--criteria", str(there[0])]
    datasets = dict.fromkeys(config.dataset for config in request.selection.configs)
    groups = request.data.group_names(next(iter(datasets))) if len(datasets) == 1 else ()
    if groups:
        words += ["--groups", ",".join(groups)]
    return words


def _say_outcome(
    request: Request,
    outcome: Outcome,
    best: Sequence[BestOfSpace],
    tuned: Sequence[TunedMethod],
    decided: Sequence[Verdict],
) -> None:
    """Print the outcome, and the command that continues if the launch did not complete."""
    resume = resume_command(sys.argv[1:])
    if outcome.interrupted:
        if outcome.plan.asked:
            click.echo(counts(outcome.plan))
        print_searches(outcome.searches, outcome.tuned, is_interrupted=True)
        if outcome.under_way:
            click.echo(_interrupted_in_words(outcome.under_way, outcome.checkpointed))
        click.echo(f"interrupted; resume with: {resume}")
        return
    if outcome.stopped:
        click.echo(f"clops-sweep: stopped: {outcome.stopped}; once this is fixed, resume with: {resume}", err=True)
        return
    plan = outcome.plan
    if plan.asked:
        if not outcome.ran:
            say_first(plan)
        idle = "" if outcome.ran else "nothing can be done: " if plan.of("waiting") else "nothing is pending: "
        click.echo(f"{idle}{counts(plan)}")
    _say_best(outcome, best)
    print_tuned(tuned)
    print_searches(outcome.searches, outcome.tuned)
    _say_claims(outcome, decided)
    if plan.count_asked("failed"):
        options = "" if "--retry" in sys.argv else " --retry failed"
        click.echo(f"run the failed runs again with: {resume}{options}")
    _say_update_report(outcome, best)
    click.echo(f"results: {request.store.files.shown}")


def resume_command(arguments: Sequence[str]) -> str:
    """Return the command line that continues a launch, without the password of a store."""
    return shlex.join(["clops-sweep", *map(masked, arguments)])


def _interrupted_in_words(runs: int, checkpointed: int) -> str:
    """Describe what happens to the runs that were running when the launch was interrupted."""
    parts = []
    if checkpointed:
        parts.append("continues from its checkpoint" if checkpointed == 1 else "continue from their checkpoints")
    if anew := runs - checkpointed:
        parts.append(f"{'begins' if anew == 1 else 'begin'} anew, since no checkpoint exists yet")
    if len(parts) > 1:
        parts = [f"{count} {words}" for count, words in zip((checkpointed, anew), parts, strict=True)]
    return f"{several(runs, 'run')} interrupted: {'; '.join(parts)}"
