"""Options of earlier versions: values that stored runs of this version's methods have, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FormerOption:
    """An option that a built-in strategy had in an earlier version.

    Attributes:
        strategy: name of the strategy.
        without: the value that left the option out of the method. Runs with it are runs of this version, too.
        instead: the settings to use instead, in words.
    """

    strategy: str
    without: Any
    instead: str


FORMER_OPTIONS: Mapping[str, FormerOption] = {
    "er_storage_order": FormerOption("er", "random", "strategy = 'clops' with storage_order"),
    "er_acquire": FormerOption("er", False, "strategy = 'clops' with acquisition and acquisition_fraction"),
    "er_flip_strength": FormerOption("er", None, "strategy = 'flip_penalty' with flip_strength"),
}
"""Up to 0.3 `er` had parts of CLOPS and the flip penalty as options."""


def instead_of(name: str) -> str:
    """Return what to use instead of a former option, as the end of a sentence about it."""
    former = FORMER_OPTIONS[name]
    return f"strategy {former.strategy!r} has no such option since 0.4; expected {former.instead}"


def identity_of_former(strategy: str) -> dict[str, Any]:
    """Return the values of a strategy's former options in the identity of its runs, so that stored runs stay found."""
    identity = {}
    for name, former in FORMER_OPTIONS.items():
        if former.strategy == strategy and former.without is not None:
            identity[name] = former.without
    return identity
