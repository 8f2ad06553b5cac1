"""Scenarios for training on all tasks at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clops_sweep.data.scenarios import Scenario, Subset


def joint_scenario(scenario: Scenario) -> Scenario:
    """Return the same tasks for one network that is trained on all of them at once.

    If outputs are indices in a task (Class-IL), the N tasks of g classes become a softmax over all g N classes: class
    c of task k gets the index g k + c. In other scenarios outputs mean the same in every task, and nothing changes.
    """
    if not scenario.by_position:
        return scenario
    size = 2 if scenario.kind == "binary" else scenario.outputs
    classes = size * len(scenario.tasks)

    def numbered(subset: Subset, task: int) -> Subset:
        targets = subset.targets
        places = targets[:, 0].astype(np.int64) if scenario.kind == "binary" else targets.argmax(1)
        return Subset(subset.rows, np.eye(classes, dtype=np.float32)[size * task + places])

    tasks = tuple(
        replace(
            task,
            train=numbered(task.train, position),
            validation=numbered(task.validation, position),
            test=numbered(task.test, position),
        )
        for position, task in enumerate(scenario.tasks)
    )
    return replace(scenario, kind="softmax", outputs=classes, tasks=tasks)
