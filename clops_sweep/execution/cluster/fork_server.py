"""The process from which the workers of a private Ray are forked (`forked_worker`), during a sweep."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from clops_sweep.execution.cluster import forked_worker
from clops_sweep.execution.ray_internals import Warn, worker_setup

_SCRIPT = os.path.abspath(forked_worker.__file__)


@contextmanager
def fork_server(folder: Path, warn: Warn = warnings.warn) -> Iterator[None]:
    """Let a Ray that starts in the block fork its workers, unless `RayParams` names a setup script; Linux only.

    The server process starts its imports at once, and ends with the block or with this process. If the environment
    names a server, that one is used. If none can be started, Ray starts its workers itself.

    Args:
        folder: private folder for its socket, because anyone who can connect to it can start workers.
        warn: called with a sentence if this release of Ray cannot fork its workers.
    """
    with ExitStack() as at_the_end:
        if sys.platform.startswith("linux") and at_the_end.enter_context(worker_setup(_SCRIPT, warn)):
            try:
                if forked_worker.PLACE not in os.environ:
                    os.environ[forked_worker.PLACE] = _started(at_the_end, folder)
                    at_the_end.callback(os.environ.pop, forked_worker.PLACE, None)
            except OSError:  # the disk is full, or the path is too long for a socket
                at_the_end.close()
        yield


def _started(at_the_end: ExitStack, folder: Path) -> str:
    """Start the process and return the path of its socket.

    Raises:
        OSError: it cannot be started.
    """
    path = str(folder / "workers")
    lifeline, held = os.pipe()  # it ends when the last process closes the other end
    at_the_end.callback(os.close, held)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening, os.fdopen(lifeline):
        listening.bind(path)
        at_the_end.callback(os.unlink, path)
        listening.listen(64)
        handles = listening.fileno(), lifeline
        process = subprocess.Popen(
            [sys.executable, _SCRIPT, "serve", *map(str, handles)],
            env=_environment(), pass_fds=handles, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    at_the_end.callback(process.wait)
    at_the_end.callback(process.kill)  # it may still be busy with its imports
    return path


def _environment() -> dict[str, str]:
    package = str(Path(_SCRIPT).parents[3])
    found = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, "PYTHONPATH": found, **alone}  # a fork would have only one of several threads
