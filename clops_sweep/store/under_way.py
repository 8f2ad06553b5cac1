"""Running runs: a small file per launch, rewritten while it runs, that other processes read.

The files are advisory leases too: a launch postpones runs that another one has taken. Nothing depends on them. Without
them, or with wrong ones, a run is computed twice and recorded once.
"""

from __future__ import annotations

import json
import math
import os
import re
import socket
import tempfile
import time
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from clops_sweep.data.files.folder import is_alive
from clops_sweep.errors import UsageError
from clops_sweep.store.files import Files
from clops_sweep.store.run_store import RunStore

STALE = 60.0
"""Seconds after which a file is ignored: its launch was killed, or its machine failed."""

SECONDS, SECONDS_ELSEWHERE = 2.0, 10.0
"""Seconds between two writes without news: in a folder, and on an object store, where each is a request."""

SECONDS_APART = 0.2
"""Between two writes with news on an object store."""

_PAUSES_PER_LOOK = 100
"""The files of many launches take long to read: the next look waits this many times as long."""

_SHARD = re.compile(r"\.(\d+)-of-(\d+)\.json$")


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
    """The file of one launch, and what it knows about those of other launches.

    Args:
        store: the store that holds the files.
        shard: the part of the runs that the launch computes, such as "3/16"; empty for all.
    """

    def __init__(self, store: RunStore, shard: str = "") -> None:
        self._files, self._folder = store.files, _folder(store)
        part = f".{shard.replace('/', '-of-')}" * bool(shard)
        self._name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}{part}.json"
        self._path = f"{self._folder}/{self._name}"
        self.is_local = store.files.local
        self.seconds = SECONDS if store.files.local else SECONDS_ELSEWHERE
        if self.is_local:
            with suppress(OSError):  # only here, because results deleted during a sweep must not be created again
                self._files.make_folder(self._folder)
        self._next_look = -math.inf
        self._elsewhere: frozenset[str] = frozenset()
        self._changes: dict[str, tuple[object, float]] = {}

    def write(self, runs: Sequence[UnderWay], taken: Collection[str] = ()) -> None:
        """Write the runs under way, and the ids of those that workers have taken. Errors are ignored."""
        content = {
            "written_at": time.time(), "machine": _machine(), "pid": os.getpid(),
            "runs": [asdict(it) for it in runs], "taken": list(taken),
        }  # fmt: skip
        text = json.dumps(content)
        with suppress(OSError, UsageError):
            if self.is_local:  # without a flush to the disk: the file is of no use after a power failure
                staging = Path(self._folder, f".{self._name}")
                staging.write_text(text)
                os.replace(staging, self._path)
            else:
                self._files.write(self._path, text.encode())

    def remove(self) -> None:
        """Remove the file, and stale files of killed launches that computed the same runs."""
        with suppress(OSError, UsageError):
            stale = [name for name, age in _ages(self._files, self._folder, self._names()).items() if age > STALE]
            self._files.delete([self._path, *(f"{self._folder}/{name}" for name in stale)])

    def taken_elsewhere(self) -> frozenset[str]:
        """Return the runs that other launches have taken.

        A file counts while it changes at least every `STALE` seconds by the clock of this process, whatever the clocks
        of other machines say. At the first look, its age is the difference to this launch's own file.
        """
        began = time.monotonic()
        if began >= self._next_look:
            found: set[str] = set()
            with suppress(OSError, UsageError):
                names = self._names()
                new = [name for name in names if name not in self._changes]
                ages = _ages(self._files, self._folder, [self._name, *new] if new else [])
                own = ages.get(self._name, 0.0)
                for name in names:
                    content = _read(self._files, f"{self._folder}/{name}")
                    beat = content["written_at"]
                    if name in new:
                        self._changes[name] = beat, began - max(0.0, ages.get(name, own) - own)
                    elif beat != self._changes[name][0]:
                        self._changes[name] = beat, began
                    if began - self._changes[name][1] <= STALE and not _has_ended(content):
                        found.update(*(it.run_ids for it in content["runs"]), content["taken"])
            self._elsewhere = frozenset(found)
            ended = time.monotonic()
            self._next_look = ended + _PAUSES_PER_LOOK * (ended - began)
        return self._elsewhere

    def _names(self) -> list[str]:
        """Return the files of other launches, except those of other shards, which share no run with this one."""
        return [it for it in self._files.names(self._folder) if it != self._name and not _disjoint(it, self._name)]


def runs_under_way(store: RunStore) -> tuple[UnderWay, ...]:
    """Return the runs that launches on a store are computing now, on any machine. Unreadable files are ignored."""
    found: list[UnderWay] = []
    files, folder = store.files, _folder(store)
    with suppress(OSError, UsageError):
        for name, age in sorted(_ages(files, folder, files.names(folder)).items()):
            content = _read(files, f"{folder}/{name}")
            if content["runs"] and age <= STALE and not _has_ended(content):
                clocks_differ = 60 * round((time.time() - content["written_at"]) / 60)
                found += [
                    replace(it, ends_at=it.ends_at + clocks_differ) if it.ends_at else it for it in content["runs"]
                ]
    return tuple(found)


def _ages(files: Files, folder: str, names: Collection[str]) -> dict[str, float]:
    """Return for how many seconds files have not changed, by the clock of the file system or else of this machine."""
    now = time.time()
    if files.local and names:
        with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
            now = os.fstat(file.fileno()).st_mtime
    return {name: now - changed / 1e9 for name, (_, changed, *_) in files.marks(folder, names).items()}


def _disjoint(one: str, other: str) -> bool:
    """Return whether two files are of different shards of one division."""
    first, second = _SHARD.search(one), _SHARD.search(other)
    return first is not None and second is not None and first[2] == second[2] and first[1] != second[1]


def _machine() -> str:
    """Return the scope in which a process id is unique: a machine, or a container on it."""
    with suppress(OSError):
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def _has_ended(content: dict[str, Any]) -> bool:
    """Return whether the launch ran on this machine and was killed."""
    pid = content.get("pid")
    return content.get("machine") == _machine() and isinstance(pid, int) and pid > 0 and not is_alive(pid)


def _folder(store: RunStore) -> str:
    return f"{store.work_folder}/under_way"


def _read(files: Files, path: str) -> dict[str, Any]:
    """Return the content of a file with its valid runs; for any other content, that of a launch without runs."""
    with suppress(OSError, ValueError, RecursionError):
        content = json.loads(files.read(path).to_pybytes())
        if isinstance(content, dict) and isinstance(content.get("runs"), list):
            content["runs"] = [it for it in map(_under_way, content["runs"]) if it is not None]
            taken, at = content.get("taken"), content.get("written_at")
            content["taken"] = [it for it in taken if isinstance(it, str)] if isinstance(taken, list) else []
            content["written_at"] = at if isinstance(at, int | float) and math.isfinite(at) else time.time()
            return content
    return {"runs": [], "taken": [], "written_at": None}


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
