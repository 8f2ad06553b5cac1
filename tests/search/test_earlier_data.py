"""A study is read after its data changed; a launch, and a study of another definition, are refused."""

from __future__ import annotations

from typing import Any

import pytest

from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace
from clops_sweep.errors import OtherData, OtherDefinition
from clops_sweep.search.study import open_study
from clops_sweep.search.trials import read_study

FRACTION = {"storage_fraction": FloatDistribution(0.1, 0.5)}
SPACE = SearchSpace("it", RunConfig(), search=OptunaSearch(FRACTION, n_trials=2), seeds=1)
BEFORE = {"cardiology, split 0, normalize none": "1111"}
NOW = {"cardiology, split 0, normalize none": "2222"}


def test_a_study_of_other_data_is_read_and_not_continued(world: Any) -> None:
    world.data = BEFORE
    world.finish(SPACE)
    same, other = read_study(SPACE, world.store, BEFORE), read_study(SPACE, world.store, NOW)
    assert same is not None
    assert other is not None
    assert (same.has_other_data, other.has_other_data) == (False, True)
    assert other.trials == same.trials
    with pytest.raises(OtherData, match=r"made on an earlier edition of the data, .*: a launch is refused") as refused:
        open_study(SPACE, world.store, NOW)
    assert not any(shown in str(refused.value) for shown in ("1111", "2222", "normalize"))


@pytest.mark.parametrize("change", [{"seeds": 2}, {"base": RunConfig(epochs_per_task=3)}])
def test_a_study_of_another_definition_is_not_read_whatever_its_data(world: Any, change: dict[str, Any]) -> None:
    world.data = BEFORE
    world.finish(SPACE)
    changed = SearchSpace(**{"name": "it", "base": RunConfig(), "search": SPACE.search, "seeds": 1, **change})
    for hashes in (BEFORE, NOW, {"cardiology, split 0, normalize none, validation 0.2": "1111"}):
        with pytest.raises(OtherDefinition, match="was made with") as refused:
            read_study(changed, world.store, hashes)
        assert not isinstance(refused.value, OtherData)


def test_data_that_a_study_does_not_record_are_another_definition(world: Any) -> None:
    world.data = BEFORE
    world.finish(SPACE)
    with pytest.raises(OtherDefinition, match="was made with"):
        read_study(SPACE, world.store, {**BEFORE, "another, split 0, normalize none": "3333"})
