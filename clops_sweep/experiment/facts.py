"""Facts about a config field or an option, stated where it is defined. Lists of fields are derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal

from pydantic.fields import FieldInfo

Decides = Literal["data", "tasks", "training", "method", "draw", "evaluation"]
"""What a field decides.

data: the frames, and which people are in which part of them. tasks: what the tasks are and their order. training: how
the network is made and trained, whatever the method. method: the method that is compared with others. draw: a random
draw, which repetitions of a run differ in. evaluation: only what is measured.
"""

_TRAINED_ALIKE = frozenset({"method", "draw", "evaluation"})


class _FirstVersion(Enum):
    FIELD = "a field of the first version"


FIRST: Final = _FirstVersion.FIELD
"""`FieldFacts.before` of a field that every stored run has."""


@dataclass(frozen=True)
class FieldFacts:
    """Facts about a config field or an option. By default, runs that differ in it are neither comparable nor alike.

    Attributes:
        decides: what it decides; see `Decides`.
        equal_cost: whether runs that differ in it alone take about the same time.
        replicate: whether runs that differ in it alone repeat one configuration.
        prepared: whether the prepared frames that a run opens depend on it.
        is_seed: whether its numbers are seeds: names, which no axis of a figure orders.
        of_steps: whether it changes gradient steps alone, so that it has no effect on a run without any.
        before: value in runs that were stored before the field existed; `FIRST` if every stored run has it.
        left_out: whether `before` is left out of the identity, as None always is.
        not_searched: the reason why a search must not vary it; empty if it may.
    """

    decides: Decides = "training"
    equal_cost: bool = False
    replicate: bool = False
    prepared: bool = False
    is_seed: bool = False
    of_steps: bool = False
    before: Any = FIRST
    left_out: bool = False
    not_searched: str = ""

    @property
    def equal_training(self) -> bool:
        """Whether runs that differ in it alone count as equally trained."""
        return self.decides in _TRAINED_ALIKE


_KEY = "facts"


def stating(facts: FieldFacts) -> dict[str, Any]:
    """Return facts as `json_schema_extra` of a pydantic field."""
    return {_KEY: facts}


def stated_by(field: FieldInfo) -> FieldFacts:
    """Return the facts that the definition of a field or option states; the safe defaults if it states none."""
    extra: Any = field.json_schema_extra or {}
    facts = extra.get(_KEY)
    return facts if isinstance(facts, FieldFacts) else FieldFacts()


def facts_in(fields: Mapping[str, FieldInfo]) -> dict[str, FieldFacts]:
    """Return the facts of each field by name."""
    return {name: stated_by(field) for name, field in fields.items()}
