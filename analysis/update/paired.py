"""Test instances with the predictions of two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.errors import UsageError, option

from ..people.predicted import Bools, Floats, Predicted, drawn_units, joined_predictions

Ints = npt.NDArray[np.int64]
Names = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class OneClass:
    """One class against the rest.

    Attributes:
        name: name of the class.
        rows: bool [n], the instances to evaluate; the other attributes are undefined elsewhere.
        has: bool [n], whether an instance has the class.
        scores: scores of the class before and after, [2, n].
        said: whether the models decide for the class before and after, bool [2, n].
    """

    name: str
    rows: Bools
    has: Bools
    scores: Floats
    said: Bools


@dataclass(frozen=True, eq=False)
class Paired:
    """n test instances with the predictions of the model before and after the update.

    Attributes:
        instances: index of each instance in the data set, [n].
        tasks: name of its task, [n].
        labels: its class or classes as text, [n].
        unit: what the bootstrap resamples: "patient"; if people are unknown "recording", or "instance".
        patients: name of its unit, [n].
        targets: bool [n, outputs].
        before: predictions of the model before the update.
        after: predictions of the model after the update.
        groups: subgroup columns [n] by name.
        folds: number of the fold whose models predicted it, [n]; None if all are of one.
    """

    instances: Ints
    tasks: Names
    labels: Names
    unit: str
    patients: Names
    targets: Bools
    before: Predicted
    after: Predicted
    groups: Mapping[str, Names] = field(default_factory=dict)
    folds: Ints | None = None

    def __len__(self) -> int:
        return len(self.instances)

    @cached_property
    def units(self) -> Ints:
        """Index of the unit of each instance, counted from 0: [n]."""
        return np.asarray(np.unique(self.patients, return_inverse=True)[1], np.int64)

    def take(self, rows: npt.NDArray[np.generic]) -> Paired:
        """Return a subset of the instances, by index or mask."""
        return Paired(
            self.instances[rows],
            self.tasks[rows],
            self.labels[rows],
            self.unit,
            self.patients[rows],
            self.targets[rows],
            self.before.take(rows),
            self.after.take(rows),
            {name: column[rows] for name, column in self.groups.items()},
            None if self.folds is None else self.folds[rows],
        )

    def once(self) -> Paired:
        """Remove duplicates: an instance that several tasks share, with equal targets and predictions in each."""
        answers = (self.targets, self.before.probabilities, self.after.probabilities)
        table = pd.DataFrame(np.column_stack([self.instances, *answers]))
        return self.take(~table.duplicated().to_numpy())

    @cached_property
    def classes(self) -> dict[str, Bools]:
        """Names of the classes that occur, each with a mask [n] of the instances with it.

        In the order of the outputs, `probability_0` first; sorted by name if outputs are positions within a task.
        """
        several = self.targets.shape[1] > 1 and not (self.targets.sum(1) == 1).all()
        of_outputs = _names_of_outputs(self.targets, self.labels) if several else []
        if of_outputs:
            named = dict(zip(of_outputs, self.targets.T, strict=True))
            return {name: has for name, has in named.items() if has.any()}
        sets = [text.split("+") if several else [text] for text in self.labels]
        names = sorted({name for names in sets for name in names if name})
        classes = {name: np.array([name in names for names in sets]) for name in names}
        whole = np.ones(len(self), bool)
        places = {name: self._output(has, whole) for name, has in classes.items()}
        found = {name: place for name, place in places.items() if place is not None}
        if len(found) < len(classes):
            return classes
        return {name: classes[name] for name in sorted(found, key=found.__getitem__)}

    def one_by_one(self) -> list[OneClass]:
        """Return each class against the rest.

        If an output stands for the same class in all tasks, the rest is all other instances. If outputs are positions
        within a task, the rest is the other instances of the tasks with the class. A class without a rest is left out.
        """
        classes = []
        for name, has in self.classes.items():
            rows, scores, said = has & False, np.zeros((2, len(self))), np.zeros((2, len(self)), bool)
            whole = self._output(has, ~rows)
            for there in [~rows] if whole is not None else [self.tasks == task for task in np.unique(self.tasks[has])]:
                place = whole if whole is not None else self._output(has, there)
                if place is None or has[there].all():
                    continue
                output, is_it = place
                rows |= there
                for which, model in enumerate((self.before, self.after)):
                    score, decided = model.scores[:, output], model.said[:, output]
                    scores[which, there] = score[there] if is_it else -score[there]
                    said[which, there] = decided[there] == is_it
            if rows.any():
                classes.append(OneClass(name, rows, has, scores, said))
        return classes

    def _output(self, has: Bools, rows: Bools) -> tuple[int, bool] | None:
        """Return the output of a class on some instances, and whether 1 (True) or 0 (False) means presence.

        The result is None if no output equals the class.
        """
        for output, target in enumerate(self.targets[rows].T):
            if (target == has[rows]).all():
                return output, True
            if self.targets.shape[1] == 1 and (target != has[rows]).all():
                return output, False
        return None


def _names_of_outputs(targets: Bools, labels: Names) -> list[str]:
    """Return the class of each output from labels that join the classes of an instance by "+", in the order of outputs.

    A name may have a plus sign itself. So it is what a label has beside the names that are known already, first those
    of instances with a single class.

    Args:
        targets: bool [n, outputs].
        labels: the classes of each instance as text, [n].

    Returns:
        Names, "" for an output that no instance has; empty if the labels do not tell them, or tell equal ones.
    """
    texts = dict(zip(map(tuple, targets.tolist()), labels.tolist(), strict=True))
    sets = [(np.flatnonzero(has).tolist(), str(text)) for has, text in texts.items()]
    known: dict[int, str] = {}
    for _ in range(targets.shape[1]):
        for outputs, text in sorted(sets, key=lambda of_set: len(of_set[0])):
            unknown = [output for output in outputs if output not in known]
            if len(unknown) != 1:
                continue
            before = "".join(f"{known[output]}+" for output in outputs if output < unknown[0])
            after = "".join(f"+{known[output]}" for output in outputs if output > unknown[0])
            known[unknown[0]] = text[len(before) : len(text) - len(after)]
    names = [known.get(output, "") for output in range(targets.shape[1])]
    there = [name for output, name in enumerate(names) if targets[:, output].any()]
    if len({*there} - {""}) < len(there):
        return []
    for has, label in zip(targets, labels, strict=True):
        if "+".join(names[output] for output in np.flatnonzero(has)) != label:
            return []
    return names


def joined(parts: Sequence[Paired]) -> Paired:
    """Return the instances of several test sets, of a fold each, as one.

    Raises:
        UsageError: the parts differ in outputs, in the kind of decisions, or in what the bootstrap resamples.
    """
    first, *others = parts
    kind = (first.unit, first.targets.shape[1], first.after.exclusive)
    if any((part.unit, part.targets.shape[1], part.after.exclusive) != kind for part in others):
        raise UsageError("the runs differ in the outputs of their models; expected runs of one scenario and data set")

    def whole(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    return Paired(
        whole("instances"),
        whole("tasks"),
        whole("labels"),
        first.unit,
        whole("patients"),
        whole("targets"),
        joined_predictions([part.before for part in parts]),
        joined_predictions([part.after for part in parts]),
        folds=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
    )


@dataclass(frozen=True, eq=False)
class LastUpdate:
    """A run before and after its last task.

    Attributes:
        rows: all test instances, once for each of their tasks.
        old: bool [n], whether a row is of an earlier task.
        new: bool [n], whether an instance belongs to the last task and to no earlier task.
        tasks: names of the tasks in the order of training.
    """

    rows: Paired
    old: Bools
    new: Bools
    tasks: tuple[str, ...]


def last_update(predictions: pd.DataFrame) -> LastUpdate:
    """Compare a run before and after its last task.

    Raises:
        UsageError: the run has no predictions, or was trained in a single stage.
    """
    predictions = _known(predictions)
    stages = np.unique(predictions["trained_on"])
    if len(stages) < 2:
        raise UsageError(
            "the run was trained on all tasks at once, so it has no model before an update; compare it with another "
            f"run: {option('against', 'RUN_ID')}"
        )
    before, after = (predictions[predictions["trained_on"] == stage] for stage in stages[-2:])
    rows = _paired(before, after)
    ordered = after.sort_values(["task", "instance"], kind="stable")
    number = ordered["evaluated_on"].to_numpy()
    old = number < stages[-1]
    new = ~old & ~np.isin(rows.instances, rows.instances[old])
    return LastUpdate(rows, old, new, tasks_in_order(after))


def tasks_in_order(predictions: pd.DataFrame) -> tuple[str, ...]:
    """Return the names of the tasks of a run in the order of training, from its predictions."""
    of_tasks = predictions[predictions["evaluated_on"] > 0]
    tasks = of_tasks.sort_values("evaluated_on", kind="stable")["task"].unique()
    return tuple(map(str, tasks))


def last_models(before: pd.DataFrame, after: pd.DataFrame) -> Paired:
    """Compare the last models of two runs on all test instances.

    Raises:
        UsageError: a run has no predictions, or the runs differ in test instances, labels or the order of labels.
    """
    both = (
        predictions[predictions["trained_on"] == predictions["trained_on"].max()]
        for predictions in map(_known, (before, after))
    )
    return _paired(*both).once()


def _known(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the predictions for instances of tasks; people in no task are neither old nor new."""
    if predictions.empty:
        raise UsageError(f"the run has no predictions; run its search space again with {option('keep', 'predictions')}")
    return predictions[predictions["evaluated_on"] > 0]


def _paired(before: pd.DataFrame, after: pd.DataFrame) -> Paired:
    """Pair the predictions of two stages on the same instances, sorted by task and instance."""
    one = before.sort_values(["task", "instance"], kind="stable", ignore_index=True)
    other = after.sort_values(["task", "instance"], kind="stable", ignore_index=True)
    keys = ["task", "instance"]
    if not one[keys].equals(other[keys]):
        raise UsageError(
            "the two runs were not tested on the same instances of the same tasks; expected runs of one data set, "
            "scenario and patient split"
        )
    first, second = Predicted.of(one), Predicted.of(other)
    if not np.array_equal(first.targets, second.targets):
        raise UsageError(
            "the two runs have different labels, or a different order of labels, for the same instances; expected one "
            "scenario with the same classes for each task"
        )
    tasks, labels = (one[name].fillna("").to_numpy(dtype=object) for name in ("task", "label"))
    unit, patients = drawn_units(one)
    return Paired(one["instance"].to_numpy(), tasks, labels, unit, patients, first.targets, first, second)
