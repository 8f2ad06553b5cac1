"""Seals of claims: a file beside the results that records which claims were declared before the first run."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clops_sweep.errors import DamagedStore, UsageError, several, shown
from clops_sweep.experiment.spaces.claims import claims_as_json, sha256
from clops_sweep.experiment.spaces.selection import file_name
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State


@dataclass(frozen=True)
class Sealed:
    """The content of a seal.

    Attributes:
        path: path of the file.
        content: `sealed_at`, `claims` by key, `space` (SHA-256 of the identities of the runs), `runs` (their number)
            and `data` (content hashes of the data).
    """

    path: str
    content: dict[str, Any]

    def changes(self, request: Request) -> list[str]:
        """Return the differences between the seal and the current search-space files, one phrase each.

        Data that are not prepared on this machine are not compared.
        """
        was, now = self.content, _content(request)
        before, after = was["claims"], now["claims"]
        found = [f"claim {key} was added" for key in sorted(after.keys() - before.keys())]
        found += [f"claim {key} was removed" for key in sorted(before.keys() - after.keys())]
        found += [
            f"claim {key} was edited" for key in sorted(before.keys() & after.keys()) if before[key] != after[key]
        ]
        if was["space"] != now["space"]:
            found.append(f"the search space requests other runs ({now['runs']:,} instead of {was['runs']:,})")
        if not set(now["data"]) <= set(was["data"]):
            found.append("the data differ")
        return found

    def __str__(self) -> str:
        return f"sealed on {self.content['sealed_at'][:16].replace('T', ' at ')} UTC, before the first run"


def seal(request: Request) -> Sealed:
    """Write the seal of the claims of some search-space files, before their first run.

    A seal holds the hashes of the data: those that are not prepared are prepared, with their splits and features.

    Raises:
        UsageError: there are no claims, data cannot be prepared, a run is finished or failed, or a seal exists.
        DamagedStore: a seal exists and was edited.
    """
    if not request.selection.claims:
        raise UsageError("--seal: expected a search-space file that defines CLAIMS")
    if (there := sealed(request)) is not None:
        raise UsageError(f"{there.path}: these claims are {there}; a seal is never replaced")
    if first := State.of(request).request.selection.pretraining:
        raise UsageError(
            f"--seal: encoder = {shown(first[0])} is a config, and a seal holds the hash of its features; expected "
            "'run:RUN_ID' of a finished run"
        )
    request.data.prepare(it.data_key for it in request.selection.configs if request.data_hash(it) is None)
    state = State.of(request)
    if begun := state.plan.count("finished", "failed"):
        raise UsageError(
            f"--seal: {several(begun, 'run')} of this file ended already; claims are sealed before the first"
        )
    content = {"sealed_at": datetime.now(UTC).isoformat(timespec="seconds"), **_content(request)}
    path = _path(request)
    request.store.files.make_folder(path.rpartition("/")[0])
    request.store.files.write(path, json.dumps({**content, "sha256": sha256(content)}, indent=1).encode())
    return Sealed(path, content)


def sealed(request: Request) -> Sealed | None:
    """Return the seal of the claims of some search-space files, or None.

    Raises:
        DamagedStore: the seal was edited.
    """
    path = _path(request)
    try:
        content = json.loads(request.store.files.read(path).to_pybytes())
    except FileNotFoundError:
        return None
    except ValueError:
        content = {}
    digest = content.pop("sha256", None) if isinstance(content, dict) else None
    if digest is None or digest != sha256(content):
        raise DamagedStore(f"{path}: was edited after it was sealed; restore the original file")
    return Sealed(path, content)


def seal_in_words(request: Request) -> str:
    """Return whether the claims are sealed, and what has changed since."""
    there = sealed(request) if request.selection.claims else None
    if there is None:
        return "not sealed"
    changes = there.changes(request)
    return f"{there}" if not changes else f"{there}; changed since: {', '.join(changes)}"


def _path(request: Request) -> str:
    """Return the path of a seal, named after the studies and the places of their files.

    The place alone tells seals apart: a study keeps its seal under a new name, and equal names have different seals.
    """
    store = request.store.files
    start = Path.cwd() if store.folder is None else store.folder.parent
    paths = [Path(os.path.relpath(file.resolve(), start)).as_posix() for file in request.selection.files]
    folder = f"{store.root}/claims"
    ending = f"-{sha256(paths)[:8]}.json"
    for written in store.names(folder):
        if written.endswith(ending):  # under an earlier name of the study
            return f"{folder}/{written}"
    name = "+".join(map(file_name, request.selection.studies))
    return f"{folder}/{name}{ending}"


def _content(request: Request) -> dict[str, Any]:
    configs = request.selection.configs
    identities = sorted({config.identity for config in configs})
    data = sorted({found for config in configs if (found := request.data_hash(config)) is not None})
    claims = claims_as_json(request.selection.claims)
    return {"claims": claims, "space": sha256(identities), "runs": len(identities), "data": data}
