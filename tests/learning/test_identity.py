"""Configs with one identity are one run: random pairs give the same four tables, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.frames import TRAINING, VALIDATION, FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.shapes import of_shape
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
OF_TRAINING: dict[str, list[Any]] = {
    "batch_size": [5],
    "learning_rate": [0.05],
    "optimizer": ["adamw", "sgd"],
    "weight_decay": [0.1],
    "schedule": ["cosine", "step"],
    "precision": ["bfloat16"],
    "epochs_per_task": [3],
    "early_stopping": [1],
    "class_weights": ["balanced"],
    "augment": ["jitter"],
    "weight_seed": [7],
    "blurry": [0.3],
    "steps_per_batch": [2],
    "prequential_window": [3],
    "first_tasks": [1],
    "head": ["cosine", "per_class"],
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


def uneven(frames: FrameSet) -> FrameSet:
    """Return small frames with unequal numbers of training instances in the classes of a task."""
    split = frames.split.copy()
    split[np.flatnonzero((split == TRAINING) & (frames.labels % 2 == 1))[:4]] = VALIDATION
    return of_shape(replace(frames, split=split), 1, 60)


@pytest.mark.parametrize("stream", ["epochs", "online"])
@pytest.mark.parametrize("network", [{"network": "mlp", "mlp_width": 5}, {"network": "linear"}], ids=str)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_field_changes_the_identity_with_the_numbers(strategy: str, network: dict[str, Any], stream: str) -> None:
    """For every method: another id if and only if some number is another."""
    frames = uneven(tiny_frames("class_il_union", tasks=2))
    for epochs in (2, 1):
        of = {"strategy": strategy, "stream": stream, "epochs_per_task": epochs, "memory_size": 10, **network}
        try:
            config = tiny_config("class_il_union", learning_rate=0.01, **of)
        except UsageError:  # not available online
            return
        whole = ContinualRun(config, frames).run()
        for name, values in OF_TRAINING.items():
            by_epoch = name in ("schedule", "early_stopping")
            for value in values if by_epoch or epochs == 2 else ():
                try:
                    other = config.replace(**{name: value})
                    found = ContinualRun(other, frames).run()
                except UsageError:
                    continue
                same = result_difference(whole, found, ignore=["run_id", "backend"]) is None
                if name != "early_stopping" or other.identity == config.identity:  # the last epoch may be the best one
                    assert (other.identity == config.identity) == same, (name, value, epochs)
