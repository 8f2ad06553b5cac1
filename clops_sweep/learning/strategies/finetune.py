"""Fine-tuning: one task after another, without storage or replay. The lower bound."""

from __future__ import annotations

from clops_sweep.learning.strategies.base import Method


class FineTuning(Method):
    """Plain training without any measure against forgetting."""

    stores = "nothing"
