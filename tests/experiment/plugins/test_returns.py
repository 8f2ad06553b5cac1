"""A loss that returns nothing is refused where it is declared."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from clops_sweep import Strategy, UsageError, strategy
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.plugins.returns import never_returns_a_value


def nothing(batch):
    batch.sum()


def returns_none(batch):
    if batch:
        return
    return


def of_inner(batch):
    def inner():
        return 1

    inner()


def a_value(batch):
    if batch:
        return batch.sum()
    return None


def only_raises(batch):
    """Abstract."""
    raise NotImplementedError


def generator(batch):
    yield batch


@pytest.mark.parametrize(
    ("function", "is_without"),
    [
        (nothing, True),
        (returns_none, True),
        (of_inner, True),
        (a_value, False),
        (only_raises, False),
        (generator, False),
        (lambda batch: None, False),
        (print, False),
        (None, False),
    ],
    ids=["nothing", "returns_none", "of_inner", "a_value", "only_raises", "generator", "a lambda", "built in", "None"],
)
def test_functions_without_a_value_are_known_by_their_source(function: Callable[..., object], is_without: bool) -> None:
    assert never_returns_a_value(function) == is_without


def test_a_method_whose_loss_has_no_return_is_refused_when_it_is_declared() -> None:
    with pytest.raises(UsageError, match=r"'forgotten': loss\(\) returns nothing; expected a scalar, .* return loss"):

        @strategy("forgotten")
        class Forgotten(Strategy):
            def loss(self, batch):
                self.criterion(self.model(batch.x), batch.y)

    assert "forgotten" not in STRATEGIES
