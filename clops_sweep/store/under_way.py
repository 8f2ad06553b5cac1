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
"""Between two writes without news, in a folder and where each is a request over a network."""

SECONDS_APART = 0.2
"""Between two writes with news on an object store."""

_PAUSES_PER_LOOK = 100
"""A look at the files of many launches takes long: it is repeated after so many times what it took."""

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
    """The file of one launch, and what it has to know about those of others.

    Args:
        store: where the files are.
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
            with suppress(OSError):  # only here: results that are deleted in mid-sweep must not be made again
                self._files.make_folder(self._folder)
        self._next_look = -math.inf
        self._elsewhere: frozenset[str] = frozenset()
        self._beats: dict[str, tuple[object, float]] = {}

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
            now = _now(self._files, self._folder)
            marks = self._files.marks(self._folder, self._names())
            stale = [name for name, (_, changed, *_) in marks.items() if now - changed / 1e9 > STALE]
            self._files.delete([self._path, *(f"{self._folder}/{name}" for name in stale)])

    def taken_elsewhere(self) -> frozenset[str]:
        """Return the runs that other launches have taken.

        A file counts while it changes at least every `STALE` seconds by the clock of this process. Clocks of two
        machines are not compared. When this launch first sees a file, it compares the times at which the file system
        saw that file and its own change.
        """
        began = time.monotonic()
        if began >= self._next_look:
            found: set[str] = set()
            with suppress(OSError, UsageError):
                for name in self._names():
                    content = _read(self._files, f"{self._folder}/{name}")
                    if self._is_live(name, content["written_at"]) and not _has_ended(content):
                        found.update(*(it.run_ids for it in _valid(content)), content["taken"])
            self._elsewhere = frozenset(found)
            ended = time.monotonic()
            self._next_look = ended + _PAUSES_PER_LOOK * (ended - began)
        return self._elsewhere

    def _names(self) -> list[str]:
        """The files of other launches, without those of other shards: they have no run in common with this one."""
        return [it for it in self._files.names(self._folder) if it != self._name and not _disjoint(it, self._name)]

    def _is_live(self, name: str, beat: object) -> bool:
        now = time.monotonic()
        known, since = self._beats.get(name, (None, -math.inf))
        if beat != known:
            own, other = self._files.mark(self._path), self._files.mark(f"{self._folder}/{name}")
            old = known is None and own is not None and other is not None and own[1] - other[1] > STALE * 1e9
            since = -math.inf if old else now
            self._beats[name] = beat, since
        return now - since < STALE


def runs_under_way(store: RunStore) -> tuple[UnderWay, ...]:
    """Return the runs that launches on a store are computing now, on any machine. Unreadable files are ignored."""
    found: list[UnderWay] = []
    files, folder = store.files, _folder(store)
    with suppress(OSError, UsageError):
        names = files.names(folder)
        now = _now(files, folder) if names else 0.0
        for name, (_, changed, *_) in sorted(files.marks(folder, names).items()):
            with suppress(OSError, UsageError):
                content = _read(files, f"{folder}/{name}")
                if content["runs"] and now - changed / 1e9 <= STALE and not _has_ended(content):
                    clocks_differ = 60 * round((time.time() - content["written_at"]) / 60)
                    found += [
                        replace(it, ends_at=it.ends_at + clocks_differ) if it.ends_at else it for it in _valid(content)
                    ]
    return tuple(found)


def _now(files: Files, folder: str) -> float:
    """Return the time by the clock of the file system, or else by that of this machine."""
    if files.local:
        with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_mtime
    return time.time()


def _disjoint(one: str, other: str) -> bool:
    """Return whether two files are of different shards of one division."""
    first, second = _SHARD.search(one), _SHARD.search(other)
    return first is not None and second is not None and first[2] == second[2] and first[1] != second[1]


def _machine() -> str:
    """Return in which processes a process id is unique: those of a machine, or of a container on it."""
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
    """Return the content of a file; for any other content, that of a launch without runs."""
    with suppress(ValueError, RecursionError):
        content = json.loads(files.read(path).to_pybytes())
        if isinstance(content, dict) and isinstance(content.get("runs"), list):
            taken, at = content.get("taken"), content.get("written_at")
            content["taken"] = [it for it in taken if isinstance(it, str)] if isinstance(taken, list) else []
            content["written_at"] = at if isinstance(at, int | float) and math.isfinite(at) else time.time()
            return content
    return {"runs": [], "taken": [], "written_at": None}


def _valid(content: dict[str, Any]) -> list[UnderWay]:
    return [it for it in map(_under_way, content["runs"]) if it is not None]


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
