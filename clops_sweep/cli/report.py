"""`clops-sweep report`: figures, tables and a page of the results in a store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clops_sweep.analysis.report.folders import default_folder, overrides, remember_files
from clops_sweep.cli import drawn_report
from clops_sweep.cli.options import NotEmpty, NotEmptyPath, json_option, plugins_option, print_json
from clops_sweep.cli.request_options import launch_command, request_options
from clops_sweep.cli.search import tuned_rows
from clops_sweep.cli.waiting import waiting
from clops_sweep.cli.warned import warned
from clops_sweep.errors import UsageError
from clops_sweep.experiment.limits import Keep
from clops_sweep.experiment.plugins.registry import unregistered
from clops_sweep.experiment.spaces.gc_paused import gc_paused
from clops_sweep.planning.changes import changes_since_runs, on_earlier_data
from clops_sweep.planning.claim_seal import seal_in_words
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State

if TYPE_CHECKING:
    from clops_sweep.analysis.collect import Experiment
    from clops_sweep.analysis.tables.tuning import TunedMethod
    from clops_sweep.experiment.spaces.search_space import SearchSpace

_ENOUGH_SEEDS = 5
"""Seeds that a page with fewer suggests."""


@click.command()
@request_options(required=False)
@plugins_option
@click.option("--axes", help="The two axes of the heatmaps, such as storage_fraction,acquisition_fraction.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    type=NotEmpty(),
    metavar="NAME",
    help="A column of runs to show instead of the scenario's headline metrics; the first one ranks runs. "
    "Repeatable, or separated by commas.",
)
@click.option(
    "--data-hash",
    "data_hashes",
    multiple=True,
    type=NotEmpty(),
    metavar="HASH",
    help="Show this edition of the data instead of the newest: its prepared_hash or data_hash, or the beginning of it, "
    "as `clops-sweep runs --json` has them. Repeatable.",
)
@click.option(
    "--style",
    type=click.Choice(("screen", "journal")),
    default="screen",
    help="journal: figures 89, 120 or 183 mm wide, with text of 6 to 7 points in Arial or Helvetica and panel letters; "
    "needs clops-sweep[journal].",
)
@click.option(
    "--output", type=NotEmptyPath(), help="Folder of the report: a new folder, or one with an earlier report."
)
@json_option
def report(
    request: Request,
    axes: str | None,
    metrics: tuple[str, ...],
    data_hashes: tuple[str, ...],
    style: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Render figures, tables and index.html from the store. The sweep may be unfinished.

    Without a search-space file, the report covers everything in the store.
    """
    if request.selection.limit or request.selection.where:
        raise click.UsageError("a report shows whole search spaces: it takes neither --limit nor --where")
    _ = request.selection.spaces  # report an invalid search-space file first
    request.store.files.check_is_there()
    state = State.of(request, launched=True)
    for sentence in changes_since_runs(state):
        click.echo(f"clops-sweep: {sentence}", err=True)
    if style == "journal":
        _say_font()
    index = render(
        state,
        _folder(state.resolved, output),
        tuned_rows(state),
        axes=_axes(axes),
        metrics=_metrics(metrics),
        data_hashes=data_hashes,
        journal=style == "journal",
    )
    if as_json:
        print_json({"results": request.store.files.shown, "report": index})
    else:
        click.echo(f"report: {index}")


def _say_font() -> None:
    """Print which font replaces those of journals, if none is installed."""
    from clops_sweep.analysis.drawing.journal import font_notice

    if notice := font_notice():
        click.echo(f"clops-sweep: {notice}", err=True)


