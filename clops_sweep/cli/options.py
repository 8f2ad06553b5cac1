"""Options and parameter types that several commands share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from clops_sweep.errors import UsageError, listed, shown
from clops_sweep.experiment.limits import OF_RESOURCES, Device
from clops_sweep.experiment.plugins.options import Option, checked, scalar

if TYPE_CHECKING:
    from clops_sweep.experiment.spaces.search_space import SearchSpace

EXIT_FINISHED, EXIT_FAILED, EXIT_BAD_INPUT, EXIT_UNDECIDED, EXIT_INTERRUPTED = 0, 1, 2, 3, 130


class Ended(SystemExit):
    """Ends the command with an exit status. Any other `SystemExit` comes from a user's code."""


SCHEMA_VERSION = 2
"""Version of the output of `--json`. It increases when a key is removed or changes its meaning."""


def print_json(data: Mapping[str, Any]) -> None:
    """Print the results of a command as a JSON object; nan and infinity, which JSON lacks, are null."""
    click.echo(json.dumps({"schema_version": SCHEMA_VERSION} | _finite(data), indent=2, default=str))


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(name): _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


class Number(click.ParamType):  # type: ignore[type-arg]  # generic in the newest versions only
    """A number within the bounds that `sweep()` uses.

    Args:
        limit: the bounds.
        auto: whether the text "auto" is allowed, which means None.
    """

    def __init__(self, limit: Option, *, auto: bool = False) -> None:
        self.name = "number"
        self._limit, self._auto = limit, auto

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        if self._auto and value == "auto":
            return None
        try:
            return checked(self._limit, self._read(value))
        except ValueError as error:
            said = str(error).removesuffix(", not text")  # command-line values are text
            self.fail(f"{said}{', or auto' * self._auto}", param, ctx)

    def _read(self, value: Any) -> Any:
        """Convert text to a number; other text is returned unchanged and then rejected by the limit."""
        try:
            return scalar(self._limit.annotation)(value) if isinstance(value, str) else value
        except ValueError:
            return value


class Parsed(click.ParamType):  # type: ignore[type-arg]  # generic in the newest versions only
    """Text that a function parses.

    Args:
        name: name of the type in the help.
        read: the function; raises ValueError with what is expected.
    """

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed text."""
        try:
            return self._read(value)
        except ValueError as error:
            self.fail(f"{shown(value)}: {error}", param, ctx)


class NotEmpty(click.ParamType):  # type: ignore[type-arg]  # generic in the newest versions only
    """Text that is not empty, as it would be from an unset shell variable."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        if not str(value).strip():
            self.fail("it is empty", param, ctx)
        return str(value)


class NotEmptyPath(click.Path):
    """A path. An empty one is refused, since it would mean the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        if not str(value).strip():
            self.fail("it is empty", param, ctx)
        if "\0" in str(value):
            self.fail("no path has a zero byte", param, ctx)
        return super().convert(value, param, ctx)


class Tolerance(click.ParamType):  # type: ignore[type-arg]  # generic in the newest versions only
    """A tolerance: a finite number of at least 0."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the tolerance."""
        try:
            tolerance = float(value)
        except ValueError:
            tolerance = math.nan
        if not 0 <= tolerance < math.inf:
            self.fail(f"{value!r}: expected a number from 0", param, ctx)
        return tolerance


_SPACES = "clops_sweep.spaces"
"""Key of the search spaces of the given files in the `meta` of a click context."""


def given_spaces() -> Sequence[SearchSpace]:
    """Return the search spaces of the files that the running command was given with --plugins, or as its data set."""
    spaces: Mapping[Path, Sequence[SearchSpace]] = click.get_current_context().meta.get(_SPACES, {})
    return [space for of_file in spaces.values() for space in of_file]


