"""The command `clops-sweep`: parses, prints, exits. What it says is the contract with the user's scripts."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from clops_sweep import native
from clops_sweep.asked import Asked
from clops_sweep.cli_data import data
from clops_sweep.cli_doctor import doctor
from clops_sweep.cli_options import NotEmpty, Share, data_root_option, prepared_root_option, results_option
from clops_sweep.cli_plan import counts, say_cost, say_first, say_plan
from clops_sweep.cli_runs import compact, rerun, show
from clops_sweep.cli_search import (
    all_ended,
    check_searches,
    failed_runs,
    print_searches,
    print_studies,
    run_searches,
)
from clops_sweep.errors import BadInput, StoreError
from clops_sweep.files import reason
from clops_sweep.gpus import check_gpu
from clops_sweep.plan import Plan, PlannedRun
from clops_sweep.recording import failure_reason, storing
from clops_sweep.space import SearchSpace, all_requests
from clops_sweep.standard_output import lenient_output, matters

if TYPE_CHECKING:
    from clops_sweep.cluster import Resources

EXIT_FINISHED, EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130


class _LaunchByDefault(click.Group):
    """`clops-sweep SPACE.py` is `clops-sweep launch SPACE.py`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            if not args[0].endswith(".py"):
                names = ", ".join(self.list_commands(ctx))
                raise click.UsageError(f"{args[0]!r} is neither a search-space file (*.py) nor one of: {names}")
            args = ["launch", *args]
        return super().resolve_command(ctx, args)


@click.group(cls=_LaunchByDefault, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="clops-sweep")
def command() -> None:
    """Sweeps of whole continual-learning runs.

    \b
    clops-sweep SPACE.py [options]   runs what is asked for and not yet finished

    A search-space file is Python and is executed: run only files that you trust.
    """  # noqa: D301


