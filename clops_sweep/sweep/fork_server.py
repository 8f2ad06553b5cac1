"""The process that workers of a Ray of one's own are forked from (`forked_worker`), for the time of a sweep."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import clops_sweep.sweep.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

from ray._private.parameter import RayParams

from clops_sweep.sweep import forked_worker

_SCRIPT = os.path.abspath(forked_worker.__file__)


@contextmanager
def fork_server(folder: str | None = None) -> Iterator[None]:
    """A Ray that is started inside has its workers forked, unless it is told otherwise; only where that is usual.

    It starts to import what they need at once, and ends with the block, or with this process.

    Args:
        folder: where its socket is; None for the folder of temporary files.
    """
    if not sys.platform.startswith("linux") or RayParams().worker_path is not None:
        yield
        return
    place = Path(tempfile.mkdtemp(prefix="clops-sweep-workers-", dir=folder))
    kept = RayParams.update_if_absent
    lifeline, held = os.pipe()
    process = None
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(place / "socket"))
            listening.listen(64)
            process = _started(listening.fileno(), lifeline)
        os.environ[forked_worker.PLACE] = str(place / "socket")
        setattr(RayParams, kept.__name__, _with_forks(kept))
        yield
    finally:
        setattr(RayParams, kept.__name__, kept)
        os.environ.pop(forked_worker.PLACE, None)
        for end in (lifeline, held):
            os.close(end)
        if process is not None:
            process.kill()  # it may still be busy with its imports
            process.wait()
        shutil.rmtree(place, ignore_errors=True)


def _started(*handles: int) -> subprocess.Popen[bytes]:
    package = str(Path(_SCRIPT).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))}
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1"  # a fork has but one of its threads
    command = [sys.executable, _SCRIPT, "serve", *map(str, handles)]
    return subprocess.Popen(
        command, env=environment, pass_fds=handles, stdin=subprocess.DEVNULL, start_new_session=True
    )


def _with_forks(update: Any) -> Any:
    """How Ray completes its parameters, with our script in the place of the one that prepares its workers."""

    def completed(params: RayParams, **defaults: Any) -> None:
        ours = {"setup_worker_path": _SCRIPT} if "setup_worker_path" in defaults else {}
        update(params, **defaults | ours)

    return completed
