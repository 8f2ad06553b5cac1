"""The Tune Trainable. The driver imports it, and so it imports no PyTorch: the workers do, when they are set up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ray import tune

if TYPE_CHECKING:
    from clops_sweep.jobs import Workplace


class ContinualRunTrainable(tune.Trainable):
    """A worker as Tune sees it: a trial is a job, of one whole continual-learning run or several in lockstep.

    What it does with a job is in `clops_sweep.job_runner`.
    """

    def setup(self, config: dict[str, Any], workplace: Workplace) -> None:  # type: ignore[override]
        """Called once an actor."""
        from clops_sweep.job_runner import JobRunner

        self._runner = JobRunner(workplace)
        self._runner.assign(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Called when Tune gives this actor its next trial."""
        self._runner.assign(new_config)
        return True

    def step(self) -> dict[str, Any]:
        """A second or so of its job; what it returns is for the display alone."""
        return self._runner.step()

    def cleanup(self) -> None:
        """Called when the sweep is interrupted."""
        self._runner.stop()
