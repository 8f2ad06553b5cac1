"""Configs with one identity are one run: random pairs give the same four tables, bit for bit."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.frames import TRAINING, VALIDATION, FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import may_use
from clops_sweep.testing import tiny_config, tiny_frames
from clops_sweep.testing.shapes import of_shape
from clops_sweep.testing.watch import result_difference
from tests.learning.methods import ANYWHERE, MOSTLY_AT_NIGHT

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


MLP, LINEAR = {"network": "mlp", "mlp_width": 5}, {"network": "linear"}


@pytest.mark.parametrize(
    ("network", "stream"),
    [
        *((MLP, "epochs"), (LINEAR, "online")),
        *(pytest.param(*it, marks=pytest.mark.nightly) for it in ((MLP, "online"), (LINEAR, "epochs"))),
    ],
)
@pytest.mark.parametrize("strategy", MOSTLY_AT_NIGHT)
def test_a_field_changes_the_identity_with_the_numbers(strategy: str, network: dict[str, Any], stream: str) -> None:
    """For every method: another id if and only if some number is another."""
    frames = uneven(tiny_frames("class_il_union", tasks=2))
    for epochs in (2, 1):
        of = {"strategy": strategy, "stream": stream, "epochs_per_task": epochs, "memory_size": 10, **network}
        if may_use("projection_size", of):  # thousands of outputs by default, which take seconds
            of["projection_size"] = 40
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


ABOVE_ALL = (30, 60)
"""Numbers above the memory and the epochs. Limits that are the data's alone are not part of an id: `batch_size`."""

PAIRS: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(("early_stopping", "steps_per_batch"), ABOVE_ALL),
    **dict.fromkeys(("acquire_every", "agem_batch_size", "projection_size"), ABOVE_ALL),
    **dict.fromkeys(("aser_candidates", "aser_neighbours", "aser_per_class", "replay_ratio"), ABOVE_ALL),
    "first_tasks": (None, 2),
    "beta_penalty": (1, 2),
    "storage_function": ("area", "squared_area"),
    "storage_order": ("top", "bottom"),
    "ewc_online": (False, True),
    "ewc_decay": (0.5, 0.9),
    "si_damping": (0.1, 1),
    "lwf_temperature": (1, 3),
}


@pytest.mark.parametrize("stream", ["epochs", pytest.param("one epoch", marks=pytest.mark.nightly), "online"])
@pytest.mark.parametrize("strategy", MOSTLY_AT_NIGHT)
def test_values_beyond_use_are_refused_or_share_an_id(strategy: str, stream: str) -> None:
    """For every method: limits of the data, the memory and the epochs, and strengths of 0."""
    frames = uneven(tiny_frames("class_il_union", tasks=2))
    of = {"strategy": strategy, "network": "mlp", "mlp_width": 5, "epochs_per_task": 1 if stream == "one epoch" else 3}
    of |= {"memory_size": 10, "projection_size": 40}
    of |= {f"{name}_strength": 0 for name in ("ewc", "si", "lwf")}
    of = {name: value for name, value in of.items() if name in RunConfig.model_fields or may_use(name, of)}
    try:
        base = tiny_config("class_il_union", **of, stream="online" if stream == "online" else "epochs")
    except UsageError:  # not available online
        return
    for name, pair in PAIRS.items():
        if name not in RunConfig.model_fields and name not in base.options:
            continue
        if (strategy, name) == ("mir", "replay_ratio"):  # the number of its candidates depends on the data
            continue
        try:
            configs = [base.replace(**{name: value}) for value in pair]
            one, other = (ContinualRun(config, frames).run() for config in configs)
        except UsageError:
            continue
        same = result_difference(one, other, ignore=["run_id", "backend"]) is None
        assert (configs[0].identity == configs[1].identity) == same, (name, pair)


def test_values_beyond_use_are_refused_in_a_sentence() -> None:
    frames, of = uneven(tiny_frames("class_il_union", tasks=2)), {"network": "mlp", "batch_size": 8}
    agem = {"strategy": "agem", "memory_fraction": 0.5, "agem_batch_size": 9}
    aser = {"strategy": "aser", "memory_fraction": 0.5, "aser_per_class": 17}
    multitask = {"strategy": "multitask", "epochs_per_task": 2, "early_stopping": 4}
    held = "the memory holds 8 and a batch 8"
    for change, sentence in (
        (of | agem, f"agem_batch_size = 9: {held}; expected less than 8, or leave it out"),
        (of | aser, f"aser_per_class = 17: {held}; expected at most 16, or leave it out"),
        (of | multitask, "early_stopping = 4: multitask trains 4 epochs; expected at most 3, or leave it out"),
        (of | {"first_tasks": 2}, "first_tasks = 2: class_il_union of synthetic has 2 tasks; expected fewer, or leave"),
        (of | {"blurry": 0.1}, "blurry = 0.1: less than one training instance; expected at least 0.111"),
    ):
        with pytest.raises(UsageError, match=re.escape(sentence)):
            ContinualRun(tiny_config("class_il_union", **change), frames)
    with pytest.raises(UsageError, match="task_order = 3: scenario 'class_il_union' has one task; leave it out"):
        ContinualRun(tiny_config("class_il_union", task_order=3), tiny_frames("class_il_union", tasks=1))


def test_the_most_that_a_memory_holds_is_one_id() -> None:
    """The id of a default stays, and so do those of values that are used."""
    for strategy, name, values in (
        ("agem", "agem_batch_size", {256: 256, 10: 256, 9: 9}),
        ("aser", "aser_candidates", {100: 100, 10: 100, 9: 9}),
        ("er", "replay_ratio", {1.0: 1.0, 2.5: 2.5, 9.0: 2.5, 2.0: 2.0}),
    ):
        for value, used in values.items():
            config = tiny_config("class_il_union", strategy=strategy, memory_size=10, batch_size=4, **{name: value})
            assert json.loads(config.identity)[name] == used