def _asks(required: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options that say which runs are asked for; the command gets them as one `Asked`."""
    options = [
        click.argument(
            "files",
            metavar="SPACE.py ..." if required else "[SPACE.py ...]",
            nargs=-1,
            required=required,
            type=click.Path(path_type=Path),
        ),
        results_option,
        data_root_option,
        prepared_root_option,
        click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Override the base config."),
        click.option("--seeds", type=click.IntRange(1, 100_000), help="Seeds 0 .. N-1 instead of the file's."),
        click.option("--limit", type=click.IntRange(min=1), help="Only the first N runs, or trials of a search."),
        click.option(
            "--where", type=NotEmpty(), metavar="EXPRESSION", help='Only runs such as "storage_fraction == 0.5".'
        ),
    ]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def with_asked(
            files: tuple[Path, ...],
            results: str,
            data_root: Path | None,
            prepared_root: Path | None,
            settings: tuple[str, ...],
            seeds: int | None,
            limit: int | None,
            where: str | None,
            **others: Any,
        ) -> None:
            from clops_sweep.data.prepare import default_prepared_root

            prepared = prepared_root or default_prepared_root()
            asked = Asked(files, results, data_root, prepared, settings, seeds, limit, where)
            for space in asked.left_out:
                click.echo(
                    f"left out: search space {space.name!r}, since the data set has no {space.base.scenario}", err=True
                )
            function(asked, **others)

        for option in reversed(options):
            with_asked = option(with_asked)
        return with_asked

    return decorate


@command.command()
@_asks()
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
        from clops_sweep.cluster_address import running_cluster

        address = running_cluster(address)
    elif gpus_per_trial:
        check_gpu()
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
        from clops_sweep.cluster import Resources

        return Resources(address, cpus_per_trial, gpus_per_trial, lockstep, max_retries, checkpoint_every)

    pending, ran = _to_do(plan, retry), False
    if pending:
        # Ray is imported here and not before: everything a user can get wrong has been looked at by now.
        frames = asked.frames([run.config for run in pending])
        from clops_sweep.display import SweepDisplay
        from clops_sweep.sweep import run_sweep

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
            _report(asked, asked.report_folder, keep=not ran)
        except BadInput as error:  # what has been asked for is there; the report can be had later
            click.echo(f"clops-sweep: no report: {error}", err=True)
    complete = not plan.of("failed", "pending", "waiting") and all_ended(asked)
    sys.exit(EXIT_FINISHED if complete else EXIT_FAILED)


@command.command("plan")
@_asks()
@click.option("--calibrate", is_flag=True, help="Measure kinds of runs of which none is finished; half a minute.")
@click.option("--cpus-per-trial", type=Share("CPUs"), default=1, show_default=True)
@click.option("--gpus-per-trial", type=Share("GPUs"), default=0, show_default=True, help="May be a fraction.")
def plan_command(asked: Asked, calibrate: bool, cpus_per_trial: float, gpus_per_trial: float) -> None:
    """Count the runs asked for, finished, pending and failed, and estimate what is left. Records nothing."""
    say_plan(asked, asked.plan(), cpus_per_trial=cpus_per_trial, gpus_per_trial=gpus_per_trial, measure=calibrate)


@command.command()
@_asks(required=False)
def status(asked: Asked) -> None:
    """Say how the sweep stands, from the store alone; also while it runs elsewhere."""
    if asked.files:
        plan = asked.plan()
        say_plan(asked, plan)
        failed = sorted({str(run.run_id) for run in plan.of("failed")} | failed_runs(asked))
    else:
        asked.store.files.check_is_there()
        states = asked.store.statuses()
        failed = sorted(run_id for run_id, state in states.items() if state == "failed")
        click.echo(f"{len(states) - len(failed)} runs finished, {len(failed)} failed in {asked.store.files.shown}")
        print_studies(asked.store)
    for row in asked.store.rows("runs", ["run_id", "status", "error"], failed) if failed else ():
        if row["status"] == "failed":
            click.echo(f"  failed {row['run_id']}: {failure_reason(row['error'])}")


@command.command()
@_asks(required=False)
@click.option("--axes", help="The two axes of the heatmaps, e.g. storage_fraction,acquisition_fraction.")
@click.option("--output", type=click.Path(path_type=Path), help="Folder of the report.")
def report(asked: Asked, axes: str | None, output: Path | None) -> None:
    """Render figures, tables and index.html from the store; also of an unfinished sweep.

    Without a search-space file: of everything in the store.
    """
    if asked.limit or asked.where:
        raise click.UsageError("a report shows whole search spaces: it takes neither --limit nor --where")
    if not asked.files and (asked.settings or asked.seeds):
        raise click.UsageError("--set and --seeds change what a search-space file asks for, and none is given")
    _ = asked.spaces  # a search-space file that is wrong is said first
    asked.store.files.check_is_there()
    _report(asked, output or asked.report_folder, keep=False, axes=_axes(axes))


for other in (compact, data, doctor, rerun, show):
    command.add_command(other)


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


def _axes(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(names) != 2:
        raise BadInput(f"--axes {text!r}: expected two names with a comma between them")
    return names


def _report(asked: Asked, folder: Path, *, keep: bool, axes: tuple[str, str] | None = None) -> None:
    """Renders the report, or says where it is if it may be kept as it is."""
    index = folder / "index.html"
    if not (keep and index.exists()):
        from analysis.report import write_report

        spaces = asked.resolved_spaces() if asked.files else _all_spaces(asked)
        configs = asked.configs if asked.files else [request.config for request in all_requests(spaces)]
        index = write_report(spaces, asked.store, folder, axes=axes, frames=asked.frames_at_hand(configs)).index
    click.echo(f"report: {index.resolve()}")


def _all_spaces(asked: Asked) -> list[SearchSpace]:
    from analysis.whole_store import spaces_in

    spaces = spaces_in(asked.store.read("runs"), lambda text: click.echo(f"clops-sweep: {text}", err=True))
    if not spaces:
        raise BadInput(f"{asked.store.files.shown}: no run is recorded there; name a search-space file")
    return spaces


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: every foreseen error is one sentence on standard error and exit status 2."""
    with lenient_output() as output:
        status = _exit_status(arguments)
    if output.error is not None:
        if matters(output.error):
            click.echo(f"clops-sweep: standard output: {reason(output.error)}", err=True)
            status = status or EXIT_FAILED
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python would write the rest once more, and fail again
    sys.exit(status)


def _exit_status(arguments: Sequence[str] | None) -> int:
    try:
        _check_current_folder()
        command.main(arguments, prog_name="clops-sweep", standalone_mode=False)
    except SystemExit as ended:
        return int(ended.code or EXIT_FINISHED)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return EXIT_BAD_INPUT
    except (BadInput, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"clops-sweep: {message}", err=True)
        return EXIT_BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    return EXIT_FINISHED


def _check_current_folder() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise BadInput(f"the current folder: {reason(error)}; change to one that is there") from None


if __name__ == "__main__":
    main()
