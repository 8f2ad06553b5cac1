"""Facts about a config field or an option, stated where it is defined. Lists of fields are derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic.fields import FieldInfo

Decides = Literal["data", "tasks", "training", "method", "draw", "evaluation"]
"""What a field decides.

data: the frames, and which people are in which part of them. tasks: what the tasks are and their order. training: how
the network is made and trained, whatever the method. method: the method that is compared with others. draw: a random
draw, which repetitions of a run differ in. evaluation: only what is measured.
"""

_TRAINED_ALIKE = frozenset({"method", "draw", "evaluation"})


@dataclass(frozen=True)
class FieldFacts:
    """Facts about a config field or an option. By default, runs that differ in it are neither comparable nor alike.

    Attributes:
        decides: what it decides; see `Decides`.
        equal_cost: whether runs that differ in it alone take about the same time.
    """

    decides: Decides = "training"
    equal_cost: bool = False

    @property
    def equal_training(self) -> bool:
        """Whether runs that differ in it alone count as equally trained."""
        return self.decides in _TRAINED_ALIKE


_KEY = "facts"


def stating(decides: Decides, *, equal_cost: bool = False) -> dict[str, Any]:
    """Return facts as `json_schema_extra` of a pydantic field; arguments as in `FieldFacts`."""
    return {_KEY: FieldFacts(decides, equal_cost)}


def stated_by(field: FieldInfo) -> FieldFacts:
    """Return the facts that the definition of a field or option states; the safe defaults if it states none."""
    extra: Any = field.json_schema_extra or {}
    facts = extra.get(_KEY)
    return facts if isinstance(facts, FieldFacts) else FieldFacts()


def facts_in(fields: Mapping[str, FieldInfo]) -> dict[str, FieldFacts]:
    """Return the facts of each field by name."""
    return {name: stated_by(field) for name, field in fields.items()}
