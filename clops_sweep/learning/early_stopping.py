"""EarlyStopping: the end of a task's training, and the epoch that the run returns to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class EarlyStopping:
    """Watches the validation loss of the task that is trained, and keeps the state of the epoch where it was lowest.

    A task ends when `patience` epochs in a row have not lowered the loss (Prechelt, 1998).

    Args:
        patience: epochs.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._epoch, self._loss = 0, float("inf")
        self._kept: Any = None

    def ends(self, epoch: int, loss: float, state: Callable[[], Any]) -> bool:
        """Return whether the task ends after an epoch.

        Args:
            epoch: how many epochs of the task have been trained.
            loss: on the task's validation set.
            state: returns a copy of everything that training has changed; called if the loss is the lowest so far.
        """
        if self._kept is None or loss < self._loss:
            self._epoch, self._loss, self._kept = epoch, loss, state()
        return epoch - self._epoch >= self._patience

    def best(self) -> tuple[int, Any]:
        """Return the epoch with the lowest loss, from 1, and its state; the next task begins with nothing kept."""
        epoch, kept = self._epoch, self._kept
        self._epoch, self._loss, self._kept = 0, float("inf"), None
        return epoch, kept

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs."""
        return {"epoch": self._epoch, "loss": self._loss, "kept": self._kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a state that `state` returned."""
        self._epoch, self._loss, self._kept = state["epoch"], state["loss"], state["kept"]
