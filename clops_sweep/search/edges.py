"""Chosen values on the edge of what a search tried. A better one may lie beyond."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.options import OPTIONS, bounds_of
from clops_sweep.experiment.plugins.values import is_number
from clops_sweep.search.records import Edge

_NEAR = 0.02
"""Share of a range without steps that counts as its edge, on the scale of the search."""
_FEWEST = 3
"""Numbers of a parameter from which one of them can be on an edge and another not."""


def edges_of(params: Mapping[str, Any], distributions: Mapping[str, BaseDistribution]) -> dict[str, Edge]:
    """Return the parameters whose value is the lowest or the highest of at least three numbers that a search tries.

    Of a range without steps, the outer 2 % count as its edge. A value on a limit of its config field or option is left
    out, because nothing lies beyond it. The parameters keep their order.

    Args:
        params: the value of each parameter.
        distributions: what a search tries for each parameter.
    """
    edges: dict[str, Edge] = {}
    for name, value in params.items():
        ends = _ends(distributions[name])
        if ends is None or not is_number(value):
            continue
        lowest, highest = ends
        bounds = _limits(name)
        near = _near(distributions[name])
        place, first, last = (_on_scale(distributions[name], number) for number in (value, lowest, highest))
        if place - first <= near and lowest != bounds.get("ge"):
            edges[name] = "lowest"
        elif last - place <= near and highest != bounds.get("le"):
            edges[name] = "highest"
    return edges


def _ends(distribution: BaseDistribution) -> tuple[float, float] | None:
    """Return the lowest and the highest number that a search tries; None unless it tries three."""
    if isinstance(distribution, CategoricalDistribution):
        choices = [choice for choice in distribution.choices if isinstance(choice, int | float) and is_number(choice)]
        if len(choices) < len(distribution.choices):
            return None
        lowest, highest = float(min(choices)), float(max(choices))
        count = float(len(set(choices)))
    elif isinstance(distribution, FloatDistribution | IntDistribution):
        lowest, highest = float(distribution.low), float(distribution.high)
        count = _count(distribution)
    else:
        return None
    return (lowest, highest) if count >= _FEWEST else None


def _count(distribution: FloatDistribution | IntDistribution) -> float:
    """Return how many numbers a range has."""
    if distribution.low == distribution.high:
        return 1
    if distribution.step is None:
        return math.inf
    return round((distribution.high - distribution.low) / distribution.step) + 1


def _near(distribution: BaseDistribution) -> float:
    """Return the distance from an end of a range that counts as its edge, on the scale of the search."""
    if not isinstance(distribution, FloatDistribution) or distribution.step is not None:
        return 0.0
    return _NEAR * (_on_scale(distribution, distribution.high) - _on_scale(distribution, distribution.low))


def _on_scale(distribution: BaseDistribution, number: float) -> float:
    is_logarithmic = isinstance(distribution, FloatDistribution) and distribution.log
    return math.log(number) if is_logarithmic else float(number)


def _limits(name: str) -> dict[str, float]:
    """Return the limits of a config field or an option; none if it is not known."""
    if name in RunConfig.model_fields:
        return bounds_of(RunConfig.model_fields[name].metadata)
    return bounds_of(OPTIONS[name].metadata) if name in OPTIONS else {}
