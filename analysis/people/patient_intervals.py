"""Intervals for single runs and for pairs of runs, by resampling the patients of the test set.

Needs the table `predictions`, which a sweep keeps with `--keep predictions`. The networks stay as they are, so an
interval says how much a number depends on who was tested, not on who was trained on, nor on the seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from clops_sweep.errors import UsageError, several
from clops_sweep.learning.metrics import r_matrix
from clops_sweep.store.run_store import RunStore

from ..statistics import CONFIDENCE, MIN_UNITS
from .predicted import Bools, Floats, Predicted

Ints = npt.NDArray[np.int64]

RESAMPLES = 1000
FEW_PEOPLE = 10
"""A class of fewer people keeps their number in every resample."""

COLUMNS = ["run_id", "metric", "value", "low", "high", "people", "obstacle"]
AT_ONCE = 2_000_000
"""Weights of instances that are held in memory."""

_OF_R = {"": r_matrix.average, "bwt": r_matrix.backward_transfer, "forgetting": r_matrix.forgetting}
PATIENT_METRICS = tuple(
    f"test_{name or measure}" if measure == "auc" else "_".join(filter(None, ("test", measure, name)))
    for measure in ("auc", "accuracy", "balanced_accuracy")
    for name in _OF_R
)
"""Columns of `runs` that have an interval over patients."""


@dataclass(frozen=True)
class PatientInterval:
    """A metric of a run, or the difference of two runs, with its 95 % interval over the test patients.

    Attributes:
        value: value on all test instances.
        low: the 2.5 % quantile over resamples; NaN without an interval.
        high: the 97.5 % quantile.
        people: number of distinct test patients over all tasks.
        obstacle: why there is no interval; else empty.
    """

    value: float
    low: float
    high: float
    people: int
    obstacle: str = ""


def patient_bootstrap(
    predictions: pd.DataFrame, other: pd.DataFrame | None = None, *, resamples: int = RESAMPLES
) -> dict[str, PatientInterval]:
    """The percentile bootstrap over test patients for AUC, accuracy, balanced accuracy, their BWT and forgetting.

    A resample draws the patients of all tasks together, with replacement. All instances of a patient who is drawn k
    times count k times. From them, R[i][j] is computed for all tasks, and each metric from R by its formula in `runs`.
    For two runs, both are computed on the same patients and subtracted. A run on all tasks at once is evaluated on the
    union of the tasks, and has no BWT and no forgetting.

    Classes of a task (with several labels: presence and absence of each) with fewer than 10 people could vanish from a
    resample. Patients are therefore drawn within strata: a patient of such classes belongs to the one with the fewest
    people; all others form one stratum. Resamples in which a class still vanishes are dropped. With fewer than 3 people
    in a class, AUC and balanced accuracy have no interval.

    Args:
        predictions: rows of the table `predictions` of one run.
        other: rows of the run to subtract.
        resamples: number of resamples; equal for equal patients.

    Returns:
        An interval for each of `PATIENT_METRICS`; NaN if a metric is undefined.

    Raises:
        UsageError: no rows, or two runs that were not tested on the same instances.
    """
    ours = _TestSet.of(predictions)
    runs = [ours]
    if other is not None:
        theirs = _TestSet.of(other)
        if not ours.same_instances(theirs):
            raise UsageError("the two runs were not tested on the same instances of the same tasks: expected two runs "
                             "of one data set, scenario and patient split")  # fmt: skip
        runs.append(theirs)

    def measured(weights: Floats) -> Floats:
        """Return the metrics of the run, minus those of the other."""
        first, *others = (run.metrics(weights) for run in runs)
        return first - others[0] if others else first

    value = measured(np.ones((1, len(ours.people))))
    obstacles = [ours.obstacle(metric) for metric in PATIENT_METRICS]
    ends = np.full((2, len(PATIENT_METRICS)), np.nan)
    if not all(obstacles):
        tail = (1 - CONFIDENCE) / 2
        for place, column in enumerate(measured(ours.resamples(resamples)).T):
            defined = column[np.isfinite(column)]
            if defined.size and not obstacles[place]:
                ends[:, place] = np.quantile(defined, (tail, 1 - tail))
    found = zip(PATIENT_METRICS, value[0].tolist(), *ends.tolist(), obstacles, strict=True)
    return {name: PatientInterval(at, low, high, len(ours.people), why) for name, at, low, high, why in found}


def predictions_of(store: RunStore, run_ids: Iterable[str] | None = None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield runs of a store with their predictions; one table is in memory at a time.

    Args:
        store: the store.
        run_ids: the runs; by default all with predictions.
    """
    there = store.predicted()
    for run_id in sorted(there) if run_ids is None else [it for it in run_ids if it in there]:
        yield run_id, store.read("predictions", run_id)


