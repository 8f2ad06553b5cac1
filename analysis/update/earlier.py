"""What an update changes in each task that was learned before, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .findings import EarlierTask
from .last_task import TaskFacts
from .measures import Change, Measures
from .paired import Paired


def earlier_tasks(
    measures: Measures, learned: Measures, order: Sequence[str], facts: TaskFacts, last: Paired
) -> Iterator[EarlierTask]:
    """Yield the compared instances of each task before and after the update.

    Nothing if all tasks are tested on the same instances, because each task would say the same.

    Args:
        measures: the measures of the compared instances.
        learned: those of the tasks that both models have learned, with the intervals of their criteria.
        order: names of the tasks in the order of training.
        facts: facts about the tasks.
        last: the test instances of the last task, or of all that are new. If they are compared, the intervals of each
            are those of `of_last_task`.
    """
    if facts.same_test_people:
        return
    paired = measures.paired
    right_before, right_after = paired.before.right, paired.after.right
    changed = (paired.before.said != paired.after.said).any(axis=1)
    for task in order:
        rows = paired.tasks == task
        if not rows.any():
            continue
        of_task = of_last_task(measures, last, task) or learned
        its_rows = of_task.paired.tasks == task
        yield EarlierTask(
            title=facts.title(task),
            instances=int(rows.sum()),
            units=len(np.unique(paired.units[rows])),
            units_changed=len(np.unique(paired.units[rows & changed])),
            auc=of_task.auc(its_rows),
            accuracy=of_task.accuracy(its_rows),
            right_to_wrong=int((rows & right_before & ~right_after).sum()),
            wrong_to_right=int((rows & ~right_before & right_after).sum()),
        )


def of_last_task(measures: Measures, last: Paired, task: str) -> Measures | None:
    """Return the measures of a task, if it is the last one or new, and its test instances are compared; else None.

    Their intervals draw the people of that task alone, as those of its criteria do: one number has one interval.

    Args:
        measures: the measures of the compared instances.
        last: the test instances of the last task, or of all that are new.
        task: name of the task.
    """
    own = last.take(last.tasks == task)
    is_compared = len(own) > 0 and len(own) < len(measures.paired) and task in measures.paired.tasks
    return Measures(own) if is_compared else None


def is_clearly_worse(change: Change) -> bool:
    """Return whether the whole interval of a difference is below 0."""
    return change.difference.high < 0


def is_clearly_better(change: Change) -> bool:
    """Return whether the whole interval of a difference is above 0."""
    return change.difference.low > 0


def clear_changes(task: EarlierTask) -> str:
    """Return what changed beyond chance, such as "accuracy worse, AUC better"; empty if nothing did."""
    changes = (task.accuracy, task.auc)
    worse = [change.name for change in changes if is_clearly_worse(change)]
    better = [change.name for change in changes if is_clearly_better(change)]
    texts = []
    for names, word in ((worse, "worse"), (better, "better")):
        if names:
            texts.append(f"{' and '.join(names)} {word}")
    return ", ".join(texts)
