"""The registry of metrics: names, directions, headline metrics of scenarios."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clops_sweep import UsageError, scenario
from clops_sweep.experiment.columns import RESULTS
from clops_sweep.experiment.metrics import MEASURES, METRICS, metric_named
from clops_sweep.experiment.plugins.registry import SCENARIOS, has_metric


@pytest.fixture
def forgotten() -> Iterator[str]:
    """A name for a scenario that is registered no longer when the test has ended."""
    yield "hers"
    if "hers" in SCENARIOS:
        SCENARIOS.forget("hers")


def test_every_metric_is_a_column_of_runs_and_has_a_name_of_its_own() -> None:
    of_test = [f"test_{name}" for name in METRICS]
    assert {*METRICS, *of_test} <= set(RESULTS)
    assert len({metric_named(name).plain for name in (*METRICS, *of_test)}) == 2 * len(METRICS)
    assert {it.measure for it in METRICS.values()} == set(MEASURES)
    lower = {name for name, it in METRICS.items() if it.better == "lower"}
    assert lower == {name for name in METRICS if name.endswith("forgetting")}


def test_only_tasks_with_classes_of_their_own_have_an_auc_over_classes_seen() -> None:
    for name in ("auc_seen", "auc_seen_bwt", "test_auc_seen"):
        assert [it for it in ("class_il", "class_il_union", "time_il", "domain_il") if has_metric(it, name)] == [
            "class_il_union"
        ]
        assert has_metric("of_her_own", name)
    assert all(has_metric("class_il", it) for it in ("auc", "accuracy_forgetting", "test_f1", "seconds"))


@pytest.mark.parametrize("names", ["accuracy", (), None, ("bwt",), ("accuracy", "aucc"), ("accuracy", 3), ("seconds",)])
def test_a_headline_that_cannot_be_is_refused(names: Any, forgotten: str) -> None:
    with pytest.raises(UsageError, match="scenario 'hers': headline: "):
        scenario(forgotten, headline=names)
