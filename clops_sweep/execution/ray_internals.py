"""Changes to Ray and Tune for which they have no settings; no other file uses their private names.

Each change is a context manager. If this release of Ray lacks a name that the change needs, Ray runs without the
change, and one warning says what the user loses.
"""

from __future__ import annotations

import pkgutil
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import clops_sweep.execution.ray_environment  # noqa: F401  # Ray reads these settings when it is imported

# isort: split

import ray
from ray.exceptions import NodeDiedError, OutOfMemoryError, RayActorError, WorkerCrashedError

from clops_sweep.execution.start_check import memory_limit_in_words

_SECONDS_TO_START = 180.0
_SECONDS_BETWEEN_TRIES = 0.1

Warn = Callable[[str], object]


def _private(name: str) -> Any:
    """Return a private object of Ray.

    Raises:
        LookupError: this release of Ray does not have it.
    """
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        raise LookupError(f"Ray {ray.__version__} has no {name}") from None


@contextmanager
def _changed(changes: Callable[[], dict[str, Any]], loss: str, warn: Warn) -> Iterator[bool]:
    """Replace private objects of Ray inside the block, all or none; yields whether this release has all of them."""
    with ExitStack() as restored:
        try:
            for name, replacement in changes().items():
                owner, _, attribute = name.rpartition(".")
                restored.callback(setattr, _private(owner), attribute, _private(name))
                setattr(_private(owner), attribute, replacement)
            complete = True
        except LookupError as missing:
            restored.close()
            warn(f"{missing}: {loss}")
            complete = False
        yield complete


def loopback(warn: Warn = warnings.warn) -> AbstractContextManager[bool]:
    """Make Ray use 127.0.0.1 as the address of this machine, as it does by itself on macOS and Windows.

    If that address is requested in any other way, Ray replaces it with one that other machines can reach, and listens
    on all interfaces.
    """
    loss = "Ray may listen on all network interfaces, where other machines can reach it"
    return _changed(lambda: {"ray._private.ray_constants.ENABLE_RAY_CLUSTER": False}, loss, warn)


def without_dashboard(warn: Warn = warnings.warn) -> AbstractContextManager[bool]:
    """Make Ray start neither autoscaler nor dashboard, and wait for its processes as long as a busy machine takes.

    With `include_dashboard=False`, Ray still starts the dashboard's process and a full agent. Ray has no setting for
    the 30 seconds after which it stops waiting for its raylet.
    """
    nodes: list[Any] = []

    def changes() -> dict[str, Any]:
        get_node = _private("ray._private.services.get_node")
        dead_processes = _private("ray._private.node.Node.dead_processes")
        gcs_client = _private("ray._private.node.Node.get_gcs_client")
        address = _private("ray._private.ray_constants.DASHBOARD_ADDRESS").encode()
        namespace = _private("ray._private.ray_constants.KV_NAMESPACE_DASHBOARD")

        def no_dashboard(node: Any, **options: Any) -> None:
            nodes.append(node)
            node._webui_url = ""
            # The agent asks every second for the dashboard's address until it finds one.
            gcs_client(node).internal_kv_put(address, b"127.0.0.1:0", True, namespace)

        def patiently(*arguments: Any, **options: Any) -> Any:
            until = time.monotonic() + _SECONDS_TO_START
            while True:
                try:
                    return get_node(*arguments, **options)
                except RuntimeError:  # the raylet has not registered yet
                    if dead := [name for node in nodes for name, _ in dead_processes(node)]:
                        raise ChildProcessError(
                            f"a process of Ray has died while it started ({', '.join(dead)}){memory_limit_in_words()}"
                        ) from None
                    if time.monotonic() > until:
                        raise TimeoutError(
                            f"Ray has not started within {_SECONDS_TO_START:g} s; this machine is too busy"
                        ) from None
                    time.sleep(_SECONDS_BETWEEN_TRIES)

        return {
            "ray._private.node.Node.start_monitor": lambda node: None,
            "ray._private.node.Node.start_api_server": no_dashboard,
            "ray._private.services.get_node": patiently,
            "ray._private.utils.get_dashboard_dependency_error": lambda: ImportError("no dashboard is wanted"),
        }

    return _changed(changes, "Ray also starts its dashboard, and gives up if it takes more than 30 s to start", warn)


def worker_setup(script: str, warn: Warn = warnings.warn) -> AbstractContextManager[bool]:
    """Make Ray start each worker through this script instead of its own `setup_worker.py`, unless another is set."""

    def changes() -> dict[str, Any]:
        _private("ray._private.workers.setup_worker")  # the script runs it if it cannot fork a worker
        update_if_absent = _private(name := "ray._private.parameter.RayParams.update_if_absent")

        def with_script(params: Any, **defaults: Any) -> None:
            ours = {"setup_worker_path": script} if "setup_worker_path" in defaults else {}
            update_if_absent(params, **defaults | ours)

        return {name: with_script}

    return _changed(changes, "workers start more slowly, and each takes 260 MB of memory instead of 90", warn)


def worker_deaths(warn: Warn = warnings.warn) -> AbstractContextManager[bool]:
    """Make Tune recognise every death of a worker, so that the sweep continues.

    Ray ends workers if a machine's memory runs out, with an error that Tune does not know and that ends the sweep.
    """

    def changes() -> dict[str, Any]:
        name = "ray.air.execution._internal.actor_manager.RayActorManager._actor_task_failed"
        task_failed = _private(name)

        def task_or_worker_failed(manager: Any, tracked_actor_task: Any, exception: Exception) -> None:
            if isinstance(exception, (NodeDiedError, OutOfMemoryError, WorkerCrashedError)):
                exception = RayActorError(error_msg=str(exception))
            task_failed(manager, tracked_actor_task, exception)

        return {name: task_or_worker_failed}

    return _changed(changes, "if memory runs out and Ray ends a worker, the whole sweep may end", warn)


def dead_processes(warn: Warn = warnings.warn) -> Callable[[], list[str]]:
    """Return a function that lists the processes of this process's own Ray that have died."""
    try:
        look = _private("ray._private.worker._global_node.dead_processes")
    except LookupError as missing:
        warn(f"{missing}: if a process of Ray dies, this command may end without a message")
        return list
    return lambda: [name for name, _ in look()]
