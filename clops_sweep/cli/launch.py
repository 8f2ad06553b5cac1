"""`clops-sweep SPACE.py`: launch, resume, extend and retry at once."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import click

from clops_sweep.cli.asked import Asked
from clops_sweep.cli.asks import asks
from clops_sweep.cli.options import EXIT_FAILED, EXIT_FINISHED, EXIT_INTERRUPTED, NotEmpty, Share
from clops_sweep.cli.plan import counts, say_cost, say_first, say_plan
from clops_sweep.cli.report import render
from clops_sweep.cli.search import all_ended, check_searches, print_searches, run_searches
from clops_sweep.errors import BadInput, StoreError
from clops_sweep.machine import check_gpu
from clops_sweep.planning.plan import Plan, PlannedRun
from clops_sweep.store.rows import storing

if TYPE_CHECKING:
    from clops_sweep.sweep.jobs import Resources


@click.command()
@asks()
@click.option(
    "--address",
    type=NotEmpty(),
    metavar="HOST:PORT",
    help="Attach to a Ray cluster (auto or HOST:PORT) instead of starting one here.",
)
@click.option("--cpus-per-trial", type=Share("CPUs"), default=1, show_default=True)
@click.option("--gpus-per-trial", type=Share("GPUs"), default=0, show_default=True, help="May be a fraction.")
@click.option(
    "--stack", default="auto", show_default=True, metavar="N|auto", help="Runs trained in lockstep in a trial."
)
@click.option("--max-retries", type=click.IntRange(min=0), default=2, show_default=True)
@click.option("--checkpoint-every", type=click.IntRange(min=0), default=0, metavar="EPOCHS", help="Beside task ends.")
@click.option("--retry", type=click.Choice(["failed"]), help="Take up failed runs again.")
@click.option("--dry-run", is_flag=True, help="The same as plan.")
@click.option("--no-report", is_flag=True, help="Do not render the report afterwards.")
def launch(
    asked: Asked,
    address: str | None,
    cpus_per_trial: float,
    gpus_per_trial: float,
    stack: str,
    max_retries: int,
    checkpoint_every: int,
    retry: str | None,
    dry_run: bool,
    no_report: bool,
) -> None:
    """Run what is asked for and not yet finished (the default command)."""
    lockstep = _stack(stack)
    if dry_run:
        say_plan(asked, asked.plan(), cpus_per_trial=cpus_per_trial, gpus_per_trial=gpus_per_trial)
        return
    _ = asked.configs  # whatever is wrong with them is said before anything is written
    if address:
        from clops_sweep.sweep.cluster_address import running_cluster

        address = running_cluster(address)
    elif gpus_per_trial:
        check_gpu("--gpus-per-trial")
    asked.store.open_for_writing()
    asked.prepare()
    check_searches(asked)
    plan = asked.plan()
    resume = shlex.join(["clops-sweep", *sys.argv[1:]])

    def interrupted() -> NoReturn:
        click.echo(f"interrupted; resume with: {resume}")
        sys.exit(EXIT_INTERRUPTED)

    def stopped(error: Exception) -> NoReturn:
        click.echo(f"clops-sweep: stopped: {error}; once that is mended, resume with: {resume}", err=True)
        sys.exit(EXIT_FAILED)

    def resources() -> Resources:
        from clops_sweep.sweep.jobs import Resources

        return Resources(address, cpus_per_trial, gpus_per_trial, lockstep, max_retries, checkpoint_every)

    pending, ran = _to_do(plan, retry), False
    if pending:
        # Ray is imported here and not before: everything a user can get wrong has been looked at by now.
        frames = asked.frames([run.config for run in pending])
        from clops_sweep import native
        from clops_sweep.sweep.display import SweepDisplay
        from clops_sweep.sweep.driver import run_sweep

        if not (address or gpus_per_trial or native.available()):
            click.echo(f"clops-sweep: {native.NOT_BUILT}", err=True)
        say_first(plan)
        say_cost(asked, plan, pending, cpus_per_trial=cpus_per_trial, gpus_per_trial=gpus_per_trial)
        rounds, total = _rounds(asked, pending, retry), len(pending) + len(plan.of("waiting"))
        at_once = False
        with SweepDisplay(asked.varying) as display:
            try:
                run_sweep(rounds, total, frames, asked.store, asked.work_folder, resources(), display)
                with storing(asked.store):
                    plan = asked.plan()
            except KeyboardInterrupt:
                at_once = True
            except (StoreError, OSError) as error:
                stopped(error)
        ran = True
        if at_once or (display.interrupted and (plan.of("pending", "waiting") or not all_ended(asked))):
            interrupted()
    if asked.requests:
        if not ran:
            say_first(plan)
        idle = "nothing can be done" if plan.of("waiting") else "nothing is pending"
        click.echo(counts(plan) if ran else f"{idle}: {counts(plan)}")
        if not ran and plan.count("failed"):
            click.echo("--retry failed takes up again what has failed")
    if asked.searches:
        try:
            searched = run_searches(asked, resources, retry is not None)
        except (StoreError, OSError) as error:
            stopped(error)
        if searched is None:
            interrupted()
        print_searches(asked)
        ran = ran or searched
    click.echo(f"results: {asked.store.files.shown}")
    if not no_report:
        try:
            render(asked, asked.report_folder, keep=not ran)
        except BadInput as error:  # what has been asked for is there; the report can be had later
            click.echo(f"clops-sweep: no report: {error}", err=True)
    complete = not plan.of("failed", "pending", "waiting") and all_ended(asked)
    sys.exit(EXIT_FINISHED if complete else EXIT_FAILED)


def _to_do(plan: Plan, retry: str | None) -> list[PlannedRun]:
    return plan.of("pending", "failed") if retry else plan.of("pending")


def _rounds(asked: Asked, pending: list[PlannedRun], retry: str | None) -> Iterator[list[PlannedRun]]:
    """What is to run; whenever that has run, what could not be asked for before. Nothing is tried a second time."""
    tried: set[str | None] = set()
    while pending:
        yield pending
        tried |= {run.run_id for run in pending}
        with storing(asked.store):
            pending = [run for run in _to_do(asked.plan(), retry) if run.run_id not in tried]


def _stack(text: str) -> int | None:
    if text == "auto":
        return None
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise BadInput(f"--stack {text!r}: expected a number from 1, or auto")
    return int(text)
