"""Strategies by the name that a config gives them."""

from __future__ import annotations

from collections.abc import Mapping

from clops_sweep.learning.strategies.base import Strategy
from clops_sweep.learning.strategies.clops import CLOPS
from clops_sweep.learning.strategies.finetune import FineTuning

STRATEGIES: Mapping[str, type[Strategy]] = {"clops": CLOPS, "finetune": FineTuning}
