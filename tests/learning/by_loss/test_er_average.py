"""A method of 30 lines, written from the documentation: both kinds of networks, resumed, searched by Optuna."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clops_sweep import OptunaSearch, SearchSpace
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.spaces.search_space import load_spaces
from clops_sweep.testing import check_strategy


@pytest.fixture
def space() -> Iterator[SearchSpace]:
    (found,) = load_spaces(Path(__file__).with_name("er_average.py"))
    yield found
    STRATEGIES.forget("er_average")


@pytest.mark.parametrize("network", ["clops_cnn", "linear"])
def test_it_keeps_the_contract(network: str, space: SearchSpace) -> None:
    assert space.base.strategy == "er_average"
    check_strategy(STRATEGIES["er_average"], scenarios=["class_il"], stores="anything", network=network)


def test_its_options_are_searched(space: SearchSpace) -> None:
    assert isinstance(space.search, OptunaSearch)
    assert space.search.distributions["average_weight"].high == 2
