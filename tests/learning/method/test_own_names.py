"""Attributes of a method that would hide what its base class uses: refused before a run starts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from clops_sweep import ContinualRun, strategy
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.learning.method.strategy import Strategy
from clops_sweep.learning.strategies.finetune import FineTuning
from clops_sweep.testing import tiny_config, tiny_frames


def sentence(what: str, name: str, kind: str) -> str:
    return "^" + re.escape(f"class Mine: {what} would hide the {kind} Strategy.{name}; give the attribute another name")


def test_an_assignment_is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(UsageError, match=sentence("self.head = ...", "head", "property")):

        class Mine(Strategy):
            def setup(self) -> None:
                self.kept, self.head = 1, None  # type: ignore[misc,assignment]


def test_a_method_is_not_replaced_by_an_attribute() -> None:
    with pytest.raises(UsageError, match=sentence("self.loss = ...", "loss", "method")):

        class Mine(Strategy):
            def setup(this) -> None:  # noqa: N805
                for this.loss in (1, 2):  # type: ignore[method-assign,assignment]
                    pass


def test_a_class_attribute_does_not_replace_a_property() -> None:
    with pytest.raises(UsageError, match=sentence("options", "options", "property")):

        class Mine(Strategy):
            options = None  # type: ignore[assignment]


def test_attributes_of_other_objects_and_other_names_are_free() -> None:
    class Mine(Strategy):
        stores = "nothing"
        joint = True

        def setup(self) -> None:
            self.heads = []
            self.heads.head = 1  # type: ignore[attr-defined]

        def loss(self, batch: Any) -> Any:
            self.kept = self.head
            return self.criterion(self.model(batch.x), batch.y)

    assert Mine.joint


def test_code_without_a_source_is_refused_when_the_run_is_made() -> None:
    names: dict[str, Any] = {"FineTuning": FineTuning}
    exec("class Mine(FineTuning):\n    def setup(self):\n        self.rng = 1", names)
    strategy("nameless")(names["Mine"])
    try:
        with pytest.raises(UsageError, match=sentence("self.rng = ...", "rng", "property")):
            ContinualRun(tiny_config("class_il", strategy="nameless"), tiny_frames("class_il"))
    finally:
        STRATEGIES.forget("nameless")
