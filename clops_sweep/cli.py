"""The command `clops-sweep`: parses, prints, exits. What it says is the contract with the user's scripts."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clops_sweep.cli_data import data
from clops_sweep.cli_options import data_root_option, prepared_root_option
from clops_sweep.config import RunConfig
from clops_sweep.errors import BadInput
from clops_sweep.space import RunRequest, SearchSpace, all_requests, load_spaces

if TYPE_CHECKING:
    from clops_sweep.plan import Plan
    from clops_sweep.store import RunStore

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
    """


def _space_arguments(required: bool = True) -> Any:
    """The options that say which runs are asked for, and where their results are."""

    def decorate(function: Any) -> Any:
        for option in reversed(
            [
                click.argument(
                    "files", metavar="SPACE.py", nargs=-1, required=required, type=click.Path(path_type=Path)
                ),
                click.option(
                    "--results", default="results", show_default=True, metavar="DIR_OR_URI", help="The store."
                ),
                data_root_option,
                prepared_root_option,
                click.option(
                    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Override the base config."
                ),
                click.option("--seeds", type=click.IntRange(min=1), help="Seeds 0 .. N-1 instead of the file's."),
                click.option("--limit", type=click.IntRange(min=1), help="Only the first N runs."),
                click.option("--where", metavar="EXPRESSION", help='Only runs such as "storage_fraction == 0.5".'),
            ]
        ):
            function = option(function)
        return function

    return decorate


@command.command()
@_space_arguments()
@click.option("--address", help="Attach to a Ray cluster (auto or HOST:PORT) instead of starting one here.")
@click.option("--cpus-per-trial", type=click.FloatRange(min=0), default=1, show_default=True)
@click.option("--gpus-per-trial", type=click.FloatRange(min=0), default=0, show_default=True, help="May be a fraction.")
@click.option("--stack", default="auto", show_default=True, metavar="N|auto", help="Seeds trained in lockstep.")
@click.option("--max-retries", type=click.IntRange(min=0), default=2, show_default=True)
@click.option("--retry", type=click.Choice(["failed"]), help="Take up failed runs again.")
@click.option("--dry-run", is_flag=True, help="The same as plan.")
@click.option("--no-report", is_flag=True, help="Do not render the report afterwards.")
def launch(
    files: tuple[Path, ...],
    results: str,
    data_root: Path | None,
    prepared_root: Path | None,
    settings: tuple[str, ...],
    seeds: int | None,
    limit: int | None,
    where: str | None,
    address: str | None,
    cpus_per_trial: float,
    gpus_per_trial: float,
    stack: str,
    max_retries: int,
    retry: str | None,
    dry_run: bool,
    no_report: bool,
) -> None:
    """Run what is asked for and not yet finished (the default command)."""
    spaces, requests = _requests(files, settings, seeds, limit, where)
    lockstep = _stack(stack)
    store = _store(results)
    if dry_run:
        _print_plan(_plan(requests, store, prepared_root), store)
        return
    store.open_for_writing()
    _prepare(requests, data_root, prepared_root)
    plan = _plan(requests, store, prepared_root)
    pending = plan.of("pending", "failed") if retry else plan.of("pending")
    report_folder = _report_folder(results, files)
    if not pending:
        click.echo(f"nothing is pending: {_counts(plan)}")
        click.echo(f"results: {store.uri}")
        if not no_report:
            _report(spaces, store, report_folder, keep=True)
        sys.exit(EXIT_FAILED if plan.of("failed") else EXIT_FINISHED)

    # Ray and torch are imported here and not before: everything a user can get wrong has been looked at by now.
    from clops_sweep.data.prepare import default_prepared_root, open_frames
    from clops_sweep.display import SweepDisplay
    from clops_sweep.sweep import Resources, run_sweep
    from clops_sweep.trainable import data_key

    frames = {
        key: open_frames(
            key[0], prepared_root=prepared_root or default_prepared_root(), split_seed=key[1], normalize=key[2]
        )
        for key in {data_key(run.config) for run in pending}
    }
    resources = Resources(address, cpus_per_trial, gpus_per_trial, lockstep, max_retries)
    with SweepDisplay(_varying(requests)) as display:
        try:
            outcome = run_sweep(pending, frames, store, _work_folder(results), resources, display)
        except KeyboardInterrupt:
            outcome = None
    if outcome is None or outcome.interrupted:
        click.echo(f"interrupted; resume with: {shlex.join(['clops-sweep', *sys.argv[1:]])}")
        sys.exit(EXIT_INTERRUPTED)
    plan = _plan(requests, store, prepared_root)
    click.echo(_counts(plan))
    click.echo(f"results: {store.uri}")
    if not no_report:
        _report(spaces, store, report_folder, keep=False)
    if plan.of("pending"):
        raise click.ClickException(f"{len(plan.of('pending'))} runs were not recorded; see {outcome.log}")
    sys.exit(EXIT_FAILED if plan.of("failed") else EXIT_FINISHED)


