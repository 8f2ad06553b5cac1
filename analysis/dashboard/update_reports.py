"""The update reports of runs: the pages that lie beside the tables of a store, and the command that writes one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clops_sweep.errors import UsageError
from clops_sweep.regular_files import open_regular
from clops_sweep.store.launch_folders import update_report_command
from clops_sweep.store.run_store import RunStore

_FOLDER = "report"
_NAME = re.compile(r"update-([0-9a-f]+)(?:-against-([0-9a-f]+))?(?:-[0-9]+)?\.html")
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
    for name in store.files.names(str(folder / _FOLDER), "update-"):
        about = _NAME.fullmatch(name)
        if about is None or run_id not in about.groups():
            continue
        after, before = about.groups()
        title = "after its last task" if before is None else f"{after[:8]} in place of {before[:8]}"
        reports.append((name, title))
    return reports


def command_for(store: RunStore, run_id: str) -> str:
    """Return the command of the update report of a run; empty without its predictions."""
    return update_report_command(store, run_id) if run_id in store.predicted() else ""


def written_page(store: RunStore, name: str) -> bytes | None:
    """Return an update report by its file name; None if the store has no such page."""
    folder = store.files.folder
    if folder is None or _NAME.fullmatch(name) is None:
        return None
    try:
        with open_regular(folder / _FOLDER / name, _LARGEST) as file:
            return file.read()
    except (OSError, UsageError):
        return None