def intervals(store: RunStore, run_ids: Iterable[str] | None = None) -> pd.DataFrame:
    """Return `patient_bootstrap` of runs as a table: run_id, metric, value, low, high, people, obstacle.

    Args:
        store: the store.
        run_ids: the runs; by default all with predictions.
    """
    rows = [
        (run_id, name, it.value, it.low, it.high, it.people, it.obstacle)
        for run_id, predictions in predictions_of(store, run_ids)
        if len(predictions)
        for name, it in patient_bootstrap(predictions).items()
        if np.isfinite(it.value)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


@dataclass(frozen=True)
class _Task:
    """The test instances of a task: their patients, as indices into `people`, and targets [n, C]."""

    patients: Ints
    instances: Ints
    targets: Bools

    def classes(self) -> Iterator[tuple[str, Ints]]:
        """Yield each class of tasks with several classes, with the people who have it."""
        outputs = self.targets.shape[1]
        exclusive = outputs > 1 and (self.targets.sum(1) == 1).all()
        for output in range(outputs):
            present = self.targets[:, output]
            if present.all() or not present.any():
                continue
            yield f"target_{output} = 1", np.unique(self.patients[present])
            if not exclusive:
                yield f"target_{output} = 0", np.unique(self.patients[~present])


@dataclass(frozen=True)
class _TestSet:
    """Predictions of a run: tasks, and predictions by stage and task."""

    people: npt.NDArray[np.object_]
    tasks: Sequence[_Task]
    names: Sequence[str]
    stages: Sequence[Sequence[Predicted]]

    @classmethod
    def of(cls, predictions: pd.DataFrame) -> _TestSet:
        in_tasks = predictions[predictions["evaluated_on"] > 0]
        rows = in_tasks.sort_values(["trained_on", "evaluated_on", "instance"], kind="stable")
        given = Predicted.of(rows)
        targets = given.targets
        people, codes = np.unique(rows["patient"].fillna("").to_numpy(dtype=object), return_inverse=True)
        trained, evaluated = rows["trained_on"].to_numpy(), rows["evaluated_on"].to_numpy()
        numbers, names, tasks, stages = np.unique(evaluated).tolist(), [], [], []
        for stage in np.unique(trained).tolist():
            stages.append([given.take((trained == stage) & (evaluated == number)) for number in numbers])
        for number in numbers:
            here = (trained == trained[0]) & (evaluated == number)
            tasks.append(_Task(codes[here], rows["instance"].to_numpy()[here], targets[here]))
            names.append(str(rows["task"].to_numpy()[here][0]))
        if len(stages) == 1 and len(tasks) > 1:  # trained on all tasks at once
            columns = zip(*((it.patients, it.instances, it.targets) for it in tasks), strict=True)
            whole = _Task(*map(np.concatenate, columns))
            return cls(people, [whole], ["all tasks"], [[given]])
        return cls(people, tasks, names, stages)

    def same_instances(self, other: _TestSet) -> bool:
        """Return whether both were tested on the same instances of the same people, in any tasks."""
        ours, theirs = (
            {it: run.people[who] for task in run.tasks for it, who in zip(task.instances, task.patients, strict=True)}
            for run in (self, other)
        )
        return ours == theirs

    @property
    def small(self) -> list[tuple[str, Ints]]:
        """Classes of fewer than `FEW_PEOPLE` people, those of the fewest first."""
        found = [
            (f"{what} in task {name}", people)
            for name, task in zip(self.names, self.tasks, strict=True)
            for what, people in task.classes()
            if len(people) < FEW_PEOPLE
        ]
        return sorted(found, key=lambda it: len(it[1]))

    def obstacle(self, metric: str) -> str:
        """Return why a metric has no interval; empty if it has one."""
        if "" in self.people:
            return "the predictions name no patients, as those of versions before 0.3"
        if len(self.people) < MIN_UNITS:
            return f"{several(len(self.people), 'test patient')} where {MIN_UNITS} are needed"
        if self.small and len(self.small[0][1]) < MIN_UNITS and not metric.startswith("test_accuracy"):
            what, people = self.small[0]
            return f"{several(len(people), 'test patient')} with {what} where {MIN_UNITS} are needed"
        return ""

    def resamples(self, count: int) -> Floats:
        """Return how often each person is drawn, [count, people]."""
        return drawn_people(len(self.people), [people for _, people in self.small], count)

    def metrics(self, weights: Floats) -> Floats:
        """Return `PATIENT_METRICS` [b, metrics] with weights of the people [b, people]."""
        n = len(self.tasks)
        r = np.full((3, len(weights), len(self.stages), n), np.nan)
        for column, task in enumerate(self.tasks):
            step = max(1, AT_ONCE // max(1, len(task.patients)))
            for first in range(0, len(weights), step):
                of_instances = weights[first : first + step][:, task.patients]
                for row, stage in enumerate(self.stages):
                    r[:, first : first + step, row, column] = scores(stage[column], of_instances)
        found = [
            [function(matrix) if len(self.stages) == n else np.nan for matrix in measure]
            for measure in r
            for function in _OF_R.values()
        ]
        return np.array(found).T


def drawn_people(count: int, small: Sequence[Ints], resamples: int) -> Floats:
    """How often each person is drawn with replacement in each resample, [resamples, people]; always the same draws.

    Args:
        count: of the people.
        small: people of each class that must keep its number of people, the smallest class first.
        resamples: how many.
    """
    stratum = np.full(count, -1)
    for number, people in enumerate(small):
        stratum[people[stratum[people] < 0]] = number
    rng, drawn = np.random.default_rng(0), np.zeros((resamples, count))
    for number in np.unique(stratum):
        members = np.flatnonzero(stratum == number)
        drawn[:, members] = rng.multinomial(len(members), np.full(len(members), 1 / len(members)), size=resamples)
    return drawn


def scores(predicted: Predicted, weights: Floats) -> Floats:
    """Return weighted AUC, accuracy and balanced accuracy.

    The definitions are those of `runs` with weighted sums: AUC is the share of pairs of a positive and a negative
    instance in the right order, weighted by the product of their weights; ties count half.

    Args:
        predicted: n instances.
        weights: [b, n].

    Returns:
        [3, b]; NaN if a class vanishes.
    """
    undefined = np.full(len(weights), np.nan)
    aucs, recalls = [], []
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = weights @ predicted.right / weights.sum(1)
        for present, said, score in zip(predicted.targets.T, predicted.said.T, predicted.scores.T, strict=True):
            both = present.any() and not present.all()
            if both:
                aucs.append(_auc(present, score, weights))
            recall = weights @ (present & said) / (weights @ present)
            if predicted.exclusive and present.any():
                recalls.append(recall)
            elif both:
                recalls.append((recall + weights @ ~(present | said) / (weights @ ~present)) / 2)
    auc, balanced = (np.mean(each or [undefined], axis=0) for each in (aucs, recalls))
    return np.stack([auc, accuracy, balanced])


def by_score(present: Bools, score: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weights [b, distinct scores] of the instances with and without a class, by ascending score [n]."""
    order = np.argsort(score, kind="stable")
    ordered, sorted_weights = score[order], weights[:, order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    positive, negative = (np.add.reduceat(sorted_weights * it[order], first, axis=1) for it in (present, ~present))
    return positive, negative


def _auc(present: Bools, score: Floats, weights: Floats) -> Floats:
    positive, negative = by_score(present, score, weights)
    below = np.cumsum(negative, axis=1) - negative
    pairs = positive.sum(1) * negative.sum(1)
    return np.asarray((positive * (below + negative / 2)).sum(1) / pairs)
