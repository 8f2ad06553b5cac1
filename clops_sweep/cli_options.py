"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

data_root_option = click.option(
    "--data-root",
    envvar="CLOPS_DATA_ROOT",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the data sets as their publishers ship them (or CLOPS_DATA_ROOT). Never written to.",
)
prepared_root_option = click.option(
    "--prepared-root",
    envvar="CLOPS_PREPARED_ROOT",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the prepared frames (or CLOPS_PREPARED_ROOT); by default in this user's cache.",
)
results_option = click.option(
    "--results", default="results", show_default=True, metavar="DIR_OR_URI", help="The store: a folder or s3://..."
)
