"""The four tables of a run: stored instances, numbers of replays, and curves that agree with R."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from clops_sweep import ContinualRun, native
from clops_sweep.data.scenarios import build_scenario
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.result import RunResult
from clops_sweep.testing import tiny_config, tiny_frames
from tests.learning.methods import PAPERS

Run = Callable[..., RunResult]
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


@pytest.mark.parametrize("kind", KINDS)
def test_gem_uses_all_of_a_small_memory_in_every_step(kind: str, run: Run) -> None:
    result = run(kind, strategy="gem")
    steps = EPOCHS * math.ceil(SIZE[kind] / BATCH)
    for position, (_, record) in enumerate(result.instances.groupby("task", sort=False)):
        later = TASKS - 1 - position
        assert (record.loc[record["stored"], "times_replayed"] == later * steps).all()
    projections = int(result.runs["projections"].item())
    assert 0 < projections <= (TASKS - 1) * steps


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


def test_no_two_instances_of_an_epoch_share_a_dropout_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the last batch, and with it the number of replayed instances, is smaller."""
    draws: list[list[int]] = []
    train_step = Learner.train_step

    def noting(self: Learner, batch: Batch, *others: Any) -> torch.Tensor:
        draws.append(batch.draws.tolist())
        return train_step(self, batch, *others)

    monkeypatch.setattr(Learner, "train_step", noting)
    monkeypatch.setenv(native.ENVIRONMENT, "off")
    config = tiny_config("class_il", strategy="mir", batch_size=3, epochs_per_task=1, storage_fraction=1.0)
    ContinualRun(config.replace(acquisition_fraction=1.0), tiny_frames("class_il", tasks=2)).run()
    steps = math.ceil(SIZE["class_il"] / 3)
    replaying = [draw for batch in draws[steps:] for draw in batch]
    assert [len(batch) for batch in draws] == [3, 3, 3, 1, 6, 6, 6, 2]
    assert len(set(replaying)) == len(replaying)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", ["clops", "finetune"])
def test_curves_end_where_r_has_its_rows(strategy: str, kind: str, run: Run) -> None:
    result = run(kind, strategy=strategy)
    r = result.r_matrix[result.r_matrix["split"] == "validation"].pivot(
        index="trained_on", columns="evaluated_on", values="auc"
    )
    curves = result.curves["auc"].to_numpy().reshape(TASKS * EPOCHS, TASKS)
    assert np.array_equal(r.to_numpy(), curves[EPOCHS - 1 :: EPOCHS])
    assert result.curves["epoch"].tolist() == np.repeat(range(1, 7), 3).tolist()
    names = result.curves["task"].tolist()[:3]
    assert result.curves["training_task"].tolist() == np.repeat(names, EPOCHS * TASKS).tolist()


def test_storage_follows_s(run: Run) -> None:
    for order, function in (("top", "area"), ("bottom", "area"), ("top", "squared_area"), ("bottom", "squared_area")):
        instances = run("time_il", storage_order=order, storage_function=function).instances
        for _, record in instances.groupby("task", sort=False):
            stored, left = record.loc[record["stored"], "s"], record.loc[~record["stored"], "s"]
            assert stored.min() >= left.max() if order == "top" else stored.max() <= left.min()
    area, squared = (run("time_il", storage_function=name).instances["s"] for name in ("area", "squared_area"))
    assert not area.equals(squared)


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_trajectories_are_kept_and_s_is_the_area_under_them(kind: str, run: Run) -> None:
    for _, record in run(kind, epochs_per_task=3).instances.groupby("task", sort=False):
        kept = record[record["beta_trajectory"].notna()]
        assert len(kept) == 7
        assert {record["s"].idxmin(), record["s"].idxmax()} <= {*kept.index} | {*record.index[record["s"].duplicated()]}
        for row in kept.itertuples():
            first, second, third = row.beta_trajectory
            assert row.s == pytest.approx((first + second) / 2 + (second + third) / 2, abs=1e-12)
            assert row.beta == third
    assert run(kind, strategy="gem").instances["beta_trajectory"].isna().all()
