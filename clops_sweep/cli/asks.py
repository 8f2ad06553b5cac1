"""The options that say which runs are asked for, as several commands have them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from clops_sweep.cli.options import NotEmpty, data_root_option, prepared_root_option, results_option
from clops_sweep.errors import BadInput


def asks(required: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
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
            from clops_sweep.data.prepared_data import PreparedData
            from clops_sweep.experiment.selection import Selection
            from clops_sweep.planning.asked import Asked
            from clops_sweep.store.run_store import RunStore

            selection = Selection.of_files(
                files, settings=dict(map(_setting, settings)), seeds=seeds, limit=limit, where=where
            )
            for space in selection.left_out:
                click.echo(
                    f"left out: search space {space.name!r}, since the data set has no {space.base.scenario}", err=True
                )
            asked = Asked(selection, PreparedData.found(prepared_root, data_root), RunStore.named(results))
            function(asked, **others)

        for option in reversed(options):
            with_asked = option(with_asked)
        return with_asked

    return decorate


def _setting(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value being JSON or text."""
    name, separator, value = text.partition("=")
    if not separator:
        raise BadInput(f"--set {text!r}: expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value
