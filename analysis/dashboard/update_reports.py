"""The update reports of runs: the pages that lie beside the tables of a store, and the command that writes one."""

from __future__ import annotations

from collections.abc import Sequence

from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UsageError
from clops_sweep.store.launch_folders import update_report_command
from clops_sweep.store.run_store import RunStore

_FOLDER = "report"
_BEGINNING, _ENDING, _AGAINST, _FOLDS = "update-", ".html", "against", "folds"
_HEXADECIMAL = frozenset("0123456789abcdef")
_LARGEST = 2**28
"""Most bytes of a page that is served."""

POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
"""The page has style and script of its own. Whoever wrote the store may have written it: it reads no other page."""


def reports_of(store: RunStore, run_id: str) -> Sequence[tuple[str, str]]:
    """Return file name and title of each update report about a run, from a store in a local folder."""
    folder = store.files.folder
    if folder is None or not (folder / _FOLDER).is_dir():
        return []
    reports = []
    for name in store.files.names(str(folder / _FOLDER), _BEGINNING):
        ids = _runs_of(name)
        if run_id not in ids:
            continue
        title = " in place of ".join(of_run[:8] for of_run in ids)
        if len(ids) == 1:
            title = "all folds, after their last task" if _FOLDS in _parts(name) else "after its last task"
        reports.append((name, title))
    return reports


def _runs_of(name: str) -> list[str]:
    """Return the ids in the name of a page: of its run, and of the run that this one replaces; none of other files.

    Names are update-RUN.html, update-RUN-folds.html or update-RUN-against-RUN.html, with a number before the ending if
    a page was kept. A page of folds names the run of the first one.
    """
    parts = _parts(name)
    if len(parts) in (2, 3, 4) and parts[-1].isdecimal() and parts[-2] != _AGAINST:
        parts.pop()
    if len(parts) == 2 and parts[1] == _FOLDS:
        parts.pop()
    if len(parts) == 3 and parts[1] == _AGAINST:
        parts.pop(1)
    elif len(parts) != 1:
        return []
    are_ids = all(part and _HEXADECIMAL.issuperset(part) for part in parts)
    return parts if are_ids else []


def _parts(name: str) -> list[str]:
    """Return the parts of the name of a page, between its beginning and its ending; none of other files."""
    if not (name.startswith(_BEGINNING) and name.endswith(_ENDING)):
        return []
    return name.removeprefix(_BEGINNING).removesuffix(_ENDING).split("-")


def command_for(store: RunStore, run_id: str) -> str:
    """Return the command of the update report of a run; empty without its predictions."""
    return update_report_command(store, run_id) if run_id in store.predicted() else ""


def written_page(store: RunStore, name: str) -> bytes | None:
    """Return an update report by its file name; None if the store has no such page."""
    folder = store.files.folder
    if folder is None or not _runs_of(name):
        return None
    try:
        with open_regular(folder / _FOLDER / name, _LARGEST) as file:
            return file.read()
    except (OSError, UsageError):
        return None