def _axes(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(names) != 2:
        raise UsageError(f"--axes {text!r}: expected two names with a comma between them")
    return names


def _metrics(texts: Sequence[str]) -> list[str]:
    names = [name.strip() for text in texts for name in text.split(",")]
    if not all(names):
        raise UsageError(f"--metric {','.join(texts)!r}: expected names with commas between them")
    return names


def render_unless_drawn(state: State, tuned: Sequence[TunedMethod]) -> Path:
    """Render the report of a launch, unless nothing has changed since it was drawn, and return the path of its page.

    Args:
        state: the state after the launch.
        tuned: the rows of its tuned methods.
    """
    folder = _folder(state.resolved, None)
    digest = drawn_report.drawn_from(state)
    if drawn_report.is_current(folder, digest):
        return (folder / "index.html").resolve()
    index = render(state, folder, tuned)
    drawn_report.remember(folder, digest)
    return index


@gc_paused()  # checked after each figure
def render(
    state: State,
    folder: Path,
    tuned: Sequence[TunedMethod],
    *,
    axes: tuple[str, str] | None = None,
    metrics: Sequence[str] = (),
    data_hashes: Sequence[str] = (),
    journal: bool = False,
) -> Path:
    """Render the report into a folder, and return the path of its page."""
    with waiting("importing Matplotlib"):
        from clops_sweep.analysis.as_stored import data_keys
        from clops_sweep.analysis.report.write import check_folder, write_report
    request = state.resolved
    check_folder(folder, request.store)
    spaces = state.spaces
    experiments, as_stored = ([], []) if request.selection.files else everything(request, data_hashes, spaces)
    if not spaces and not experiments and not as_stored:
        raise UsageError(f"{request.store.files.shown}: no run is recorded there; name a search-space file")
    # the requests of a file are known already; computing them is slow for large spaces
    keys = dict.fromkeys([*(it.data_key for it in request.selection.configs), *data_keys(experiments)])
    frames = request.data.of_prepared(keys)
    kept = _kept(state)
    with _counted_figures() as progress, warned():
        index = write_report(
            spaces,
            request.store,
            folder,
            title=_title(request),
            axes=axes,
            metrics=metrics,
            data_hashes=data_hashes,
            present=request.edition,
            frames=frames,
            experiments=experiments,
            as_stored=as_stored,
            claims=request.selection.claims_by_file,
            seal=seal_in_words(state),
            keep_verdicts=request.selection.is_as_declared and not data_hashes,
            tuned=tuned,
            commands=commands_for(request, kept),
            retry=_retry(state, kept),
            notices=on_earlier_data(state),
            journal=journal,
            progress=progress,
        ).index
    remember_files(folder, request.selection, request.store)
    return index.resolve()


@contextmanager
def _counted_figures() -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal which figure of how many is drawn: "drawing the report: figure 12 of 40"."""
    if not sys.stdout.isatty():
        yield lambda number, count: None
        return
    from rich.console import Console

    with Console().status("computing the figures of the report") as status:
        yield lambda number, count: status.update(f"drawing the report: figure {number} of {count}")


def _folder(request: Request, output: Path | None) -> Path:
    """Return the folder of a report: the given one, or the default, whose name is explained if it is unusual."""
    if output is not None:
        return output
    folder = default_folder(request.selection, request.store, request.selection.titles or ["everything"])
    if folder.why:
        click.echo(f"clops-sweep: {folder.why}", err=True)
    return folder.path


def _title(request: Request) -> str:
    """Return the title: the studies or the store, and the overrides."""
    shown = " + ".join(request.selection.titles) or f"Everything in {request.store.files.shown}"
    return ", ".join([shown, *overrides(request.selection)])


def _retry(state: State, kept: Sequence[Keep]) -> str:
    """Return the command that repeats failed runs; empty without any, or without files."""
    request = state.resolved
    if not request.selection.files or not state.plan.count_asked("failed"):
        return ""
    return f"{launch_command(request, kept)} --retry failed"


def _kept(state: State) -> list[Keep]:
    """Return what the launch keeps besides the tables of all runs, or what every finished run of the request has."""
    store = state.resolved.store
    finished = {str(run.run_id) for run in state.plan.of("finished")}

    def have(run_ids: Iterable[str]) -> bool:
        return bool(finished) and finished <= set(run_ids)

    kept = list[Keep]()
    if "predictions" in store.keep or have(store.predicted()):
        kept.append("predictions")
    if "models:all" in store.keep or have(store.models.runs("all")):
        kept.append("models:all")
    elif "models" in store.keep or have(store.models.runs("last")):
        kept.append("models")
    return kept


def commands_for(request: Request, kept: Sequence[Keep]) -> list[tuple[str, str]]:
    """Return commands for the page, each with its purpose; none without files."""
    if not request.selection.files:
        return []
    whole = replace(request.selection, limit=None)
    commands = [("Compute missing runs, and draw this page", launch_command(replace(request, selection=whole), kept))]
    if all(map(_takes_more_seeds, request.selection.undivided)):
        more = replace(whole, seeds=_ENOUGH_SEEDS)
        command = launch_command(replace(request, selection=more), kept)
        commands.append((f"Compute {_ENOUGH_SEEDS} seeds", command))
    return commands


def _takes_more_seeds(space: SearchSpace) -> bool:
    """Return whether a space with few seeds can have more: the studies of its searches keep their seeds."""
    if len(space.seeds) >= _ENOUGH_SEEDS:
        return False
    if space.search is None:
        return True
    more = replace(space, seeds=range(_ENOUGH_SEEDS))
    if space.tuned is None or more.tuned is None:
        return False
    try:
        phases = more.tuned.phases
    except UsageError:  # one of these seeds is for tuning alone
        return False
    return all(phase.seeds == before.seeds for phase, before in zip(phases, space.tuned.phases, strict=True))


def everything(
    request: Request, data_hashes: Sequence[str] = (), spaces: Sequence[SearchSpace] = ()
) -> tuple[list[Experiment], list[Experiment]]:
    """Return the result of `stored_experiments`, and print which plug-ins are not registered.

    Args:
        request: what was asked for.
        data_hashes: as in `collect`.
        spaces: search spaces whose runs are left out.
    """
    from clops_sweep.analysis.as_stored import stored_experiments
    from clops_sweep.analysis.collect import requested_ids, whole_hashes
    from clops_sweep.analysis.search_trials import tuning_experiments
    from clops_sweep.data.prepared.prepared_folder import register_prepared

    runs = request.store.read("runs")
    wanted = whole_hashes(runs, data_hashes)
    for name in map(str, runs["dataset"].unique()):
        register_prepared(name, request.data.root)
    tuning = tuning_experiments(request.store, runs)
    of_tuning = {run_id for experiment, _ in tuning for run_id in experiment.runs["run_id"]}
    runs = runs[~runs["run_id"].isin(of_tuning | requested_ids(spaces, runs))]
    present = request.edition
    of_these = sorted(wanted & {*runs["data_hash"]})  # others are editions of the search spaces alone
    experiments, as_stored = stored_experiments(runs, of_these, beside=bool(spaces), present=present)
    experiments += [experiment for experiment, _ in tuning]
    for it in as_stored:
        missing = dict.fromkeys(what for cell in it.cells for what in unregistered(dict(cell.config)))
        said = " and ".join(missing) or f"scenario {it.cells[0].config.scenario!r} of {it.cells[0].config.dataset!r}"
        runs_are = f"{len(it.runs)} runs are" if len(it.runs) > 1 else "1 run is"
        click.echo(
            f"clops-sweep: {runs_are} shown with the names in the store only: {said} is not registered here", err=True
        )
    return experiments, as_stored
