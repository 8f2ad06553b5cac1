"""Test instances with the predictions of two models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.errors import UsageError

from ..people.predicted import Bools, Floats, Predicted

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
        patients: its patient, [n]; empty if unknown.
        targets: bool [n, outputs].
        before: predictions of the model before the update.
        after: predictions of the model after the update.
        groups: subgroup columns [n] by name.
    """

    instances: Ints
    tasks: Names
    labels: Names
    patients: Names
    targets: Bools
    before: Predicted
    after: Predicted
    groups: Mapping[str, Names] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.instances)

    @property
    def unit(self) -> str:
        """What the bootstrap resamples: "patient", or "instance" if any patient is unknown."""
        return "patient" if len(self) and (self.patients != "").all() else "instance"

    @cached_property
    def units(self) -> Ints:
        """Index of the unit (patient or instance) of each instance, counted from 0: [n]."""
        named = self.patients if self.unit == "patient" else self.instances
        return np.asarray(np.unique(named, return_inverse=True)[1], np.int64)

    def take(self, rows: npt.NDArray[np.generic]) -> Paired:
        """Return a subset of the instances, by index or mask."""
        return Paired(
            self.instances[rows],
            self.tasks[rows],
            self.labels[rows],
            self.patients[rows],
            self.targets[rows],
            self.before.take(rows),
            self.after.take(rows),
            {name: column[rows] for name, column in self.groups.items()},
        )

    @cached_property
    def classes(self) -> dict[str, Bools]:
        """Sorted names of the classes that occur, each with a mask [n] of the instances with it."""
        several = self.targets.shape[1] > 1 and not (self.targets.sum(1) == 1).all()
        sets = [text.split("+") if several else [text] for text in self.labels]
        names = sorted({name for names in sets for name in names if name})
        return {name: np.array([name in names for names in sets]) for name in names}

    def one_by_one(self) -> list[OneClass]:
        """Return each class against the rest.

        If an output stands for the same class in all tasks, the rest is all other instances. If outputs are positions
        within a task, the rest is the other instances of the tasks with the class. A class without a rest is left out.
        """
        found = []
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
                found.append(OneClass(name, rows, has, scores, said))
        return found

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


def last_update(predictions: pd.DataFrame) -> tuple[Paired, Paired]:
    """Compare a run before and after its last task: on instances of earlier tasks, and on new instances.

    New instances belong to the last task and to no earlier task.

    Raises:
        UsageError: the run has no predictions, or was trained in a single stage.
    """
    predictions = _known(predictions)
    stages = np.unique(predictions["trained_on"])
    if len(stages) < 2:
        raise UsageError(
            "the run was trained on all tasks at once, so it has no model before an update; compare it with another "
            "run: --against RUN_ID"
        )
    before, after = (predictions[predictions["trained_on"] == stage] for stage in stages[-2:])
    whole, number = _paired(before, after), after.sort_values(["task", "instance"])["evaluated_on"].to_numpy()
    old = number < stages[-1]
    new = ~old & ~np.isin(whole.instances, whole.instances[old])
    return _once(whole.take(old)), _once(whole.take(new))


def last_models(before: pd.DataFrame, after: pd.DataFrame) -> Paired:
    """Compare the last models of two runs on all test instances.

    Raises:
        UsageError: a run has no predictions, or the runs differ in test instances, labels or the order of labels.
    """
    both = (it[it["trained_on"] == it["trained_on"].max()] for it in map(_known, (before, after)))
    return _once(_paired(*both))


def _known(predictions: pd.DataFrame) -> pd.DataFrame:
    """Return the predictions for instances of tasks; people in no task are neither old nor new."""
    if predictions.empty:
        raise UsageError("the run has no predictions; run its search space again with --keep predictions")
    return predictions[predictions["evaluated_on"] > 0]


def _paired(before: pd.DataFrame, after: pd.DataFrame) -> Paired:
    """Pair the predictions of two stages on the same instances, sorted by task and instance."""
    one, other = (it.sort_values(["task", "instance"], kind="stable", ignore_index=True) for it in (before, after))
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
    texts = (one[name].fillna("").to_numpy(dtype=object) for name in ("task", "label", "patient"))
    tasks, labels, patients = texts
    return Paired(one["instance"].to_numpy(), tasks, labels, patients, first.targets, first, second)


def _once(paired: Paired) -> Paired:
    """Remove duplicates: an instance that several tasks share, with equal targets and predictions in each."""
    answers = (paired.targets, paired.before.probabilities, paired.after.probabilities)
    table = pd.DataFrame(np.column_stack([paired.instances, *answers]))
    return paired.take(~table.duplicated().to_numpy())
