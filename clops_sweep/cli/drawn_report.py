"""What the report of a launch was drawn from: a launch that changes none of it leaves the report as it is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import clops_sweep
from clops_sweep.analysis.report.marks import DRAWN_FROM
from clops_sweep.data.files.folder import one_sentence
from clops_sweep.experiment.spaces.claims import claims_as_json
from clops_sweep.planning.claim_seal import seal_in_words
from clops_sweep.planning.state import State
from clops_sweep.search.records import journal_of
from clops_sweep.store.verdict_files import FOLDER as VERDICTS

_PAGE = "index.html"
_LIBRARIES = ("matplotlib", "numpy", "pandas", "scipy")


def drawn_from(state: State) -> str:
    """Return a digest of everything that decides the report of a launch: runs, studies, space, options and code."""
    digest = hashlib.sha256()
    for text in _inputs(state):
        digest.update(hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest())
    return digest.hexdigest()


def is_current(folder: Path, digest: str) -> bool:
    """Return whether a folder holds the report with a digest."""
    with suppress(OSError, ValueError):
        return (folder / _PAGE).is_file() and (folder / DRAWN_FROM).read_text() == digest
    return False


def remember(folder: Path, digest: str) -> None:
    """Write the digest of a report that was drawn."""
    with one_sentence(folder / DRAWN_FROM):
        (folder / DRAWN_FROM).write_text(digest)


def _inputs(state: State) -> Iterator[str]:
    """Yield each input as text."""
    request = state.resolved
    store = request.store
    selection = request.selection
    yield store.files.anywhere
    yield " ".join(part.name for part in store.parts.live())
    yield hashlib.sha256(journal_of(store) or b"").hexdigest()
    yield " ".join(f"{run.run_id} {run.state}" for run in state.plan.asked)
    yield repr([selection.settings, selection.seeds, *map(str, selection.files)])
    for file in selection.files:
        yield file.read_text()
    for space in selection.spaces:
        yield repr([space.name, space.axes, list(space.seeds), sorted(space.base.explicit.items())])
    if selection.claims:
        yield json.dumps(claims_as_json(selection.claims), sort_keys=True)
        yield seal_in_words(state)
        yield " ".join(store.files.names(f"{store.files.root}/{VERDICTS}"))
    for library in _LIBRARIES:
        yield version(library)
    yield clops_sweep.__version__
    for path in sorted(_sources()):
        facts = path.stat()
        yield f"{path} {facts.st_size} {facts.st_mtime_ns}"


def _sources() -> set[Path]:
    """Return the files of the package that are installed here."""
    from clops_sweep import analysis

    folders = (*clops_sweep.__path__, *analysis.__path__)
    return {path for folder in folders for path in Path(folder).rglob("*.py")}
