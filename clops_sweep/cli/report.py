"""`clops-sweep report`: figures, tables and a page of what a store holds."""

from __future__ import annotations

from pathlib import Path

import click

from clops_sweep.cli.asked import Asked
from clops_sweep.cli.asks import asks
from clops_sweep.errors import BadInput
from clops_sweep.experiment.search_space import SearchSpace, all_requests


@click.command()
@asks(required=False)
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
    render(asked, output or asked.report_folder, keep=False, axes=_axes(axes))


def _axes(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(names) != 2:
        raise BadInput(f"--axes {text!r}: expected two names with a comma between them")
    return names


def render(asked: Asked, folder: Path, *, keep: bool, axes: tuple[str, str] | None = None) -> None:
    """Renders the report, or says where it is if it may be kept as it is."""
    index = folder / "index.html"
    if not (keep and index.exists()):
        from clops_sweep.analysis.report import write_report

        spaces = asked.resolved_spaces() if asked.files else _all_spaces(asked)
        configs = asked.configs if asked.files else [request.config for request in all_requests(spaces)]
        index = write_report(spaces, asked.store, folder, axes=axes, frames=asked.frames_at_hand(configs)).index
    click.echo(f"report: {index.resolve()}")


def _all_spaces(asked: Asked) -> list[SearchSpace]:
    from clops_sweep.analysis.whole_store import spaces_in

    spaces = spaces_in(asked.store.read("runs"), lambda text: click.echo(f"clops-sweep: {text}", err=True))
    if not spaces:
        raise BadInput(f"{asked.store.files.shown}: no run is recorded there; name a search-space file")
    return spaces
