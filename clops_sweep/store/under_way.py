"""Running runs: a small file per launch that other processes read."""

from __future__ import annotations

import json
import math
import os
import socket
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from clops_sweep.errors import UsageError
from clops_sweep.store.files import Files
from clops_sweep.store.run_store import RunStore

STALE = 60.0
"""Seconds after which a file is ignored: its launch was killed, or its machine failed."""


@dataclass(frozen=True)
class UnderWay:
    """Runs that a worker computes together.

    Attributes:
        run_ids: their ids.
        name: their name for display.
        task, tasks, epoch, epochs: the last finished epoch, counted from 1; 0 before the first.
        ends_at: expected end in seconds since 1970; 0 if unknown.
    """

    run_ids: tuple[str, ...]
    name: str
    task: int = 0
    tasks: int = 0
    epoch: int = 0
    epochs: int = 0
    ends_at: float = 0.0


class UnderWayFile:
    """The file of one launch. It is rewritten as a whole, and removed at the end."""

    def __init__(self, store: RunStore) -> None:
        self._files = store.files
        self._path = f"{_folder(store)}/{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.json"

    def write(self, runs: Sequence[UnderWay]) -> None:
        """Write the runs under way. Errors are ignored: a sweep does not need the file."""
        content = {"written_at": time.time(), "runs": [asdict(it) for it in runs]}
        with suppress(OSError, UsageError):
            self._files.write(self._path, json.dumps(content).encode())

    def remove(self) -> None:
        """Remove the file, and stale files of killed launches."""
        with suppress(OSError, UsageError):
            folder = self._path.rpartition("/")[0]
            others = [f"{folder}/{name}" for name in self._files.names(folder)]
            self._files.delete([self._path, *(it for it in others if _age(_read(self._files, it)) > STALE)])


def runs_under_way(store: RunStore) -> tuple[UnderWay, ...]:
    """Return the runs that launches on a store are computing now, on any machine. Unreadable files are ignored."""
    found: list[UnderWay] = []
    with suppress(OSError, UsageError):
        for name in store.files.names(_folder(store)):
            with suppress(OSError, UsageError):
                content = _read(store.files, f"{_folder(store)}/{name}")
                if _age(content) <= STALE:
                    found += [it for it in map(_under_way, content["runs"]) if it is not None]
    return tuple(found)


def _folder(store: RunStore) -> str:
    return f"{store.work_folder}/under_way"


def _read(files: Files, path: str) -> dict[str, Any]:
    """Return the content of a file; for any other content, an infinitely old file without runs."""
    with suppress(ValueError, RecursionError):
        content = json.loads(files.read(path).to_pybytes())
        if isinstance(content, dict) and isinstance(content.get("runs"), list):
            return content
    return {"runs": []}


def _age(content: dict[str, Any]) -> float:
    written = content.get("written_at")
    return time.time() - written if isinstance(written, int | float) else math.inf


def _under_way(given: Any) -> UnderWay | None:
    """Return a valid entry, or None."""
    if not isinstance(given, dict):
        return None
    values: dict[str, Any] = {field.name: given.get(field.name) for field in fields(UnderWay)}
    ids = values.pop("run_ids")
    numbers = [value for name, value in values.items() if name != "name"]
    if not isinstance(ids, list) or not ids or not all(isinstance(it, str) for it in [*ids, values["name"]]):
        return None
    if not all(isinstance(it, int | float) and math.isfinite(it) for it in numbers):
        return None
    return UnderWay(tuple(ids), **values)
