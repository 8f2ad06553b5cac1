"""Fine-tuning: one task after another, without storage or replay. The lower bound."""

from __future__ import annotations

from clops_sweep.learning.method.strategy import Strategy


class FineTuning(Strategy):
    """Plain training without any measure against forgetting."""

    stores = "nothing"
