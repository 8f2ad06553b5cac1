"""`clops-sweep dashboard`: serves web pages that follow a store."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clops_sweep.cli.options import NotEmpty, plugins_option
from clops_sweep.cli.request_options import request_options
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.prepared.commands import default_prepared_root
from clops_sweep.data.prepared.prepared_folder import register_prepared
from clops_sweep.errors import UsageError, listed, several, shown
from clops_sweep.experiment.spaces.declared_names import loadable_together
from clops_sweep.experiment.spaces.space_files import defines_space
from clops_sweep.experiment.spaces.started_sweeps import MAIN_GUARD, line_that_sweeps
from clops_sweep.planning.changes import changes_since_runs, on_earlier_data
from clops_sweep.planning.launched import LaunchedFile, LaunchedOn, LeftOutSpace, launched_files, launched_on
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.launch_folders import plugin_files_to_name

if TYPE_CHECKING:
    from clops_sweep.analysis.dashboard.followed_data import FollowedData
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.experiment.spaces.search_space import SearchSpace
    from clops_sweep.store.run_store import RunStore

TOKEN = "CLOPS_DASHBOARD_TOKEN"


@click.command()
@request_options(required=False)
@plugins_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8050,
    show_default=True,
    help="Port of the page; 0 for any free one.",
)
@click.option(
    "--host",
    type=NotEmpty(),
    help="Address to listen on, such as 0.0.0.0, for access from other machines. The printed address then contains a "
    f"token ({TOKEN}, if set).",
)
def dashboard(request: Request, port: int, host: str | None) -> None:
    """Serve live web pages of a store, also during a sweep. Read-only, by default for this machine only.

    They show the runs of the search-space files or, without files, everything in the store. Ctrl-C stops the server.
    """
    from clops_sweep.analysis.dashboard.followed_data import FollowedData
    from clops_sweep.analysis.dashboard.server import make_server
    from clops_sweep.analysis.dashboard.source import StoreSource

    if request.selection.limit or request.selection.where:
        raise click.UsageError("a dashboard shows whole search spaces: it takes neither --limit nor --where")
    _ = request.selection.spaces  # report an invalid search-space file first
    token = (os.environ.get(TOKEN) or secrets.token_urlsafe(24)) if host is not None else None
    data = FollowedData(request.data)
    states = _States(request, data)
    source = StoreSource(
        request.store,
        partial(_frames, request.data),
        states.spaces,
        whole=not request.selection.files,
        present=states.edition,
        data=data,
        launched=states.launched,
    )
    notices = [_left_out(space, _remedy(request)) for space in request.left_out_spaces()]
    for notice in notices:
        click.echo(f"clops-sweep: {notice}", err=True)
    notices += _of_files(request)
    files = list(map(str, request.selection.files))
    if not files:
        files = _files_of_launches(request.store)
    server = make_server(
        request.store,
        source,
        host=host,
        port=port,
        token=token,
        notices=notices,
        files=files,
        data=request.data,
        claims=states.claims,
        changes=states.changes,
        edited=_Edited(request.selection.files),
    )
    click.echo(f"dashboard: {server.address}")
    click.echo("Press Ctrl-C to stop.", err=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve()


class _Edited:
    """Which search-space files were edited since the dashboard read them.

    Args:
        files: the files.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self._read = {file: _content(file) for file in files}

    def __call__(self) -> str:
        """Return a sentence without a full stop; empty if no file was edited."""
        edited = [str(file) for file, content in self._read.items() if _content(file) != content]
        if not edited:
            return ""
        was = "was" if len(edited) == 1 else "were"
        return (
            f"{listed(edited)} {was} edited after this dashboard began, which shows the runs of the former content: "
            "start it again"
        )