@command.command("plan")
@_space_arguments()
def plan_command(
    files: tuple[Path, ...],
    results: str,
    data_root: Path | None,
    prepared_root: Path | None,
    settings: tuple[str, ...],
    seeds: int | None,
    limit: int | None,
    where: str | None,
) -> None:
    """Count the runs asked for, finished, pending and failed, and estimate what is left. Starts nothing."""
    del data_root
    _, requests = _requests(files, settings, seeds, limit, where)
    store = _store(results)
    _print_plan(_plan(requests, store, prepared_root), store)


@command.command()
@_space_arguments(required=False)
def status(
    files: tuple[Path, ...],
    results: str,
    data_root: Path | None,
    prepared_root: Path | None,
    settings: tuple[str, ...],
    seeds: int | None,
    limit: int | None,
    where: str | None,
) -> None:
    """Say how the sweep stands, from the store alone; also while it runs elsewhere."""
    del data_root
    store = _store(results)
    if files:
        _, requests = _requests(files, settings, seeds, limit, where)
        _print_plan(_plan(requests, store, prepared_root), store)
        failed = {run.run_id for run in _plan(requests, store, prepared_root).of("failed")}
    else:
        states = store.statuses()
        failed = {run_id for run_id, state in states.items() if state == "failed"}
        click.echo(f"{len(states) - len(failed)} runs finished, {len(failed)} failed in {store.uri}")
    for row in store.rows("runs", ["run_id", "status", "error"]):
        if row["status"] == "failed" and row["run_id"] in failed:
            last_line = (row["error"] or "").strip().rpartition("\n")[2]
            click.echo(f"  failed {row['run_id']}: {last_line}")


@command.command()
@_space_arguments()
@click.option("--axes", help="The two axes of the heatmaps, e.g. storage_fraction,acquisition_fraction.")
@click.option("--output", type=click.Path(path_type=Path), help="Folder of the report.")
def report(
    files: tuple[Path, ...],
    results: str,
    data_root: Path | None,
    prepared_root: Path | None,
    settings: tuple[str, ...],
    seeds: int | None,
    limit: int | None,
    where: str | None,
    axes: str | None,
    output: Path | None,
) -> None:
    """Render figures, tables and index.html from the store; also of an unfinished sweep."""
    del data_root, prepared_root
    if limit or where:
        raise click.UsageError("a report shows whole search spaces: it takes neither --limit nor --where")
    spaces, _ = _requests(files, settings, seeds, None, None)
    _report(spaces, _store(results), output or _report_folder(results, files), keep=False, axes=_axes(axes))


command.add_command(data)


def _requests(
    files: Sequence[Path], settings: Sequence[str], seeds: int | None, limit: int | None, where: str | None
) -> tuple[list[SearchSpace], list[RunRequest]]:
    """The spaces of some files as the options change them, and the runs they ask for."""
    overrides = dict(_setting(text) for text in settings)
    spaces = [space.overridden(overrides) for file in files for space in load_spaces(file)]
    if seeds:
        spaces = [space.with_seeds(seeds) for space in spaces]
    requests = all_requests(spaces)
    if where:
        requests = _filtered(requests, where)
    if not requests:
        raise BadInput(f"{' '.join(map(str, files))}: no run is left to ask for")
    return spaces, requests[:limit]


