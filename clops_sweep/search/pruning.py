"""Asynchronous successive halving (ASHA; Li et al., 2020): which trials go on from a rung.

The decision of Optuna's `SuccessiveHalvingPruner`, as a function of the values alone. Optuna's own keeps in the study
that it was asked, and lets a trial go on if it is asked again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from clops_sweep.experiment.spaces.optuna_search import Direction


def goes_on(value: float, others: Sequence[float], reduction_factor: int, direction: Direction) -> bool:
    """Return whether a trial goes on: its value is among the best 1 / reduction_factor on the rung, or the best one.

    Args:
        value: its value at the rung. A trial whose value is not a number is pruned.
        others: the values of the other trials that have reached the rung.
        reduction_factor: number of trials that compete for one place on the next rung.
        direction: whether a larger or a smaller value is better.
    """
    if math.isnan(value):
        return False
    values = [other for other in others if not math.isnan(other)]
    values.append(value)
    values.sort(reverse=direction == "maximize")
    places = max(1, len(values) // reduction_factor)
    last = values[places - 1]
    return value >= last if direction == "maximize" else value <= last
