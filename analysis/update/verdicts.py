"""Verdicts on the acceptance criteria of an update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clops_sweep.data.misspelt import respelt
from clops_sweep.errors import UsageError, listed, nearest, option, shown

from ..people.patient_intervals import FEW_PEOPLE
from ..statistics import MIN_UNITS
from .criteria import BY_CLASS, BY_GROUP, BY_TASK, OF_LAST_TASK, Criteria
from .findings import Decision, EarlierTask, Findings, LastTask
from .last_task import TaskFacts
from .measures import SENSITIVITY, Change, ClassMeasures, Measures, Quantity
from .paired import Names, Paired
from .shares import bound_without_flips

_MOST_TASKS = 3
"""Most tasks that a verdict names."""
_NO_SHARES = ("max_accuracy_loss", "max_task_accuracy_loss", "max_calibration_error", "max_drift")
"""Criteria about a value that is no share of instances with an event."""


@dataclass(frozen=True, eq=False)
class Tested:
    """The test instances that criteria are about.

    Attributes:
        compared: the instances on which two models are compared.
        last: those of the last task alone, or of all tasks that the model before has never seen; empty if there are
            none.
        facts: facts about the tasks.
    """

    compared: Paired
    last: Paired
    facts: TaskFacts

    def where(self, tasks: Names) -> str:
        """Return the titles of tasks in words; their number if there are many."""
        names = sorted(set(tasks.tolist()))
        if len(names) > _MOST_TASKS:
            return f"{len(names)} tasks"
        titles = [self.facts.title(name) for name in names]
        return " and ".join(titles) if len(titles) < _MOST_TASKS else f"{', '.join(titles[:-1])} and {titles[-1]}"


def on_last_task(tested: Tested) -> LastTask | None:
    """Return what the updated model does on the last task; None if it has no test instances of its own."""
    if not len(tested.last):
        return None
    return _on_new(tested.last, tested)


def _on_new(new: Paired, tested: Tested) -> LastTask:
    """Return what the updated model does on instances of the last task, or of those that are new."""
    measures = Measures(new)
    of_all = next(measures.slices())
    title = tested.where(new.tasks)
    return LastTask(title, of_all.instances, of_all.units, of_all.accuracy.after, tuple(measures.classes()))


def decisions_on(criteria: Criteria, report: Findings, tested: Tested) -> Iterator[Decision]:
    """Yield the verdicts on all criteria that are set.

    Args:
        criteria: the criteria.
        report: the findings.
        tested: the instances that they are about.

    Raises:
        UsageError: a criterion names a class or a task that the instances lack, or is about subgroups or a last task
            that are not there.
    """
    for name, limit in criteria.limits.items():
        if name in OF_LAST_TASK and report.last_task is None:
            raise UsageError(
                f"{name}: the last task has no test instances of its own, as every task is tested on the same ones; "
                f"leave the criterion out, or take {name.replace('new_', '')}"
            )
        if name in OF_LAST_TASK:
            for verdict in _of_new(name, limit, report, tested):
                yield _as_demanded(verdict, criteria)
        elif name in BY_TASK:
            for verdict in _of_tasks(name, limit, report, tested):
                yield _as_demanded(verdict, criteria)
        elif isinstance(limit, Mapping):
            for of, least in limit.items():
                verdict = _of_class(name, of, least, report.classes, tested.compared, tested, "compared instances")
                yield _as_demanded(verdict, criteria)
        else:
            for verdict in _of_number(name, limit, report, tested):
                yield _as_demanded(verdict, criteria)


def _of_new(name: str, limit: float | Mapping[str, float], report: Findings, tested: Tested) -> Iterator[Decision]:
    """Yield the verdicts on a criterion about the last task; of several new tasks, those on each of them."""
    for task in dict.fromkeys(tested.last.tasks.tolist()):
        instances = tested.last.take(tested.last.tasks == task)
        part = _on_new(instances, tested)
        if isinstance(limit, Mapping):
            what = part.title if report.other_data else "last task"
            for of, least in limit.items():
                yield _of_class(name, of, least, part.classes, instances, tested, what)
        else:
            yield decision(name, "", limit, part.accuracy, part.instances, part.units, part.title)


def _of_number(name: str, limit: float, report: Findings, tested: Tested) -> Iterator[Decision]:
    """Yield the verdict on a criterion with one limit, or one verdict for each subgroup."""
    compared = tested.compared
    everything, *_ = report.flips
    if name in BY_GROUP:
        if not report.groups:
            raise UsageError(
                f"{name}: there are no subgroups; expected columns for them, as in {option('groups', 'sex')}"
            )
        for group in report.groups:
            measured = group.right_to_wrong if name == "max_group_flips" else group.accuracy.after
            where = tested.where(compared.tasks[compared.groups[group.column] == group.name])
            of = f"{group.column} {group.name}"
            yield decision(name, of, limit, measured, group.instances, group.units, where)
        for of, where in _groups_of_last_task_alone(tested):
            yield decision(name, of, limit, Quantity(np.nan, np.nan, np.nan), 0, 0, where)
    else:
        where = tested.where(compared.tasks)
        yield decision(name, "", limit, _of_all(name, report), everything.instances, everything.units, where)


def _groups_of_last_task_alone(tested: Tested) -> Iterator[tuple[str, str]]:
    """Yield the subgroups that no compared instance is in, such as "device Holter X", and where they are tested."""
    for column, values in tested.last.groups.items():
        compared = {str(value) for value in tested.compared.groups[column]}
        for name in sorted({str(value) for value in values} - compared):
            yield f"{column} {name}", tested.where(tested.last.tasks)


def _of_tasks(name: str, limit: float | Mapping[str, float], report: Findings, tested: Tested) -> Iterator[Decision]:
    """Yield a verdict on what each earlier task with a limit loses; on each of them if there is one limit for all."""
    if not report.earlier:
        raise UsageError(
            f"{name}: every task is tested on the same {report.noun}s, so none has a loss of its own; leave the "
            "criterion out, or take max_accuracy_loss"
        )
    limits = limit if isinstance(limit, Mapping) else {task.title: limit for task in report.earlier}
    for asked, most in limits.items():
        task = _earlier_task(name, asked, report, tested.facts)
        measured = _loss(task.accuracy)
        yield decision(name, task.title, most, measured, task.instances, task.units, task.title)


def _earlier_task(criterion: str, asked: str, report: Findings, facts: TaskFacts) -> EarlierTask:
    """Return an earlier task by its title, such as "ward ICU", or by the name of its domain alone, "ICU"."""
    named = {}
    for task in report.earlier:
        named[task.title] = task
        named.setdefault(task.title.removeprefix(f"{facts.domain} "), task)
    if asked not in named:
        titles = listed(task.title for task in report.earlier)
        what = "compared task" if report.against else "earlier task"
        if report.other_data:
            what = "task that the model before has learned"
        meant = respelt(asked, named)
        hint = "" if meant is None else f" (did you mean {shown(meant)}?)"
        raise UsageError(
            f"{criterion}: {shown(asked)} is no {what}{hint}; {what.replace('task', 'tasks', 1)}: {titles}"
        )
    return named[asked]


def _loss(accuracy: Change) -> Quantity:
    """Return accuracy before minus accuracy after, with its interval."""
    difference = accuracy.difference
    return Quantity(0.0 - difference.value, 0.0 - difference.high, 0.0 - difference.low)  # never -0.0


def _of_all(name: str, report: Findings) -> Quantity:
    """Return the measure of all compared instances that a criterion limits."""
    everything, *_ = report.flips
    if name == "max_flips":
        return everything.right_to_wrong
    if name == "min_accuracy":
        return everything.accuracy.after
    if name == "max_accuracy_loss":
        return _loss(everything.accuracy)
    if name == "max_calibration_error":
        return report.overall[-1].after
    assert name == "max_drift", name
    return report.drift


def _of_class(
    name: str,
    of: str,
    least: float,
    classes: Sequence[ClassMeasures],
    instances: Paired,
    tested: Tested,
    what: str,
) -> Decision:
    """Return the verdict on a rate of a class: about the instances with the class, or about those without it.

    Args:
        name: the criterion.
        of: the class.
        least: the limit.
        classes: the rates of each class.
        instances: the instances that these are about.
        tested: all instances.
        what: what the instances are in words.
    """
    known = {of_class.name: of_class for of_class in classes}
    if of not in known:
        raise UsageError(
            f"{name}: {shown(of)} is not a class of the {what}{nearest(of, known)}; classes: {listed(known)}"
        )
    part = known[of]
    one = next(one for one in instances.one_by_one() if one.name == of)
    measured = getattr(part, BY_CLASS[name]).after
    if BY_CLASS[name] == SENSITIVITY:
        where = tested.where(instances.tasks[one.rows & one.has])
        return decision(name, of, least, measured, part.positives, part.units, where)
    where = tested.where(instances.tasks[one.rows & ~one.has])
    return decision(name, of, least, measured, part.instances - part.positives, part.units_without, where)


def decision(
    name: str, of: str, limit: float, measured: Quantity, instances: int, units: int, where: str = ""
) -> Decision:
    """Return the verdict on a criterion about a number of instances of a number of units; see `Decision`."""
    if units < MIN_UNITS:
        return Decision(name, of, float(limit), measured, instances, units, where, None, certain=False, crosses=False)
    sign = -1 if name.startswith("max") else 1
    ends = [end for end in (measured.low, measured.high) if np.isfinite(end)]
    holds = bool(sign * measured.value >= sign * limit)
    if name == "max_calibration_error" and ends:
        holds = measured.low <= limit  # the value of a perfectly calibrated model varies too much with few patients
    low, high = _whole_interval(name, measured, units)
    certain = units >= FEW_PEOPLE and (limit < low or high < limit)
    crosses = bool(ends) and min(ends) <= limit <= max(ends) and min(ends) < max(ends)
    return Decision(name, of, float(limit), measured, instances, units, where, holds, bool(certain), bool(crosses))


def _whole_interval(name: str, measured: Quantity, units: int) -> tuple[float, float]:
    """Return the interval of a value; that of a share of 0 or 1 ends at the 95 % bound. NaN without one."""
    if name in _NO_SHARES or measured.value not in (0, 1):
        return measured.low, measured.high
    bound = bound_without_flips(units)
    return (0.0, bound) if measured.value == 0 else (1 - bound, 1.0)


def _as_demanded(decision: Decision, criteria: Criteria) -> Decision:
    """Return a verdict; one that is not judged if the criteria ask for more patients, or for certain verdicts alone."""
    decision = replace(decision, needed=max(MIN_UNITS, criteria.min_patients or 0))
    if decision.is_about_few:
        return replace(decision, holds=None, certain=False, crosses=False)
    if criteria.certain and decision.holds and not decision.certain:
        return replace(decision, holds=None)
    return decision
