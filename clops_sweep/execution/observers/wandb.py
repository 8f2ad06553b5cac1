"""`--observe wandb[:PROJECT]` or `wandb:ENTITY/PROJECT`: runs in Weights & Biases, also offline."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import wandb

from clops_sweep.execution.observers.scalars import scalars
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.events import Event, RunEnd


class WeightsAndBiases:
    """Logs each run as a W&B run with the same id, so that a resumed run continues it.

    With WANDB_MODE=offline, runs are written to the folder `WANDB_DIR`, by default one beside the logs. `wandb sync`
    uploads them later.

    Args:
        target: the project, or entity and project; None for WANDB_PROJECT, else `clops-sweep`.
        folder: the folder of offline data, unless WANDB_DIR names another one.
    """

    def __init__(self, target: str | None, folder: str) -> None:
        named = target or os.environ.get("WANDB_PROJECT") or "clops-sweep"
        entity, _, project = named.rpartition("/")
        self._entity = entity or None
        self._project = project
        self._folder = Path(os.environ.get("WANDB_DIR") or folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._runs: dict[str, Any] = {}

    def __call__(self, event: Event) -> None:
        """Log an event."""
        if event.run_id not in self._runs:
            self._runs[event.run_id] = wandb.init(
                entity=self._entity,
                project=self._project,
                dir=str(self._folder),
                id=event.run_id,
                name=event.run_id,
                config=config_row(event.config),
                resume="allow",
                reinit="create_new",
                settings=wandb.Settings(console="off", silent=True),
            )
        run = self._runs[event.run_id]
        if isinstance(event, RunEnd):
            run.summary.update(scalars(event))
            run.finish(exit_code=0 if event.status == "finished" else 1)
            del self._runs[event.run_id]
        else:
            run.log(scalars(event) | {"epochs": event.progress.step})
