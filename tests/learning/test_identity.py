"""Configs with one identity are one run: random pairs give the same four tables, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import BUILT_IN
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference
from tests.learning.methods import ANYWHERE

VALUES: dict[str, list[Any]] = {
    "storage_fraction": [1, 0.4],
    "memory_size": [None, 3],
    "acquisition_fraction": [1, 0.5],
    "mc_samples": [3, 2],
    "acquisition": ["bald_mcd", "random", "bald_mcp", "balc_kld", "entropy"],
    "acquire_every": [1, 2],
    "storage_function": ["area", "squared_area"],
    "storage_order": ["top", "bottom", "random"],
    "weight_replay": [False, True],
    "replay_ratio": [1, 0.5],
    "beta_learning_rate": [1e-2, 1e-1],
    "beta_penalty": [10, 1],
    "perturbation_std": [0.1, 0.5],
    "er_storage_order": ["random", "top"],
    "er_acquire": [False, True],
}
FRAMES = {kind: tiny_frames(kind, tasks=2) for kind in ("class_il", "time_il", "domain_il")}


def _changed(config: RunConfig, name: str, value: Any) -> RunConfig:
    try:
        return config.replace(**{name: value})
    except UsageError:  # invalid with the other settings
        return config


def _furthest_equal(config: RunConfig) -> RunConfig:
    """Return a config of the same identity that differs in every field that may differ."""
    other = config
    in_order = tuple(range(3 if config.scenario == "time_il" else 2))
    for name, values in {**VALUES, "strategy": ANYWHERE, "task_order": [in_order]}.items():
        for value in values:
            changed = _changed(other, name, value)
            if value != getattr(config, name) and changed.identity == config.identity:
                other = changed
    return other


@settings(max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(ANYWHERE),
    st.sampled_from(list(FRAMES)),
    st.fixed_dictionaries({name: st.sampled_from(values) for name, values in VALUES.items()}),
)
@example("clops", "class_il", {"acquisition_fraction": 1})
@example("clops", "time_il", {"storage_fraction": 1, "storage_order": "bottom"})
@example("clops", "domain_il", {"storage_order": "random", "acquisition": "random"})
def test_equal_identity_gives_equal_tables(strategy: str, kind: Any, drawn: dict[str, Any]) -> None:
    config = tiny_config(kind, strategy=strategy)
    for name, value in drawn.items():
        config = _changed(config, name, value)
    other = _furthest_equal(config)
    assert other.identity == config.identity
    if other != config:
        first, second = (ContinualRun(each, FRAMES[kind]).run() for each in (config, other))
        assert result_difference(first, second) is None


def test_the_pairs_that_are_drawn_differ_in_every_field_that_a_plug_in_may_pass_over() -> None:
    alike = [
        (tiny_config("class_il", **it), _furthest_equal(tiny_config("class_il", **it)))
        for it in (
            {"strategy": "finetune"},
            {"acquisition_fraction": 1, "storage_fraction": 1},
            {"storage_order": "random", "acquisition": "random"},
        )
    ]
    differing = {
        name
        for one, two in alike
        for name in (*RunConfig.model_fields, *BUILT_IN)
        if getattr(one, name) != getattr(two, name)
    }
    assert differing == {*VALUES, "strategy", "task_order"}


@pytest.mark.parametrize(
    ("settings", "change"),
    [({"storage_fraction": 1}, {"storage_function": "squared_area"}), ({}, {"acquire_every": 2})],
)
def test_what_is_kept_apart_differs(settings: dict[str, Any], change: dict[str, Any]) -> None:
    config = tiny_config("class_il", **settings)
    first, second = (ContinualRun(each, FRAMES["class_il"]).run() for each in (config, config.replace(**change)))
    first.runs["run_id"] = second.runs["run_id"]
    assert result_difference(first, second) is not None
