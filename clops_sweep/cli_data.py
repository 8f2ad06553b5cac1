"""`clops-sweep data`: what data sets there are, and preparing them."""

from __future__ import annotations

from pathlib import Path

import click

from clops_sweep.cli_options import data_root_option, prepared_root_option


@click.group()
def data() -> None:
    """Data sets: list them, prepare them."""


@data.command("list")
@data_root_option
@prepared_root_option
def list_data(data_root: Path | None, prepared_root: Path | None) -> None:
    """Every data set with its licence, size, state and source."""
    from rich.console import Console
    from rich.table import Table

    from clops_sweep.data.catalog import DATASETS
    from clops_sweep.data.prepare import default_prepared_root, state

    table = Table("data set", "what it is", "licence", "size", "scenarios", "state", "where to get it")
    for info in DATASETS.values():
        there = state(info.name, prepared_root=prepared_root or default_prepared_root(), data_root=data_root)
        scenarios = ", ".join(info.scenarios)
        table.add_row(info.name, info.title, info.licence, info.size, scenarios, there, info.source)
    Console().print(table)


@data.command()
@click.argument("name")
@data_root_option
@prepared_root_option
def prepare(name: str, data_root: Path | None, prepared_root: Path | None) -> None:
    """Turn a data set as its publisher ships it into frames that every run maps from disk."""
    from clops_sweep.data.prepare import default_prepared_root
    from clops_sweep.data.prepare import prepare as make

    made = make(name, prepared_root=prepared_root or default_prepared_root(), data_root=data_root, progress=True)
    click.echo(f"{name}: {made.manifest.frames} frames in {made.folder}")
