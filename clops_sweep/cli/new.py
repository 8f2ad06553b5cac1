"""`clops-sweep new`: writes a search-space file to start from."""

from __future__ import annotations

import os
import secrets
import shlex
from contextlib import suppress
from pathlib import Path

import click

from clops_sweep.cli.options import NotEmptyPath, json_option, print_json
from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.search_space import shipped_space

FIRST_SPACE = '''"""CLOPS on generated ECG, with little and much stored, by beta and at random; ends within a minute."""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="first_sweep",
    # What every run has in common. For recordings of patients, see `clops-sweep data list`.
    base=RunConfig(scenario="class_il", dataset="synthetic", strategy="clops", epochs_per_task=4, mc_samples=5),
    axes={
        # A field of the config and its values.
        "storage_fraction": [0.1, 0.5],
        # A name of your own, and variants that set any number of fields.
        "variant": {"CLOPS": {}, "Random storage": {"storage_order": "random"}},
    },
    seeds=range(2),  # each with every combination of the axes
)
'''
"""A search-space file that needs no data."""


@click.command()
@click.argument("name", metavar="NAME.py", type=NotEmptyPath())
@click.option("--from", "source", metavar="NAME", help="Copy one that comes along: class_il_grid, paper, ...")
@json_option
def new(name: Path, source: str | None, as_json: bool) -> None:
    """Write a search-space file to begin with. It is small and explained, or a copy of one that comes along."""
    with one_sentence(name):
        _check(name)
        _write(name, FIRST_SPACE.encode() if source is None else _shipped(source))
    command = shlex.join(["clops-sweep", str(name)])
    if as_json:
        print_json({"file": name, "command": command})
    else:
        click.echo(f"{name} is written; run it with: {command}")


def _check(path: Path) -> None:
    if path.suffix != ".py":
        raise UsageError(f"{shorten(path)}: a search-space file needs a name that ends in .py")
    if not path.parent.is_dir():
        raise UsageError(f"{shorten(path)}: there is no folder {shorten(path.parent)}; make it first or name another")
    if os.path.lexists(path):
        raise _taken(path)


def _taken(path: Path) -> UsageError:
    return UsageError(f"{shorten(path)}: it is there already and stays as it is; choose another name")


def _shipped(name: str) -> bytes:
    try:
        return shipped_space(name).read_bytes()
    except UsageError as error:
        raise UsageError(f"--from {error}") from None


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically, without replacing an existing one.

    Raises:
        UsageError: `path` exists, if only as a broken link.
        OSError: it cannot be written; names `path`.
    """
    staging = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with open(staging, "xb") as file:
            file.write(content)
        open(path, "xb").close()  # fails if the name has been taken meanwhile
        os.replace(staging, path)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):
            staging.unlink(missing_ok=True)
