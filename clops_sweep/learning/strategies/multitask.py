"""Multi-task learning: all tasks at once. The paper's MTL row, and an upper bound if tasks do not compete."""

from __future__ import annotations

from typing import ClassVar

from clops_sweep.learning.method.strategy import Strategy


class MultiTask(Strategy):
    """Plain training on the union of all tasks for N tau epochs, as many as the other strategies train."""

    joint: ClassVar[bool] = True
    stores = "raw"
