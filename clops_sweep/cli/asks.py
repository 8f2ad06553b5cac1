"""The options that say which runs are asked for, as several commands have them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from clops_sweep.cli.asked import Asked
from clops_sweep.cli.options import NotEmpty, data_root_option, prepared_root_option, results_option


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
