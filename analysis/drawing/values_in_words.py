"""The values of a figure in words, for its alternative text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

MOST_LISTED = 12
"""Most values of a figure that are all listed; of more, the highest and the lowest three are named."""

_FEW = 3


@dataclass(frozen=True)
class NamedValues:
    """The values of a figure: what they are, such as "final validation AUC", and the value of each line, bar or cell.

    `better` is "higher", "lower" or None, as in `Metric`; `percent` is whether values are shares.
    """

    what: str
    values: Sequence[tuple[str, float]]
    better: str | None = None
    percent: bool = False


def values_in_words(named: NamedValues) -> str:
    """Return the values in a sentence or two: all of a few, and the best and the worst."""
    known = [(name, value) for name, value in named.values if math.isfinite(value)]
    if not known:
        return ""

    def said(name: str, value: float) -> str:
        text = f"{value:.1%}" if named.percent else f"{value:.3g}"
        return f"{name} {text}" if name else text

    ranked = sorted(known, key=lambda pair: pair[1], reverse=named.better != "lower")
    if len(known) > MOST_LISTED:
        ends = ("best", "worst") if named.better else ("highest", "lowest")
        top = "; ".join(said(*pair) for pair in ranked[:_FEW])
        bottom = "; ".join(said(*pair) for pair in ranked[-_FEW:])
        return f"{named.what}, {len(known)} values: {ends[0]} {top}; {ends[1]} {bottom}."
    text = f"{named.what}: {'; '.join(said(*pair) for pair in known)}."
    if len(known) > 1 and ranked[0][1] != ranked[-1][1]:
        ends = ("Best", "worst") if named.better else ("Highest", "lowest")
        text += f" {ends[0]}: {ranked[0][0]}; {ends[1]}: {ranked[-1][0]}."
    return text


@runtime_checkable
class HasValues(Protocol):
    """A data record that knows the values of its figure."""

    @property
    def named_values(self) -> NamedValues:
        """The value of each line, bar or cell."""


def record_in_words(record: object) -> str:
    """Return the values of a data record, or of several, in words; empty for a record that has none."""
    records = record if isinstance(record, list | tuple) else (record,)
    texts = [values_in_words(part.named_values) for part in records if isinstance(part, HasValues)]
    return " ".join(text for text in texts if text)
