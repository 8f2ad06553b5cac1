"""Which trial Tune takes next."""

from __future__ import annotations

from typing import Any

import clops_sweep.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler

from clops_sweep.cluster import Resources


class FirstWithoutWorker(FIFOScheduler):
    """First come, first served, but a worker that is free does not take a trial whose own worker is just starting.

    Tune would then end that other worker and start one for the trial after, which the free worker is there for first as
    well: as long as a trial takes less than the start of a worker, a single one would do all the work.
    """

    def __init__(self, resources: Resources) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._resources = resources

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """The next trial.

        Of the places in the cluster, those where no trial is running, but for the one of the free worker, are where
        workers start or are being reset, for the trials that have waited longest.
        """
        trials: list[Trial] = tune_controller.get_trials()
        waiting = [trial for trial in trials if trial.status == Trial.PENDING]
        if not waiting:
            return None
        running = sum(trial.status == Trial.RUNNING for trial in trials)
        taken = self._resources.places() - running - 1
        return waiting[min(max(taken, 0), len(waiting) - 1)]
