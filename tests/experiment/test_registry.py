"""What can be registered beside the built-in members, and what is refused with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clops_sweep import acquisition_function, storage_function, strategy
from clops_sweep.errors import BadInput
from clops_sweep.experiment.registry import ACQUISITION_FUNCTIONS, REGISTRIES, STORAGE_FUNCTIONS, STRATEGIES
from clops_sweep.learning.strategies.finetune import FineTuning


@pytest.fixture(autouse=True)
def _registered_for_a_test(monkeypatch: pytest.MonkeyPatch) -> None:
    for registry in REGISTRIES.values():
        monkeypatch.setattr(registry, "_added", {})


class Halfway:
    """Some methods of a strategy."""

    joint = False

    def begin_task(self, task: int) -> None: ...

    def replay(self, task: int, epoch: int) -> None: ...


class WithoutJoint(FineTuning):
    joint = None  # type: ignore[assignment]


def _makes_one(training: Any) -> FineTuning:
    return FineTuning(training)


STRATEGY = "strategy 'mine': expected a subclass of clops_sweep.learning.strategies.base.Strategy; "


@pytest.mark.parametrize(
    ("register", "member", "sentence"),
    [
        (storage_function, 3, "storage_function 'mine': expected a function, not something of type int"),
        (acquisition_function, "entropy", "acquisition 'mine': expected a function, not something of type str"),
        (strategy, None, "strategy 'mine': expected a subclass of Strategy, not something of type NoneType"),
        (strategy, object, STRATEGY + "class object has no method 'begin_task'"),
        (strategy, Halfway, STRATEGY + "class Halfway has no method 'train_epoch'"),
        (strategy, WithoutJoint, STRATEGY + "class WithoutJoint has no `joint` that is True or False"),
        (strategy, _makes_one, STRATEGY + "_makes_one() has no `joint` that is True or False"),
    ],
)
def test_what_is_no_plug_in_is_refused_when_it_is_registered(
    register: Callable[[str], Callable[[Any], Any]], member: object, sentence: str
) -> None:
    with pytest.raises(BadInput) as refused:
        register("mine")(member)
    assert str(refused.value) == sentence
    assert not any(registry.added for registry in REGISTRIES.values())


def test_a_decorator_without_its_brackets_is_refused() -> None:
    with pytest.raises(BadInput) as refused:

        @acquisition_function  # type: ignore[arg-type]
        def mine(context: object, rows: object) -> None: ...

    assert str(refused.value) == (
        'acquisition mine(): expected the name that configs call it by, as in @acquisition_function("mine")'
    )


def test_the_work_of_a_strategy_is_a_function() -> None:
    with pytest.raises(BadInput, match=r"^strategy 'mine': work: expected a function, not something of type int$"):
        strategy("mine", work=3)  # type: ignore[arg-type]


def test_what_makes_a_strategy_may_stand_for_its_class() -> None:
    def make(training: Any) -> FineTuning:
        return FineTuning(training)

    make.joint = False  # type: ignore[attr-defined]
    assert strategy("made")(make) is make
    assert strategy("mine")(FineTuning) is FineTuning
    assert dict(STRATEGIES.added).keys() == {"made", "mine"}


def test_anything_that_can_be_called_is_a_function() -> None:
    class Scores:
        def __call__(self, *arguments: object) -> None: ...

    storage_function("mine")(Scores())
    acquisition_function("mine")(Scores())
    assert "mine" in STORAGE_FUNCTIONS
    assert "mine" in ACQUISITION_FUNCTIONS
