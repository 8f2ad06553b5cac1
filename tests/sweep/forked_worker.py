"""Ray's workers, forked from a process that has imported PyTorch and pandas: a start takes three seconds less.

Ray is given this file in the place of its own `default_worker.py` and `setup_worker.py`. What a worker then does is
what stands in the first of them.

`preloaded.py` has the process that they are forked from. Called by Ray, this file asks there for a worker, and is there
as long as that is: it imports little, since each worker waits for it.
"""

from __future__ import annotations

import json
import os
import socket
import sys

PLACE = "CLOPS_TEST_WORKERS"  # the environment variable with the path of the socket
TAG = "CLOPS_TEST_TAG"
_SETUP = ("--language=", "--serialized-runtime-env-context=")  # what Ray tells `setup_worker.py` alone
IMPORTED = (  # what Ray and a worker of a sweep need, without Ray: as it is imported, it looks up for which job that is
    *("fsspec", "grpc", "jsonschema", "pandas", "pyarrow.parquet", "requests", "rich.live", "torch", "yaml"),
    *("clops_sweep.learning.native_learner", "clops_sweep.learning.run", "clops_sweep.store.rows"),
)


def serve(listening: socket.socket, environment: dict[str, str]) -> None:
    """Forks a worker whenever one is asked for.

    Args:
        listening: where they are asked for.
        environment: that of their Ray.
    """
    import gc
    import random
    import runpy
    import signal
    from importlib.util import find_spec
    from pathlib import Path

    import numpy as np

    assert "ray" not in sys.modules
    ray = find_spec("ray")
    assert ray is not None
    assert ray.origin is not None
    script = Path(ray.origin).parent / "_private" / "workers" / "default_worker.py"

    _show_tag(environment[TAG])
    os.environ[TAG] = environment[TAG]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    while True:
        asking, _ = listening.accept()
        message, handles, _, _ = socket.recv_fds(asking, 2**20, 3)
        if message and os.fork() == 0:
            break
        for handle in handles:
            os.close(handle)
        asking.close()
    listening.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setpgid(0, 0)  # Ray ends a worker with its group
    for ours, handle in enumerate(handles):
        os.dup2(handle, ours)
        os.close(handle)
    asked = json.loads(message)
    _show_tag(asked["environment"].get(TAG, ""))
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    random.seed()
    np.random.seed()  # noqa: NPY002
    sys.argv = [str(script), *asked["arguments"]]
    sys.path[0] = str(script.parent)
    runpy.run_path(str(script), run_name="__main__")


def _show_tag(tag: str) -> None:
    """Writes a tag over the one that this process has been started with, in what others see of its environment."""
    before = os.environ[TAG].encode()
    with open("/proc/self/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    first, last = int(fields[47]), int(fields[48])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(first)
        place = memory.read(last - first).find(TAG.encode() + b"=" + before)
        if place >= 0 and len(tag) == len(before):
            memory.seek(first + place + len(TAG) + 1)
            memory.write(tag.encode())


def ask(arguments: list[str]) -> None:
    """Has a worker forked, and stays until it has ended."""
    environment = dict(os.environ)
    for argument in arguments:
        if argument.startswith(_SETUP[1]):
            environment |= json.loads(argument.removeprefix(_SETUP[1])).get("env_vars") or {}
    arguments = [argument for argument in arguments if argument != __file__ and not argument.startswith(_SETUP)]
    request = {"environment": environment, "folder": os.getcwd(), "arguments": arguments}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as worker:
        worker.connect(environment[PLACE])
        socket.send_fds(worker, [json.dumps(request).encode()], [0, 1, 2])
        worker.recv(1)


if __name__ == "__main__":
    ask(sys.argv[1:])
