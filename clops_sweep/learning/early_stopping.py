"""EarlyStopping: ends a task's training and restores its best epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class EarlyStopping:
    """Monitors the validation loss of the current task, and keeps the state of the epoch with the lowest loss.

    A task ends after `patience` consecutive epochs without a lower loss (Prechelt, 1998).

    Args:
        patience: number of epochs.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._epoch, self._loss = 0, float("inf")
        self._kept: Any = None

    def ends(self, epoch: int, loss: float, state: Callable[[], Any]) -> bool:
        """Return whether the task ends after an epoch.

        Args:
            epoch: number of trained epochs of the task.
            loss: loss on the task's validation set.
            state: returns a copy of the training state; called if the loss is the lowest so far.
        """
        if self._kept is None or loss < self._loss:
            self._epoch, self._loss, self._kept = epoch, loss, state()
        return epoch - self._epoch >= self._patience

    def best(self) -> tuple[int, Any]:
        """Return the epoch with the lowest loss, from 1, and its state, and reset for the next task."""
        best = self._epoch, self._kept
        self._epoch, self._loss, self._kept = 0, float("inf"), None
        return best

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"epoch": self._epoch, "loss": self._loss, "kept": self._kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state from `state`."""
        self._epoch, self._loss, self._kept = state["epoch"], state["loss"], state["kept"]
