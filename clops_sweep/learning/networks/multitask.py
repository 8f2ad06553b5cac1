"""What becomes of a scenario when all its tasks are trained on at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clops_sweep.data.scenarios import Scenario, Subset


def joint_scenario(scenario: Scenario) -> Scenario:
    """The same tasks for one network that sees them all at once.

    Where an output is a place in a task (Class-IL), the N tasks of g classes become a softmax over all g N of them: the
    class at place c of the task at place k has the number g k + c. Other scenarios have outputs that mean the same in
    every task, and stay as they are.
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
            train=numbered(task.train, place),
            validation=numbered(task.validation, place),
            test=numbered(task.test, place),
        )
        for place, task in enumerate(scenario.tasks)
    )
    return replace(scenario, kind="softmax", outputs=classes, tasks=tasks)
