"""Workers of a private Ray, forked from a process that has imported PyTorch: they start faster and share memory.

While Ray starts, a server process imports the modules of workers (`fork_server`). Ray runs this file instead of its own
`setup_worker.py`: it requests a fork and lives as long as the fork; without an answer it does what Ray's file does. The
worker then runs Ray's `default_worker.py`.

This file imports little, because each worker waits for it.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Mapping

PLACE = "CLOPS_SWEEP_WORKERS"
"""Environment variable with the path of the socket for fork requests."""

_CONTEXT, _LANGUAGE = "--serialized-runtime-env-context=", "--language="
"""Arguments that Ray passes only to `setup_worker.py`."""

IMPORTED = (
    *("filelock", "fsspec", "google.protobuf.json_format", "google.protobuf.text_format", "grpc", "html"),
    *("jsonschema", "logging.config", "logging.handlers", "msgpack", "pandas", "pdb", "pyarrow.parquet", "requests"),
    *("rich.live", "socketserver", "statistics", "torch", "yaml"),
    *("clops_sweep.learning.learners.native_learner", "clops_sweep.learning.run", "clops_sweep.store.rows"),
    *("clops_sweep.execution.display.live", "clops_sweep.execution.feeding.feed"),
    "clops_sweep.execution.observers.events",
)
"""Modules that Ray and a worker need. Not Ray itself, which reads its job when it is imported."""


def serve(
    listening: socket.socket, lifeline: int | None = None, begin: Callable[[Mapping[str, str]], object] | None = None
) -> None:
    """Fork a worker for each request. Workers start with the modules imported here (`IMPORTED`).

    Args:
        listening: socket for requests.
        lifeline: file descriptor that ends the server once it becomes readable; None to run until killed.
        begin: called first in each worker, with its environment.
    """
    import gc
    import random
    import runpy
    import select
    import signal

    import numpy as np

    assert "ray" not in sys.modules
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # keeps imported objects in shared memory
    ends = [] if lifeline is None else [lifeline]
    while True:
        if lifeline in select.select([listening.fileno(), *ends], [], [])[0]:
            return
        asking, _ = listening.accept()
        message, handles, _, _ = socket.recv_fds(asking, 2**20, 3)
        if message and os.fork() == 0:
            break
        for handle in handles:
            os.close(handle)
        asking.close()
    listening.close()
    for end in ends:
        os.close(end)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)  # Ray ends a worker with its group
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
        os.close(handle)
    asked = json.loads(message)
    if begin is not None:
        begin(asked["environment"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    random.seed()
    np.random.seed()  # noqa: NPY002
    sys.argv = [asked["script"], *asked["arguments"]]
    sys.path[0] = os.path.dirname(asked["script"])
    runpy.run_path(asked["script"], run_name="__main__")


def _serve(listening: socket.socket, lifeline: int) -> None:
    """Import the modules of workers, and serve until the parent process is gone."""
    import importlib

    sys.path[0] = os.path.dirname(os.__file__)  # instead of the folder of this file
    for name in IMPORTED:
        importlib.import_module(name)
    serve(listening, lifeline)


def _ask(script: str, *arguments: str) -> None:
    """Request a fork that runs Ray's script, and wait until it has ended."""
    told = [argument for argument in arguments if not argument.startswith((_CONTEXT, _LANGUAGE))]
    context = next((argument.removeprefix(_CONTEXT) for argument in arguments if argument.startswith(_CONTEXT)), "{}")
    environment = os.environ | (json.loads(context).get("env_vars") or {})
    request = {"environment": environment, "folder": os.getcwd(), "script": script, "arguments": told}
    try:
        worker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        worker.connect(environment[PLACE])
        socket.send_fds(worker, [json.dumps(request).encode()], [0, 1, 2])
    except (OSError, KeyError):
        setup = os.path.join(os.path.dirname(script), "setup_worker.py")
        os.execv(sys.executable, [sys.executable, setup, script, *arguments])
    worker.recv(1)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(socket.socket(fileno=int(sys.argv[2])), int(sys.argv[3]))
    else:
        _ask(*[argument for argument in sys.argv[1:] if argument not in ("-S", "-s")])
