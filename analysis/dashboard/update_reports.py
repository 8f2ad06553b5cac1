"""The update reports of runs: the pages that lie beside the tables of a store, and the commands that write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.experiment.fields import data_key_of_row
from clops_sweep.experiment.spaces.space_files import criteria_beside
from clops_sweep.store.launch_folders import plugin_files_to_name, update_report_command
from clops_sweep.store.run_store import RunStore

from ..stages import has_update

_FOLDER = "report"
_BEGINNING, _ENDING, _AGAINST, _FOLDS = "update-", ".html", "against", "folds"
_HEXADECIMAL = frozenset("0123456789abcdef")
_LARGEST = 2**28
"""Most bytes of a page that is served."""

POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
"""The page has style and script of its own. Whoever wrote the store may have written it: it reads no other page."""


def reports_of(store: RunStore, run_id: str, first_of_folds: str = "") -> Sequence[tuple[str, str]]:
    """Return file name and title of each update report about a run, from a store in a local folder.

    Args:
        store: the store.
        run_id: the run.
        first_of_folds: the run of fold 1 of its settings, after which the report on all folds is named.
    """
    folder = store.files.folder
    if folder is None or not (folder / _FOLDER).is_dir():
        return []
    reports = []
    for name in store.files.names(str(folder / _FOLDER), _BEGINNING):
        ids = _runs_of(name)
        is_of_folds = _FOLDS in _parts(name)
        if run_id not in ids and not (is_of_folds and first_of_folds in ids):
            continue
        title = " in place of ".join(of_run[:8] for of_run in ids)
        if is_of_folds and len(ids) > 1:
            title = f"all folds, {title}"
        if len(ids) == 1:
            title = "all folds, after their last task" if is_of_folds else "after its last task"
        reports.append((name, title))
    return reports


def _runs_of(name: str) -> list[str]:
    """Return the ids in the name of a page: of its run, and of the run that this one replaces; none of other files.

    Names are update-RUN.html or update-RUN-against-RUN.html, both also with "-folds" at the end, and with a number
    before the ending if a page was kept. A page of folds names the run of the first one.
    """
    parts = _parts(name)
    if len(parts) in (2, 3, 4, 5) and parts[-1].isdecimal() and parts[-2] != _AGAINST:
        parts.pop()
    if len(parts) in (2, 4) and parts[-1] == _FOLDS:
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


def commands_for(
    store: RunStore,
    row: Mapping[Any, Any],
    data: PreparedData | None = None,
    files: Sequence[str] = (),
    of_folds: Sequence[str] = (),
) -> list[tuple[str, str]]:
    """Return the commands of the update reports of a finished run, each with what it is about.

    A run without predictions has no command. Subgroups need prepared data of the content that the run was computed on.

    Args:
        store: the store.
        row: the row of the run in the table `runs`.
        data: the prepared data sets.
        files: the search-space files of the dashboard.
        of_folds: the runs of all folds, see `runs_to_pool`.
    """
    run_id = str(row["run_id"])
    if run_id not in store.predicted() or not has_update(store, run_id):
        return []
    words = _criteria(store, row, files)
    groups = _groups(row, data)
    if groups:
        words += ["--groups", ",".join(groups)]
    commands = [("this run", update_report_command(store, run_id, *words))]
    if of_folds and store.predicted().issuperset(of_folds):
        commands.append(("all folds", update_report_command(store, run_id, *words, "--folds")))
    return commands


def _criteria(store: RunStore, row: Mapping[Any, Any], files: Sequence[str]) -> list[str]:
    """Return the acceptance criteria beside the search-space file of a run, as an option; empty without any."""
    candidates = list(plugin_files_to_name(store, row.get("plugins")))
    if len(files) == 1:
        candidates += files
    for file in candidates:
        criteria = criteria_beside(Path(file))
        if criteria.is_file():
            return ["--criteria", str(criteria)]
    return []


def _groups(row: Mapping[Any, Any], data: PreparedData | None) -> tuple[str, ...]:
    """Return the columns for subgroups of the data of a run; none if its frames are not prepared here."""
    if data is None:
        return ()
    with suppress(UsageError, OSError):
        if data.data_hash(data_key_of_row(row)) == row["data_hash"]:
            return data.group_names(str(row["dataset"]))
    return ()


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
