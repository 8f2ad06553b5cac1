"""The four tables of a run: stored instances, numbers of replays, and curves that agree with R."""

from __future__ import annotations

import math
from typing import Any

import pytest

from clops_sweep.data.scenarios import build_scenario
from clops_sweep.testing import tiny_config, tiny_frames
from tests.learning.conftest import Run
from tests.learning.methods import PAPERS

KINDS = ("class_il", "time_il", "domain_il")
SIZE = {"class_il": 10, "time_il": 12, "domain_il": 10}
TASKS, EPOCHS, BATCH = 3, 2, 8


def stored_count(kind: str) -> int:
    return math.floor(0.4 * SIZE[kind] + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", PAPERS)
def test_each_task_stores_its_share_of_its_own_training_instances(strategy: str, kind: str, run: Run) -> None:
    scenario = build_scenario(tiny_frames(kind), tiny_config(kind).scenario, tiny_config(kind).task_order)
    instances = run(kind, strategy=strategy).instances
    for task in scenario.tasks:
        record = instances[instances["task"] == task.name]
        assert record["instance"].tolist() == task.train.rows.tolist()
        expected = 0 if strategy in ("finetune", "multitask") else stored_count(kind)
        assert record["stored"].sum() == expected
        assert (record.loc[~record["stored"], "times_replayed"] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("settings", "share"),
    [({}, 0.5), ({"strategy": "replay"}, 0.5), ({"acquisition_fraction": 1.0}, 1.0), ({"acquire_every": 2}, 0.5)],
)
def test_acquired_instances_are_counted_epoch_by_epoch(
    settings: dict[str, Any], share: float, kind: str, run: Run
) -> None:
    instances = run(kind, **settings).instances
    acquired = max(1, math.floor(share * stored_count(kind) + 1e-9))
    for position, (_, record) in enumerate(instances.groupby("task", sort=False)):
        later = TASKS - 1 - position
        assert record["times_replayed"].sum() == later * EPOCHS * acquired
        assert record["times_replayed"].max() <= later * EPOCHS


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("kind", KINDS)
def test_mir_replays_its_ratio_shared_evenly(ratio: float, kind: str, run: Run) -> None:
    result = run(kind, strategy="mir", replay_ratio=ratio, acquisition_fraction=1.0)
    instances = result.instances
    batches = [min(BATCH, SIZE[kind] - start) for start in range(0, SIZE[kind], BATCH)]
    expected = [0, 0, 0]
    for current in range(1, TASKS):
        for _ in range(EPOCHS):
            for step, size in enumerate(batches):
                total = round(ratio * size)
                shares = [total // current] * current
                for extra in range(total % current):
                    shares[(step + extra) % current] += 1
                for past, share in enumerate(shares):
                    expected[past] += min(share, stored_count(kind))
    found = [int(record["times_replayed"].sum()) for _, record in instances.groupby("task", sort=False)]
    assert found == expected
    assert result.runs["replayed"].tolist() == [sum(expected)]


def test_storage_follows_s(run: Run) -> None:
    for order, function in (("top", "area"), ("bottom", "area"), ("top", "squared_area"), ("bottom", "squared_area")):
        instances = run("time_il", storage_order=order, storage_function=function).instances
        for _, record in instances.groupby("task", sort=False):
            stored, left = record.loc[record["stored"], "s"], record.loc[~record["stored"], "s"]
            assert stored.min() >= left.max() if order == "top" else stored.max() <= left.min()
    area, squared = (run("time_il", storage_function=name).instances["s"] for name in ("area", "squared_area"))
    assert not area.equals(squared)
