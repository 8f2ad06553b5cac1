"""What becomes of a scenario when all its tasks are trained on at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clops_sweep.data.scenarios import Scenario, Subset


def joint_scenario(scenario: Scenario) -> Scenario:
    """The same tasks for one network that sees them all at once.

    Pairs of classes (Class-IL, one sigmoid) become a softmax over all 2 N classes: the class at place c of the task at
    place k has the number 2 k + c. Other scenarios have the same classes in every task and stay as they are.
    """
    if scenario.kind != "binary":
        return scenario
    classes = 2 * len(scenario.tasks)

    def numbered(subset: Subset, task: int) -> Subset:
        numbers = 2 * task + subset.targets[:, 0].astype(np.int64)
        return Subset(subset.rows, np.eye(classes, dtype=np.float32)[numbers])

    tasks = tuple(
        replace(
            task,
            train=numbered(task.train, place),
            validation=numbered(task.validation, place),
            test=numbered(task.test, place),
        )
        for place, task in enumerate(scenario.tasks)
    )
    return replace(scenario, kind="softmax", outputs=classes, tasks=tasks)
