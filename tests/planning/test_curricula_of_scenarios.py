"""A curriculum can be had in every scenario: from the s of a run to an order of its tasks, and a run in that order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep import ContinualRun
from clops_sweep.data.scenarios import ScenarioTasks, TaskInstances, class_targets
from clops_sweep.experiment.plugins.registry import SCENARIOS
from clops_sweep.planning.curriculum import orders_by_difficulty, source_config
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing import tiny_config, tiny_frames
from tests.helpers.stores import record_result


def by_class(frames: Any) -> ScenarioTasks:
    """Tasks that share a class."""
    tasks = [
        TaskInstances(f"{a} or {b}", np.isin(frames.labels, (a, b)), class_targets(frames), outputs=(a, b))
        for a, b in ((0, 1), (1, 2), (2, 3))
    ]
    return ScenarioTasks("softmax", tasks)


@pytest.mark.parametrize(
    "settings",
    [
        {"scenario": "class_il", "task_classes": ((0, 4, 2), (3, 5, 1))},
        {"scenario": "class_il_union"},
        {"scenario": "domain_il", "domain": "site"},
        {"scenario": "by_class"},
        {"scenario": "class_il_union", "first_tasks": 2},
    ],
)
def test_an_order_by_difficulty_is_found_and_run(settings: dict[str, Any], tmp_path: Path) -> None:
    frames, store = tiny_frames("class_il"), RunStore(tmp_path)
    store.open_for_writing()
    with SCENARIOS.temporarily("by_class", by_class):
        config = tiny_config(task_order="curriculum", **settings)
        source = source_config(config)
        result = ContinualRun(source, frames).run()
        assert orders_by_difficulty([config], store, lambda config: frames.data_hash) == {config: None}
        runs = {source.run_id(frames.data_hash): source}
        record_result(store, runs, result, lambda config: frames.data_hash, {})
        resolved = orders_by_difficulty([config], store, lambda config: frames.data_hash)[config]
        names = result.instances["task"].drop_duplicates().tolist()
        ease = result.instances.groupby("task")["s"].mean()
        ordered = [names[place] for place in resolved.task_order]
        assert ordered[0] == ease.idxmax()
        again = ContinualRun(resolved.replace(epochs_per_task=1), frames).run()
        assert again.curves["training_task"].drop_duplicates().tolist() == ordered[: config.first_tasks]
