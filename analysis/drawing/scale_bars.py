"""Lengths of scale bars."""

from __future__ import annotations

import math

_STEPS = (5, 2, 1)


def bar_length(span: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is at most half a span; 0 for a span of none."""
    half = span / 2
    if not 0 < half < math.inf:
        return 0.0
    power = 10.0 ** math.floor(math.log10(half))
    for step in _STEPS:
        if step * power <= half * (1 + 1e-9):
            return step * power
    return power
