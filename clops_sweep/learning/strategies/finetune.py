"""Fine-tuning: one task after another, nothing stored, nothing replayed. The lower bound."""

from __future__ import annotations

from clops_sweep.learning.strategies.base import LockstepStrategy


class FineTuning(LockstepStrategy):
    """Plain training without any defence against forgetting."""

    stores = "nothing"
