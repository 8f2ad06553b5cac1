"""The update reports of runs: the pages that lie beside the tables of a store, and the commands that write them."""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, listed
from clops_sweep.experiment.fields import data_key_of_row
from clops_sweep.experiment.spaces.space_files import criteria_beside
from clops_sweep.store.launch_folders import plugin_files_to_name, update_report_command
from clops_sweep.store.run_store import RunStore

from ..page_head import CRITERIA, JUDGED_BY, PARTS, SUBGROUPS
from ..stages import has_update, stored_origin

_FOLDER = "report"
_BEGINNING, _ENDING, _AGAINST, _FOLDS = "update-", ".html", "against", "folds"
_HEXADECIMAL = frozenset("0123456789abcdef")
_BEGINNING_OF_PAGE, _PIECE = 2**20, 2**16
"""Bytes of a page in which its verdict is looked for, and of a piece that is read at once."""

_OUTCOMES = {"met": "passed", "failed": "failed", "unjudged": "not judged"}
"""Classes of the paragraph with the verdict, in words."""

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
        head = _head_of(store, name) or _Head()
        reports.append((name, head.title_of(name, ids)))
    return reports


@dataclass(frozen=True)
class WrittenReport:
    """An update report in a store.

    Attributes:
        file: its file name.
        run_id: the run that it is about; of a report on all folds, that of the first one.
        title: what of the run it is about, with its subgroups, its criteria and the words at its top.
        verdict: "passed", "failed" or "not judged", with its first sentences, such as those on its acceptance criteria;
            empty if it has none.
        written: when it was written, in seconds since 1970.
    """

    file: str
    run_id: str
    title: str
    verdict: str
    written: float


def all_reports(store: RunStore) -> list[WrittenReport]:
    """Return the update reports in a local store, the newest first."""
    reports = []
    for name, written in sorted(_marks(store).items(), key=lambda marked: marked[1], reverse=True):
        ids = _runs_of(name)
        head = _head_of(store, name) if ids else None
        if head is not None:
            reports.append(WrittenReport(name, ids[0], head.title_of(name, ids), head.verdict, written / 1e9))
    return reports


def mark_of_reports(store: RunStore) -> Hashable:
    """Return a value that changes when an update report is written."""
    return tuple(sorted(_marks(store).items()))


def _marks(store: RunStore) -> dict[str, int]:
    """Return when each update report in a local store was written, in nanoseconds, by file name."""
    folder = store.files.folder
    marks = {}
    with suppress(OSError, UsageError):
        if folder is not None and (folder / _FOLDER).is_dir():
            for name in store.files.names(str(folder / _FOLDER), _BEGINNING):
                if _runs_of(name):
                    marks[name] = (folder / _FOLDER / name).stat().st_mtime_ns
    return marks


class _Head(HTMLParser):
    """Reads the beginning of a page: its title, its subgroups, its criteria and its verdict."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read = False
        self._texts: dict[str, str] = {}
        self._parts: list[str] = []
        self._criteria = ""
        self._outcome = ""
        self._inside = ""

    @property
    def verdict(self) -> str:
        """The outcome in a word or two, with the sentences on the acceptance criteria; empty without any."""
        words = " ".join(self._texts.get("verdict", "").split())
        return f"{self._outcome}: {words}" if words and self._outcome else words

    def title_of(self, name: str, ids: Sequence[str]) -> str:
        """Return what of its run a report is about, with its subgroups, its criteria and the words at its top."""
        words = [_title(name, ids)]
        groups = [part.removeprefix(SUBGROUPS) for part in self._parts if part.startswith(SUBGROUPS)]
        if groups:
            words.append(f"by {listed(groups)}")
        for part in self._parts:
            if part.startswith(JUDGED_BY):
                criteria = f"{self._criteria} {part.removeprefix(JUDGED_BY)}".strip()
                words.append(f"criteria {criteria}")
        title, colon, _ = self._texts.get("title", "").rpartition(": Update report")
        if colon:
            words.append(title)
        return ", ".join(words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter the title or the paragraph of the class `verdict`, or keep the parts of the page."""
        if self.is_read:
            return
        attributes = dict(attrs)
        classes = (attributes.get("class") or "").split()
        if tag == "meta" and attributes.get("name") == PARTS:
            with suppress(ValueError, TypeError):
                self._parts = [str(part) for part in json.loads(attributes.get("content") or "")]
        elif tag == "meta" and attributes.get("name") == CRITERIA:
            self._criteria = attributes.get("content") or ""
        elif tag == "title":
            self._inside = "title"
        elif tag == "p" and "verdict" in classes:
            self._inside = "verdict"
            self._outcome = next((_OUTCOMES[name] for name in classes if name in _OUTCOMES), "")

    def handle_endtag(self, tag: str) -> None:
        """Leave it."""
        self.is_read = self.is_read or self._inside == "verdict"
        self._inside = ""

    def handle_data(self, data: str) -> None:
        """Keep its text."""
        if self._inside and not self.is_read:
            self._texts[self._inside] = self._texts.get(self._inside, "") + data


def _head_of(store: RunStore, name: str) -> _Head | None:
    """Return what the beginning of a page says; None if the store has no such page."""
    folder = store.files.folder
    if folder is None:
        return None
    page = folder / _FOLDER / name
    with suppress(OSError, UsageError):
        return _head_as_written(page, page.stat().st_mtime_ns)
    return None


@lru_cache(maxsize=1000)
def _head_as_written(page: Path, written: int) -> _Head:
    """Return what the beginning of a page says; it is read once, although an open dashboard asks again and again.

    Args:
        page: path of the page.
        written: when it was written, in nanoseconds.
    """
    del written
    head = _Head()
    with open_regular(page, _LARGEST) as file:
        decoder = getincrementaldecoder("utf-8")("replace")
        for _ in range(_BEGINNING_OF_PAGE // _PIECE):
            piece = file.read(_PIECE)
            head.feed(decoder.decode(piece))
            if head.is_read or not piece:
                break
    return head


def _title(name: str, ids: Sequence[str]) -> str:
    """Return what of its run a report is about."""
    is_of_folds = _FOLDS in _parts(name)
    if len(ids) > 1:
        title = " in place of ".join(of_run[:8] for of_run in ids)
        return f"all folds, {title}" if is_of_folds else title
    return "all folds, after their last task" if is_of_folds else "after its last task"


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

    A run without predictions has no command. A run that began from another one is compared with it. Subgroups need
    prepared data of the content that the run was computed on.

    Args:
        store: the store.
        row: the row of the run in the table `runs`.
        data: the prepared data sets.
        files: the search-space files of the dashboard.
        of_folds: the runs of all folds, see `runs_to_pool`.
    """
    run_id = str(row["run_id"])
    origin = stored_origin(store, row)
    if run_id not in store.predicted() or not (origin or has_update(store, run_id)):
        return []
    words = _criteria(store, row, files)
    groups = _groups(row, data)
    if groups:
        words += ["--groups", ",".join(groups)]
    if origin is not None:
        return [("this run", update_report_command(store, run_id, *words, "--against", origin))]
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