def _load(context: click.Context, file: Path) -> Sequence[SearchSpace]:
    """Execute a file, which declares plug-ins, and return its search spaces."""
    from clops_sweep.experiment.spaces.executed_file import names_in
    from clops_sweep.experiment.spaces.space_files import spaces_in

    spaces = spaces_in(names_in(file))
    context.meta.setdefault(_SPACES, {})[file.resolve()] = spaces
    return spaces


def _load_plugins(context: click.Context, parameter: click.Parameter, files: tuple[Path, ...]) -> None:
    """Execute the files, which declare plug-ins."""
    del parameter
    for file in files:
        _load(context, file)


def _named_data_set(context: click.Context, parameter: click.Parameter, name: str) -> str:
    """Return the name of a data set; of a file, that of the data set that it declares or runs on."""
    del parameter
    file = Path(name)
    if file.suffix != ".py":
        return name
    from clops_sweep.data.catalog import DATASETS
    from clops_sweep.data.origins import ORIGINS
    from clops_sweep.experiment.spaces.selection import Selection

    spaces = _load(context, file)
    names = dict.fromkeys(config.dataset for space in spaces for config in Selection((space,)).configs)
    for (kind, declared), origin in ORIGINS.items():
        is_declared = kind == "dataset" and declared in DATASETS
        if is_declared and origin.file is not None and Path(origin.file).resolve() == file.resolve():
            names[declared] = None
    if not names:
        raise UsageError(f"{file}: declares no data set and has no SPACE; expected one of them, or a data set's name")
    if len(names) > 1:
        raise UsageError(
            f"{file}: has the data sets {listed(names)}; expected one of these names, and --plugins {file}"
        )
    return next(iter(names))


data_set_argument = click.argument("name", metavar="NAME|FILE.py", callback=_named_data_set)
cpus_option = click.option(
    "--cpus-per-trial",
    type=Number(OF_RESOURCES["cpus_per_trial"]),
    default=1,
    show_default=True,
    help="CPUs that Ray reserves for a trial, which computes on one.",
)
gpus_option = click.option(
    "--gpus-per-trial",
    type=Number(OF_RESOURCES["gpus_per_trial"]),
    default=0,
    metavar="SHARE",
    help="GPUs per trial, such as 0.25; by default by the memory of a run and the cores, or 1 without a GPU here.",
)
device_option = click.option(
    "--device",
    type=click.Choice(get_args(Device)),
    default="auto",
    show_default=True,
    help="Compute on CPUs or GPUs; auto takes the device of finished runs, else a GPU where the network gains from it.",
)
plugins_option = click.option(
    "--plugins",
    multiple=True,
    type=NotEmptyPath(),
    metavar="FILE",
    expose_value=False,
    callback=_load_plugins,
    help="A Python file that declares data sets or plug-ins, such as a search-space file; it is executed. Repeatable.",
)
data_root_option = click.option(
    "--data-root",
    envvar="CLOPS_DATA_ROOT",
    type=NotEmptyPath(),
    metavar="DIR",
    help="Folder of the data sets as published (or CLOPS_DATA_ROOT); it is only read.",
)
prepared_root_option = click.option(
    "--prepared-root",
    envvar="CLOPS_PREPARED_ROOT",
    type=NotEmptyPath(),
    metavar="DIR",
    help="Folder of the prepared frames (or CLOPS_PREPARED_ROOT); by default in the user's cache.",
)


def _run_ids(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete run ids in a shell."""
    del parameter
    from clops_sweep.store.run_store import RunStore

    try:
        statuses = RunStore.named(context.params.get("results") or "results").statuses()
    except UsageError:
        return []
    return sorted(run_id for run_id in statuses if run_id.startswith(incomplete))


run_id_argument = click.argument("run_id", shell_complete=_run_ids)
optional_run_id_argument = click.argument("run_id", required=False, shell_complete=_run_ids)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON; docs/commands.md lists the keys.")
results_option = click.option(
    "--results",
    type=NotEmpty(),
    default="results",
    show_default=True,
    metavar="DIR_OR_URI",
    help="The store: a folder or s3://...",
)