def _setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    if not separator:
        raise BadInput(f"--set {text!r}: expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def _filtered(requests: Sequence[RunRequest], where: str) -> list[RunRequest]:
    """The runs for which a pandas expression over config fields is true."""
    import pandas as pd

    table = pd.DataFrame([request.config.model_dump() for request in requests])
    try:
        kept = table.query(where, engine="python").index
    except Exception as error:  # pandas raises whatever the expression makes it raise
        fields = ", ".join(RunConfig.model_fields)
        raise BadInput(f"--where {where!r}: {error}; expected a condition on config fields ({fields})") from None
    return [requests[position] for position in kept]


def _stack(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdigit() or int(text) < 1:
        raise BadInput(f"--stack {text!r}: expected a number from 1, or auto")
    return int(text)


def _axes(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(names) != 2:
        raise BadInput(f"--axes {text!r}: expected two names with a comma between them")
    return names


def _store(results: str) -> RunStore:
    from clops_sweep.store import RunStore

    return RunStore(results)


def _work_folder(results: str) -> Path:
    """Checkpoints, logs and Ray's files: beside the tables where these are in a folder, else in this user's cache."""
    if "://" not in results:
        return Path(results).expanduser().resolve() / ".work"
    from platformdirs import user_cache_path

    return user_cache_path("clops-sweep") / "work"


def _report_folder(results: str, files: Sequence[Path]) -> Path:
    base = Path("report") if "://" in results else Path(results) / "report"
    return base / "+".join(file.stem for file in files)


def _prepare(requests: Sequence[RunRequest], data_root: Path | None, prepared_root: Path | None) -> None:
    """Prepares what the runs need and is not prepared yet."""
    from clops_sweep.data.prepare import default_prepared_root, prepare

    for name in dict.fromkeys(request.config.dataset for request in requests):
        prepare(name, prepared_root=prepared_root or default_prepared_root(), data_root=data_root, progress=True)


def _plan(requests: Sequence[RunRequest], store: RunStore, prepared_root: Path | None) -> Plan:
    from clops_sweep.data.prepare import data_hash, default_prepared_root
    from clops_sweep.plan import make_plan

    root = prepared_root or default_prepared_root()
    known: dict[tuple[str, int, str], str | None] = {}

    def of_config(config: RunConfig) -> str | None:
        key = (config.dataset, config.split_seed, config.normalize)
        if key not in known:
            known[key] = data_hash(key[0], prepared_root=root, split_seed=key[1], normalize=key[2])
        return known[key]

    return make_plan(requests, store, of_config)


def _counts(plan: Plan) -> str:
    return (
        f"{len(plan.runs)} runs asked for, {len(plan.of('finished'))} finished, "
        f"{len(plan.of('pending'))} pending, {len(plan.of('failed'))} failed"
    )


def _print_plan(plan: Plan, store: RunStore) -> None:
    from clops_sweep.plan import estimate

    click.echo(_counts(plan))
    for name in plan.unprepared:
        click.echo(f"data set {name} is not prepared on this machine: its runs count as pending")
    pending = plan.of("pending")
    if pending:
        cost = estimate(pending, store)
        if cost.known:
            rest = f" for {cost.known} of them" if cost.unknown else ""
            click.echo(f"about {cost.hours:.2g} core- or GPU-hours{rest}, from finished runs of the same kind")
        else:
            click.echo("no estimate: no run of this kind is finished yet")


def _report(
    spaces: Sequence[SearchSpace],
    store: RunStore,
    folder: Path,
    *,
    keep: bool,
    axes: tuple[str, str] | None = None,
) -> None:
    """Renders the report, or says where it is if it may be kept as it is."""
    index = folder / "index.html"
    if not (keep and index.exists()):
        from analysis.report import write_report

        index = write_report(spaces, store, folder, axes=axes).index
    click.echo(f"report: {index.resolve()}")


def _varying(requests: Sequence[RunRequest]) -> list[str]:
    """The fields, but for the seed, that tell the runs apart."""
    return [
        name
        for name in RunConfig.model_fields
        if name != "seed" and len({getattr(request.config, name) for request in requests}) > 1
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: every foreseen error is one sentence on standard error and exit status 2."""
    try:
        command.main(arguments, prog_name="clops-sweep", standalone_mode=False)
    except (BadInput, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"clops-sweep: {message}", err=True)
        sys.exit(EXIT_BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:  # the reader of a pipe has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FINISHED)


if __name__ == "__main__":
    main()
