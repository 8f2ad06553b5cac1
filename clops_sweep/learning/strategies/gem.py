"""GEM: gradients that would undo a past task are projected (Lopez-Paz and Ranzato, 2017; as adapted by CLOPS)."""

from __future__ import annotations

import torch

from clops_sweep.learning.batches import Epoch
from clops_sweep.learning.strategies.memory import RandomMemory
from clops_sweep.learning.strategies.projection import projected

_MEMORY_BATCH = 256


class GradientEpisodicMemory(RandomMemory):
    """Every step after the first task follows a gradient that does not oppose any past task's memory gradient.

    Let g be the gradient of the batch and g_k that of the mean loss over the memory of past task k. The step follows

        argmin_g' |g' - g|^2 / 2   subject to   <g', g_k> >= 0 for every past task k,

    solved in its dual with a margin (see `project`). The paper stores the last instances of a task; here, as in CLOPS,
    they are random.

    Adam follows the projected gradient. Its step is not parallel to that gradient, so the constraints hold only for the
    gradient; with plain SGD they would hold for the step, too.
    """

    def setup(self) -> None:
        """Create the memory."""
        super().setup()
        self._outcomes = torch.zeros(2, dtype=torch.int64, device=self.device)
        """Number of steps with a violated constraint, and of steps without a projection."""
        self._projections, self._failures = self._outcomes

    def train_with_memory(self, current: Epoch, task: int, epoch: int) -> None:
        """Take steps along the projected gradient, or the plain one without a violated constraint or a projection.

        Each step has a random memory batch of each past task, at most 256 instances, with its own dropout masks.
        """
        for past, places in self.places.items():
            if len(places) > _MEMORY_BATCH:
                chosen = self.choices("memory batch", current, places, _MEMORY_BATCH, task, epoch, past)
            else:
                chosen = places.expand(len(current.sizes), -1)
            used = self.memory.replay(chosen.flatten()).instances
            current.keep_memory(f"memory {past}", used, self.keys("memory dropout", current, task, epoch, past))
        names = [f"memory {past}" for past in self.places]
        self.learner.train_along(current, names, self._projected)

    def _projected(self, gradient: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        """Return the projection, [P], of a gradient, [P], given memory gradients, [J, P]."""
        followed, outcomes = projected(gradient, memory)
        self._outcomes += outcomes
        return followed

    def counts(self) -> dict[str, int]:
        """Return the number of steps with a violated constraint, and of steps for which no projection was found."""
        return {"projections": int(self._projections), "projection_failures": int(self._failures)}
