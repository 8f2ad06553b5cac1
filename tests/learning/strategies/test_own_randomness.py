"""The causes that `check_strategy` names: random generators of a method's own, and a class without its decorator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep import FloatOption, Reservoir, Strategy, strategy
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.testing import ContractViolation, check_strategy

GENERATOR = np.random.default_rng(0)
COUNT = [0]


def _noise() -> float:
    return float(GENERATOR.random())


class Plain(Strategy):
    def factor(self) -> float:
        return 1.0

    def loss(self, batch: Any) -> torch.Tensor:
        return self.factor() * self.criterion(self.model(batch.x), batch.y)


class OfModule(Plain):
    def factor(self) -> float:
        return float(GENERATOR.random())


class OfHelper(Plain):
    def factor(self) -> float:
        return 1 + _noise()


class MadeAnew(Plain):
    def factor(self) -> float:
        return 1 + float(np.random.default_rng().random())


class Counts(Plain):
    """It shares a counter with other runs."""

    def factor(self) -> float:
        COUNT[0] += 1
        return 1 + COUNT[0] / 100


@pytest.mark.parametrize(
    ("method", "cause"),
    [
        (OfModule, r"OfModule\.factor\(\) uses GENERATOR, a random generator of its own; draw from self\.rng"),
        (OfHelper, r"_noise\(\) uses GENERATOR, a random generator of its own; draw from self\.rng"),
        (
            MadeAnew,
            r"MadeAnew\.factor\(\) calls default_rng, which makes random numbers of its own",
        ),
        (Counts, r"it may use random numbers other than those of self\.rng, or share state between runs$"),
    ],
)
def test_the_cause_of_numbers_that_do_not_repeat_is_named(method: type[Strategy], cause: str) -> None:
    with pytest.raises(ContractViolation, match=rf"^class_il: .+ differs between a run and its repetition: {cause}"):
        check_strategy(method, scenarios=["class_il"])


def test_random_numbers_of_the_run_repeat() -> None:
    class OfRun(Plain):
        def factor(self) -> float:
            return 1 + float(self.rng.random())

    check_strategy(OfRun, scenarios=["class_il"])


@pytest.mark.parametrize(
    "made", [lambda: np.random.default_rng(0), lambda: torch.Generator(), lambda: random.Random(0)]
)
def test_a_generator_as_an_attribute_is_named_as_one(made: Any) -> None:
    class Keeps(Plain):
        def setup(self) -> None:
            self.mine = made()

    with pytest.raises(
        UsageError, match=r"^strategy class Keeps: self\.mine is a random generator, .+; draw from self\.rng"
    ):
        check_strategy(Keeps, scenarios=["class_il"])


@pytest.fixture
def declared() -> Iterator[type[Strategy]]:
    options = ["memory_fraction", "memory_size", {"beta_of_a_test": FloatOption(0.5, ge=0)}]

    @strategy("declared_for_a_test", options=options)
    class Declared(Plain):
        def setup(self) -> None:
            self.memory = Reservoir(self.memory_size)

        def factor(self) -> float:
            return float(self.options.beta_of_a_test)

    yield Declared
    STRATEGIES.forget("declared_for_a_test")


def test_a_subclass_without_decorator_is_said_to_lack_it(declared: type[Strategy]) -> None:
    class Derived(declared):  # type: ignore[misc, valid-type]
        pass

    check_strategy(declared, scenarios=["class_il"], stores="anything")
    with pytest.raises(UsageError) as refused:
        check_strategy(Derived, scenarios=["class_il"], stores="anything")
    assert str(refused.value) == (
        "strategy class Derived: it has no @strategy, which lists its options, and the one of Declared is not "
        'inherited; write @strategy("name", options=[...]) above the class (strategy class Derived: self.memory_size: '
        "it lists no option for the size of a memory; add 'memory_fraction' and 'memory_size' to options=[...])"
    )


def test_a_declared_class_is_told_which_option_it_does_not_list() -> None:
    @strategy("lists_none_for_a_test")
    class ListsNone(Plain):
        def factor(self) -> float:
            return float(self.options.beta_of_a_test)

    try:
        with pytest.raises(
            UsageError, match=r"^strategy class ListsNone: self\.options\.beta_of_a_test: it lists no such"
        ):
            check_strategy(ListsNone, scenarios=["class_il"])
    finally:
        STRATEGIES.forget("lists_none_for_a_test")
