"""Makes Tune take every death of a worker for one.

Ray ends workers when a machine's memory runs out, and says so with an error that Tune does not know: it would end the
whole sweep, where it only has to do without one worker.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import clops_sweep.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

from ray.air.execution._internal.actor_manager import RayActorManager
from ray.exceptions import NodeDiedError, OutOfMemoryError, RayActorError, WorkerCrashedError

_DEATHS = (NodeDiedError, OutOfMemoryError, WorkerCrashedError)
_heard = RayActorManager._actor_task_failed


@wraps(_heard)
def _hear(self: Any, tracked_actor_task: Any, exception: Exception) -> None:
    if isinstance(exception, _DEATHS):
        exception = RayActorError(error_msg=str(exception))
    _heard(self, tracked_actor_task, exception)


def install() -> None:
    """From now on, for all sweeps of this process."""
    setattr(RayActorManager, _heard.__name__, _hear)
