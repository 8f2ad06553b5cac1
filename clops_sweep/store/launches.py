"""Launches: each writes a small file while it runs, with what its workers compute, and one with its pending runs.

`status` and the dashboard read them, and a launch is refused that would compute runs of another one.
"""

from __future__ import annotations

import json
import math
import os
import socket
import tempfile
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from clops_sweep.errors import UsageError, option, several
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.events import Progress
from clops_sweep.store.run_store import RunStore

STALE = 60.0
"""Seconds after which a file is ignored: its launch was killed, or its machine failed."""

SECONDS, SECONDS_ELSEWHERE = 2.0, 10.0
"""Seconds between two writes: in a folder, and on an object store, where each is a request."""

_PENDING = ".pending"


@dataclass(frozen=True)
class UnderWay:
    """A run that a worker computes.

    Attributes:
        run_id: its id.
        name: its name for display.
        progress: the epochs that have ended; None before the first.
        ends_at: expected end in seconds since 1970; 0 if unknown.
        request: the id that its config has without data (see `request_id`); empty if unknown. It tells which search
            space requests the run before the store holds a run on its data.
    """

    run_id: str
    name: str
    progress: Progress | None = None
    ends_at: float = 0.0
    request: str = ""


def request_id(config: RunConfig) -> str:
    """Return the id of a config without its data, which is equal for requests of the same run."""
    return config.run_id("")


class LaunchFile:
    """The files of one launch.

    Args:
        store: the store that holds them.
    """

    def __init__(self, store: RunStore) -> None:
        self._store, self._files, self._folder = store, store.files, _folder(store)
        self._path = f"{self._folder}/{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.json"
        self.seconds = SECONDS if store.files.local else SECONDS_ELSEWHERE

    def begin(self, run_ids: Collection[str]) -> None:
        """Write the files, unless another launch computes some of the runs.

        Raises:
            UsageError: another launch does.
            OSError: the files cannot be written.
        """
        with self._store.locked():
            for name, content in _living(self._store):
                pending = _json(self._store, f"{self._folder}/{name}{_PENDING}")
                shared = set(run_ids) & set(pending if isinstance(pending, list) else ())
                if shared:
                    raise UsageError(
                        f"results {self._files.shown}: another launch (process {content.get('pid')} on "
                        f"{str(content.get('machine')).partition(' ')[0]}) is computing {several(len(shared), 'run')} "
                        f"of these; wait until it has ended, or give each launch its {option('shard')}"
                    )
            self._files.make_folder(self._folder)
            self._files.write(f"{self._path}{_PENDING}", json.dumps(sorted(run_ids)).encode())
            self.write([])

    def write(self, runs: Sequence[UnderWay]) -> None:
        """Write the runs under way. Errors are ignored."""
        content = {
            "written_at": time.time(),
            "machine": _machine(),
            "pid": os.getpid(),
            "runs": list(map(asdict, runs)),
        }
        with suppress(OSError, UsageError):
            if self._files.local:  # without a flush to the disk: the file is of no use after a power failure
                staging = Path(f"{self._folder}/.{uuid.uuid4().hex}")
                staging.write_text(json.dumps(content))
                os.replace(staging, self._path)
            else:
                self._files.write(self._path, json.dumps(content).encode())

    def remove(self) -> None:
        """Remove the files, and those of killed launches."""
        with suppress(OSError, UsageError):
            ages = _ages(self._store)
            gone = [self._path, *(f"{self._folder}/{name}" for name, age in ages.items() if age > STALE)]
            self._files.delete(f"{path}{end}" for path in gone for end in ("", _PENDING))


def runs_under_way(store: RunStore, *, elsewhere: bool = False) -> tuple[UnderWay, ...]:
    """Return the runs that launches on a store are computing now, on any machine. Unreadable files are ignored.

    Args:
        store: the store.
        elsewhere: whether to leave out the launches of this process, whose files may be seconds old.
    """
    own = (os.getpid(), _machine())
    under_way: list[UnderWay] = []
    with suppress(OSError, UsageError):
        for _, content in _living(store):
            if elsewhere and (content.get("pid"), content.get("machine")) == own:
                continue
            clocks_differ = _clock_difference(content.get("written_at"))
            runs = content.get("runs")
            for given in runs if isinstance(runs, list) else ():
                run = _under_way(given)
                if run is not None and run.ends_at:
                    run = replace(run, ends_at=run.ends_at + clocks_differ)
                if run is not None:
                    under_way.append(run)
    return tuple(under_way)


def _clock_difference(written_at: object) -> float:
    """Return by how many whole minutes, in seconds, the clock of this machine is ahead of that of a launch."""
    if not isinstance(written_at, int | float) or not math.isfinite(written_at):
        return 0.0
    return 60.0 * round((time.time() - written_at) / 60)


def _living(store: RunStore) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the files of launches that run: they were written a moment ago, and their process was not killed."""
    for name, age in sorted(_ages(store).items()):
        content = _json(store, f"{_folder(store)}/{name}")
        if age <= STALE and isinstance(content, dict):
            pid, here = content.get("pid"), content.get("machine") == _machine()
            if not (here and isinstance(pid, int) and pid > 0 and not _is_alive(pid)):
                yield name, content


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        if Path(f"/proc/{process}/stat").read_bytes().rpartition(b") ")[2].startswith(b"Z"):
            return False  # killed, and its parent, such as the first process of a container, does not wait for it
    except ProcessLookupError:
        return False
    except OSError:  # of another user, or not on Linux
        pass
    return True


def _ages(store: RunStore) -> dict[str, float]:
    """Return for how many seconds files have not changed, by the clock of the file system or else of this machine."""
    files, folder, now = store.files, _folder(store), time.time()
    names = [name for name in files.names(folder) if not name.endswith(_PENDING)]
    if files.local and names:
        with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
            now = os.fstat(file.fileno()).st_mtime
    return {name: now - changed / 1e9 for name, (_, changed, *_) in files.marks(folder, names).items()}


def _machine() -> str:
    """Return the scope in which a process id is unique: a machine, or a container on it."""
    with suppress(OSError):
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    return socket.gethostname()


def _folder(store: RunStore) -> str:
    return f"{store.work_folder}/launches"


def _json(store: RunStore, path: str) -> Any:
    """Return the content of a file; None if it is no JSON."""
    with suppress(OSError, ValueError, RecursionError):
        return json.loads(store.files.read(path).to_pybytes())
    return None


def _under_way(given: Any) -> UnderWay | None:
    """Return a valid entry, or None."""
    if not isinstance(given, dict):
        return None
    run_id = given.get("run_id")
    name = given.get("name")
    ends_at = given.get("ends_at")
    if not (run_id and isinstance(run_id, str) and isinstance(name, str)):
        return None
    if not (isinstance(ends_at, int | float) and math.isfinite(ends_at)):
        return None
    request = given.get("request", "")
    if not isinstance(request, str):
        return None
    recorded = given.get("progress")
    if recorded is None:
        return UnderWay(run_id, name, ends_at=ends_at, request=request)
    progress = Progress.of(recorded) if isinstance(recorded, dict) else None
    return None if progress is None else UnderWay(run_id, name, progress, ends_at, request)
