"""Recorded sizes of a run: parameters, memory, people and CPU time, counted independently."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from torch import nn

from clops_sweep import ContinualRun
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import build_scenario
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.result import RunResult
from clops_sweep.learning.strategies.base import InstanceRecord
from clops_sweep.learning.strategies.finetune import FineTuning
from clops_sweep.testing import tiny_config, tiny_frames

KINDS = ("class_il", "time_il", "domain_il")
FRAME_BYTES = 2500 * 2  # tiny frames are int16
STORES = {
    **dict.fromkeys(("clops", "replay", "gem", "mir", "er", "derpp", "agem", "gdumb", "joint", "multitask"), "raw"),
    **dict.fromkeys(("ewc", "si", "mas"), "statistics"),
    **dict.fromkeys(("finetune", "lwf"), "nothing"),
}


def run_of(kind: str, **settings: Any) -> tuple[dict[str, Any], RunResult, FrameSet]:
    frames = tiny_frames(kind)
    result = ContinualRun(tiny_config(kind, **({"epochs_per_task": 1} | settings)), frames).run()
    return result.runs.iloc[0].to_dict(), result, frames


@pytest.mark.parametrize("kind", KINDS)
def test_the_memory_of_er_by_hand(kind: str) -> None:
    row, result, frames = run_of(kind, strategy="er", memory_fraction=0.3)
    config = tiny_config(kind)
    scenario = build_scenario(frames, config.scenario, config.task_order)
    held = math.floor(0.3 * sum(len(task.train.rows) for task in scenario.tasks) + 1e-9)
    assert frames.frames.itemsize * frames.samples == FRAME_BYTES
    assert row["memory_instances"] == held == result.instances["stored"].sum()
    assert row["memory_bytes"] == held * (FRAME_BYTES + 4 * scenario.outputs)


class Remembers(FineTuning):
    """A method that does not report what it stores, and stores one instance per task."""

    stores = None

    def record(self, task: int) -> InstanceRecord:
        found = super().record(task)
        found.stored[:, 0] = True
        return found


@pytest.mark.parametrize("strategy", sorted(STORES))
def test_what_a_method_keeps_of_past_data(strategy: str) -> None:
    row, result, _ = run_of("class_il", strategy=strategy)
    assert row["stores"] == STORES[strategy]
    assert (row["memory_instances"] > 0) == (STORES[strategy] == "raw" and strategy not in ("joint", "multitask"))
    if strategy != "derpp":
        assert row["memory_instances"] == result.instances["stored"].sum()
        assert row["memory_bytes"] == row["memory_instances"] * (FRAME_BYTES + 4)


def small(channels: int, samples: int, outputs: int) -> nn.Module:
    """Return a network with 5 + 1 + 2 C trained parameters after a frozen layer."""
    frozen = nn.Linear(samples, 5, bias=False).requires_grad_(False)
    return nn.Sequential(nn.Flatten(), frozen, nn.Linear(5, 1), nn.ReLU(), nn.Linear(1, outputs))


def test_parameters_are_those_that_are_trained() -> None:
    row, _, frames = run_of("time_il", strategy="finetune")
    outputs = build_scenario(frames, "time_il", "sequential").outputs
    paper = NETWORKS["clops_cnn"](1, 2500, outputs)
    assert row["parameters"] == sum(each.numel() for each in paper.parameters())
    with NETWORKS.temporarily("small", small):
        assert run_of("time_il", strategy="finetune", network="small")[0]["parameters"] == 5 + 1 + outputs + outputs


def people(frames: FrameSet, kind: str, task_order: Any = "sequential") -> pd.DataFrame:
    scenario = build_scenario(frames, kind, task_order)
    return pd.concat(
        pd.DataFrame({"split": split, "person": [frames.patient_names[p] for p in frames.patients[part.rows]]})
        for task in scenario.tasks
        for split, part in (("train", task.train), ("validation", task.validation), ("test", task.test))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_people_are_counted_over_all_tasks(kind: str) -> None:
    row, _, frames = run_of(kind, strategy="finetune")
    expected = people(frames, kind).groupby("split")["person"].nunique()
    assert {split: row[f"patients_{split}"] for split in expected.index} == expected.to_dict()
