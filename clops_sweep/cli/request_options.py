"""Options that select runs, shared by several commands."""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from clops_sweep.cli.options import (
    NotEmpty,
    NotEmptyPath,
    Number,
    Parsed,
    data_root_option,
    prepared_root_option,
    results_option,
)
from clops_sweep.data.prepared.commands import default_prepared_root
from clops_sweep.errors import UsageError, shown
from clops_sweep.experiment.limits import OF_SELECTION, Keep
from clops_sweep.planning.shard import Shard

if TYPE_CHECKING:
    from clops_sweep.planning.request import Request


class _Kept(click.Choice):  # type: ignore[type-arg]  # generic in the newest versions only
    """One of the things that a launch stores besides the tables."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the choice; several in one value are refused with the option for each."""
        names = [name.strip() for name in str(value).split(",")]
        if len(names) > 1 and set(names) <= set(self.choices):
            self.fail(f"{value!r}: expected {' '.join(f'--keep {name}' for name in names)}", param, ctx)
        return super().convert(value, param, ctx)


def report_command(request: Request) -> str:
    """Return the command that draws the report of a request with search-space files."""
    whole = replace(request.selection, limit=None, where=None)
    return launch_command(replace(request, selection=whole), command="report")


def launch_command(request: Request, keep: Sequence[Keep] = (), command: str | None = None) -> str:
    """Return the command that computes the runs of a request with search-space files, in the current folder.

    Args:
        request: the request.
        keep: what the launch stores besides the tables of all runs.
        command: another command with the same arguments; None for the launch.
    """
    selection = request.selection
    words = [*([command] if command is not None else []), *map(str, selection.files)]
    for name, value in selection.settings.items():
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--set", f"{name}={text}"]
    for option, given in (("seeds", selection.seeds), ("limit", selection.limit), ("where", selection.where)):
        if given is not None:
            words += [f"--{option}", str(given)]
    for kept in keep:
        words += ["--keep", kept]
    if request.data.root != default_prepared_root():
        words += ["--prepared-root", str(request.data.root)]
    return request.store.command(*words)


def request_options(required: bool = True, keep: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that select runs; the command receives one `Request`.

    Args:
        required: whether a search-space file is required.
        keep: whether the command takes `--keep` and `--shard`.
    """
    options = [
        click.argument(
            "files",
            metavar="SPACE.py ..." if required else "[SPACE.py ...]",
            nargs=-1,
            required=required,
            type=NotEmptyPath(),
        ),
        results_option,
        data_root_option,
        prepared_root_option,
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="Override a field of the base config. Repeatable.",
        ),
        click.option(
            "--seeds", type=Number(OF_SELECTION["seeds"]), help="Number of seeds, from 0, instead of the file's."
        ),
        click.option(
            "--limit", type=Number(OF_SELECTION["limit"]), help="At most this many runs, or trials of a search."
        ),
        click.option(
            "--where",
            type=NotEmpty(),
            metavar="EXPRESSION",
            help='Only runs that meet a condition, such as "storage_fraction == 0.5".',
        ),
    ]

    if keep:
        options.append(
            click.option(
                "--keep",
                multiple=True,
                type=_Kept(get_args(Keep)),
                help="Also store all test predictions after every task, the network after the last task (models), or "
                "that after every task (models:all). Repeatable.",
            )
        )
        options.append(
            click.option(
                "--shard",
                type=Parsed("shard", Shard.parsed),
                metavar="I/N",
                help="Only shard I of N of the runs, so that N processes can share one store.",
            )
        )

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
            keep: tuple[str, ...] = (),
            shard: Shard | None = None,
            **others: Any,
        ) -> None:
            from clops_sweep.data.preparing.prepared_data import PreparedData
            from clops_sweep.experiment.spaces.selection import Selection
            from clops_sweep.learning.encoders.encoders import Encoders
            from clops_sweep.planning.request import Request
            from clops_sweep.store.run_store import RunStore

            changes = {"--set": settings, "--seeds": seeds, "--limit": limit, "--where": where}
            if not files and (given := [name for name, value in changes.items() if value]):
                raise UsageError(f"{given[0]} changes the runs of a search-space file; expected such a file, SPACE.py")
            for folder in files:
                if os.path.isdir(folder / "runs"):
                    raise UsageError(f"{folder}: a folder is no search-space file (did you mean --results {folder}?)")
            selection = Selection.of_files(files, settings=_settings(settings), seeds=seeds, limit=limit, where=where)
            for space in selection.left_out:
                click.echo(
                    f"left out: search space {space.name!r}, since the data set does not support {space.base.scenario}",
                    err=True,
                )
            store = RunStore.named(results, keep=keep)
            encoders = Encoders(store.models.read, data_root)
            request = Request(selection, PreparedData.found(prepared_root, data_root, encoders), store, shard)
            function(request, **others)

        for option in reversed(options):
            with_asked = option(with_asked)
        return with_asked

    return decorate


def _settings(texts: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=VALUE texts to a mapping."""
    found: dict[str, Any] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise UsageError(f"--set {shown(text)}: expected NAME=VALUE")
        if name in found:
            raise UsageError(f"--set {shown(text)}: {name} is set twice; expected once")
        found[name] = _value(text, value)
    return found


def _value(text: str, value: str) -> Any:
    """Parse a value: JSON, a Python number or bool (.5, True), or text."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        pass
    except (ValueError, RecursionError):  # an integer with thousands of digits, or deeply nested brackets
        raise UsageError(f"--set {shown(text)}: the value cannot be read; expected text, a number or a list") from None
    if re.fullmatch(r"[+-]?[0-9]{1,4000}", value):
        return int(value)
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value):
        return float(value)
    return {"True": True, "False": False}.get(value, value)
