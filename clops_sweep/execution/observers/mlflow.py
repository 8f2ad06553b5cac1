"""`--observe mlflow[:TRACKING_URI]`: runs in MLflow, with params and metrics over epochs."""

from __future__ import annotations

import os
import re
import time

from mlflow import MlflowClient
from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException

from clops_sweep.execution.observers.scalars import scalars
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.events import Event, RunEnd

_TAG = "clops_sweep.run_id"
_AT_ONCE = 100
"""Most params that MLflow accepts in one request."""


class MLflow:
    """Logs each run as an MLflow run in the experiment `MLFLOW_EXPERIMENT_NAME`, by default `clops-sweep`.

    The tag `clops_sweep.run_id` identifies the MLflow run, so that a resumed run continues it.

    Args:
        target: the tracking URI; None for MLFLOW_TRACKING_URI.
        folder: not used.
    """

    def __init__(self, target: str | None, folder: str) -> None:
        del folder
        self._client = MlflowClient(tracking_uri=target)
        self._experiment = self._experiment_id(os.environ.get("MLFLOW_EXPERIMENT_NAME") or "clops-sweep")
        self._runs: dict[str, str] = {}
        self._steps: dict[str, int] = {}

    def __call__(self, event: Event) -> None:
        """Send an event."""
        run_id = event.run_id
        if run_id not in self._runs:
            self._runs[run_id] = self._under_way(run_id) or self._begun(event)
        if not isinstance(event, RunEnd):
            self._steps[run_id] = event.progress.step
        now = round(1000 * time.time())
        step = self._steps.get(run_id, 0)
        metrics = [Metric(_allowed(name), value, now, step) for name, value in scalars(event).items()]
        self._client.log_batch(self._runs[run_id], metrics=metrics)
        if isinstance(event, RunEnd):
            self._client.set_terminated(self._runs[run_id], event.status.upper())
            del self._runs[run_id]

    def _experiment_id(self, name: str) -> str:
        experiment = self._client.get_experiment_by_name(name)
        if experiment is None:
            try:
                return str(self._client.create_experiment(name))
            except MlflowException:  # another launch has just created it
                experiment = self._client.get_experiment_by_name(name)
                if experiment is None:
                    raise
        return str(experiment.experiment_id)

    def _under_way(self, run_id: str) -> str | None:
        wanted = f"tags.`{_TAG}` = '{run_id}' and attributes.status = 'RUNNING'"
        runs = self._client.search_runs([self._experiment], wanted, max_results=1)
        return str(runs[0].info.run_id) if runs else None

    def _begun(self, event: Event) -> str:
        run = self._client.create_run(self._experiment, tags={_TAG: event.run_id}, run_name=event.run_id)
        params = [Param(name, str(value)) for name, value in config_row(event.config).items()]
        for first in range(0, len(params), _AT_ONCE):
            self._client.log_batch(run.info.run_id, params=params[first : first + _AT_ONCE])
        return str(run.info.run_id)


def _allowed(name: str) -> str:
    """Return a metric's name with the characters that MLflow allows."""
    return re.sub(r"[^\w\-./ ]", "_", name)