def _content(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:  # it is written at this moment, or gone
        return None


class _States:
    """The state of a request as the dashboard last read the store: what a page shows is of one moment.

    Args:
        request: the request of the search-space files, or without any.
        data: its prepared data, which may be prepared again.
    """

    def __init__(self, request: Request, data: FollowedData) -> None:
        self._request = request
        self._data = data
        self._state: State | None = None

    def spaces(self, store: RunStore) -> list[SearchSpace]:
        """Return the search spaces for a store at one moment, which is that of claims and changes from now on."""
        self._state = State.of(replace(self._request, store=store), launched=True)
        return self._state.spaces

    def edition(self, dataset: str) -> str | None:
        """Return the `prepared_hash` of the edition of a data set that is shown first; None without one."""
        return (self._request if self._state is None else self._state.resolved).edition(dataset)

    def launched(self, store: RunStore) -> Mapping[str, LaunchedOn]:
        """Return what a store remembers of launches, by search space; empty with search-space files."""
        if self._request.selection.files:
            return {}
        return launched_on(store, partial(register_prepared, prepared_root=self._request.data.root))

    def claims(self) -> list[str]:
        """Return the verdicts on the claims of search-space files, a sentence each, as in the report of each file."""
        if self._state is None:
            return []
        from clops_sweep.analysis.report.claims_frame import all_claims_in_words

        return all_claims_in_words(self._state)

    def changes(self) -> list[str]:
        """Return what changed since the shown runs were computed, a sentence each.

        Without search-space files, only prepared data are compared.
        """
        if self._state is None:
            return []
        has_files = bool(self._request.selection.files)
        since_runs = changes_since_runs(self._state) if has_files else on_earlier_data(self._state)
        return [*self._data.prepared_again(), *since_runs]


def _of_files(request: Request) -> list[str]:
    """Return a sentence with the commands that show what only search-space files say; none with files or without any.

    They are claims and what changed since the runs. A file is executed only if the user names it.
    """
    if request.selection.files:
        return []
    launched = [file for file in launched_files(request.store) if file.path.is_file()]
    claims: dict[str, LaunchedFile] = {}
    for file in launched:
        claims.update(dict.fromkeys(file.claims, file))
    if not launched:
        return []
    commands = []
    for together in loadable_together([file.path for file in launched]):
        words = [_named(file) for file in together]
        commands.append(request.store.command("dashboard", *words, *_prepared_root(request)))
    what = "Whether their data, code or libraries have changed since"
    if claims:
        what = (
            f"The verdicts on {several(len(claims), 'claim')}, and whether data, code or libraries have changed since"
        )
    because = "These runs are shown without their search-space files, which are executed only if you name them."
    first, *others = commands
    same = "Files that declare data or plug-ins of the same names as those are loaded on their own"
    return [f"{because} {what}: {first}", *(f"{same}: {command}" for command in others)]


def _files_of_launches(store: RunStore) -> list[str]:
    """Return the files that a launch of all runs of a store names; empty if no one command can load them."""
    launched = [file.path for file in launched_files(store) if file.path.is_file()]
    if not launched:
        return [file for file in _recorded_files(store)[0] if defines_space(Path(file))]
    return list(map(_named, launched)) if len(loadable_together(launched)) == 1 else []


def _named(path: Path) -> str:
    """Return the path of a file as a command in the current folder names it."""
    here = Path.cwd().resolve()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)


def _remedy(request: Request) -> str:
    """Say how to load the files that the runs of the store record, with the command; empty without any.

    A file is loaded only if the user names it: it is executed, and a store may come from an untrusted source. A file
    that would start a sweep needs a guard first. If all runs are of search-space files, the command names these.
    """
    files, others = _recorded_files(request.store)
    if not files:
        return ""
    guards = []
    for file in files:
        line = line_that_sweeps(Path(file))
        if line is not None:
            guards.append(f"put sweep() in line {line} of {file} under {MAIN_GUARD}")
    words = files
    if others or not all(defines_space(Path(file)) for file in files):
        words = []
        for file in files:
            words += ["--plugins", file]
    groups = loadable_together(list(map(Path, files)))
    if len(groups) > 1:
        listed_files = "; ".join(listed(map(str, together)) for together in groups)
        return f"To show it, name the files that have it. Files that can be loaded together: {listed_files}."
    command = request.store.command("dashboard", *words, *_prepared_root(request))
    if guards:
        return f"To show it, first {' and '.join(guards)} Then use {command}"
    return f"To show it: {command}"


def _prepared_root(request: Request) -> list[str]:
    """Return the option that names the folder of prepared data; nothing if it is the default."""
    root = request.data.root
    return [] if root == default_prepared_root() else ["--prepared-root", str(root)]


def _recorded_files(store: RunStore) -> tuple[list[str], bool]:
    """Return the files that the runs of a store record, and whether other runs record none."""
    files: set[str] = set()
    others = False
    for plugins in store.read("runs", columns=["plugins"])["plugins"].unique():
        of_runs = plugin_files_to_name(store, plugins)
        files.update(of_runs)
        others = others or not of_runs
    return sorted(files), others


def _left_out(space: LeftOutSpace, remedy: str) -> str:
    """Say that a search space is not shown, and the remedy."""
    if space.name is None:
        return f"A search space is not shown, only its runs by their settings: {space.why}"
    why = space.why
    if space.unknown:
        unknown = listed(f"{field} = {shown(name)}: not known" for field, name in space.unknown)
        why = f"its file is not loaded ({unknown})"
    return (
        f"Search space {shown(space.name)} is not shown, only its runs by their settings: {why}. "
        f"{remedy or '--plugins FILE registers what a file declares.'}"
    )


def _frames(data: PreparedData, key: DataKey) -> FrameSet | None:
    """Return the frames of a key, if they are prepared here."""
    try:
        register_prepared(key.dataset, data.root)
        return data.signals(key)
    except (UsageError, OSError):  # tracings are optional: `data verify` reports errors of the frames
        return None
