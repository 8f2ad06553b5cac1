"""The process that workers of a Ray of one's own are forked from (`forked_worker`), for the time of a sweep."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

from ray._private.parameter import RayParams

from clops_sweep.execution.cluster import forked_worker

_SCRIPT = os.path.abspath(forked_worker.__file__)


@contextmanager
def fork_server(folder: Path) -> Iterator[None]:
    """A Ray that is started inside has its workers forked, unless it is told otherwise; only where that is usual.

    The process that they are forked from starts to import what they need at once, and ends with the block, or with
    this process. Where the environment names one already, it is that one. Where none can be started, workers start as
    Ray has it.

    Args:
        folder: where its socket is; a private one, since workers are started for all who can connect to it.
    """
    if not sys.platform.startswith("linux") or RayParams().worker_path is not None:
        yield
        return
    kept = RayParams.update_if_absent
    with ExitStack() as at_the_end:
        try:
            if forked_worker.PLACE not in os.environ:
                os.environ[forked_worker.PLACE] = _started(at_the_end, folder)
                at_the_end.callback(os.environ.pop, forked_worker.PLACE, None)
        except OSError:  # no room for a socket, or a path that is too long for one
            pass
        else:
            at_the_end.callback(setattr, RayParams, kept.__name__, kept)
            setattr(RayParams, kept.__name__, _with_forks(kept))
        yield


def _started(at_the_end: ExitStack, folder: Path) -> str:
    """Starts the process; where its socket is.

    Raises:
        OSError: it cannot be started.
    """
    path = str(folder / "workers")
    lifeline, held = os.pipe()  # it ends when nobody holds the other end any more
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
    return {**os.environ, "PYTHONPATH": found, **alone}  # of several threads a fork would have but one


def _with_forks(update: Any) -> Any:
    """How Ray completes its parameters, with our script in the place of the one that prepares its workers."""

    def completed(params: RayParams, **defaults: Any) -> None:
        ours = {"setup_worker_path": _SCRIPT} if "setup_worker_path" in defaults else {}
        update(params, **defaults | ours)

    return completed
