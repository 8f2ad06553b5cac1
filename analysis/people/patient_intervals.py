"""Intervals for single runs and for pairs of runs, by resampling the patients of the test set.

Needs the table `predictions`, which a sweep keeps with `--keep predictions`. The networks stay as they are, so an
interval says how much a number depends on who was tested, not on who was trained on, nor on the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from clops_sweep.errors import UsageError, several
from clops_sweep.store.run_store import RunStore

from ..statistics import CONFIDENCE, MIN_UNITS
from .predicted import Bools, Floats, Predicted, drawn_units

Ints = npt.NDArray[np.int64]

RESAMPLES = 1000
FEW_PEOPLE = 20
"""Intervals over fewer people cover less than 95 %."""
FEW_COVER = "about 90 % with 5 to 10 people and 60 to 80 % with 3, in simulations"
FEW_IN_TASK = 5
"""With fewer people in a task, tasks count by how many of their people are drawn."""

COLUMNS = ["run_id", "metric", "value", "low", "high", "people", "obstacle", "unit"]
ALIKE = "all resamples are equal, which does not exclude other values among other people"
_MOST_WEIGHTS = 20_000_000
AT_ONCE = 500_000
"""Weights of instances at once: 4 MB, which a cache of the processor holds."""

_OF_R: dict[str, Callable[[Floats], Floats]] = {
    "": lambda r: r[:, -1],
    "bwt": lambda r: r[:, -1, :-1] - np.diagonal(r, axis1=1, axis2=2)[:, :-1],
    "forgetting": lambda r: np.fmax.reduce(r[:, :-1, :-1], axis=1, initial=-np.inf) - r[:, -1, :-1],
}
"""The terms [b, tasks] whose mean is a metric of R [b, stages, tasks]."""
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
        low: lower end; NaN without an interval.
        high: upper end.
        people: number of distinct test patients over all tasks, or of other units.
        obstacle: why there is no interval; else empty.
        unit: "patient"; if people are unknown "recording" (or "instance"), drawn as if independent.
    """

    value: float
    low: float
    high: float
    people: int
    obstacle: str = ""
    unit: str = "patient"

    @property
    def drawn(self) -> str:
        """Describe the number of patients or other units."""
        units = several(self.people, f"test {self.unit}")
        return units if self.unit == "patient" else f"{units} as if independent, because people are unknown"


def patient_bootstrap(
    predictions: pd.DataFrame, other: pd.DataFrame | None = None, *, resamples: int = RESAMPLES
) -> dict[str, PatientInterval]:
    """Return bootstrap intervals over test patients for AUC, accuracy, balanced accuracy, their BWT and forgetting.

    A resample draws the patients of all tasks together, with replacement. All instances of a patient who is drawn k
    times count k times. From them, R[i][j] is computed for all tasks, and each metric from R by its formula in `runs`.
    For two runs, both are computed on the same patients and subtracted. A run on all tasks at once is evaluated on the
    union of the tasks, and has no BWT and no forgetting. The ends are those of `ends_of`.

    Classes and tasks without people in a resample are left out of its means. If a task has fewer than 5 people, as
    groups of people may, the mean weights each task by its share of people drawn, k / m for k draws from its m people:
    otherwise a person who is a task would count the same however often it is drawn. With fewer than 3 people in a class
    of a task (with several labels: presence and absence of each), AUC and balanced accuracy have no interval.

    Args:
        predictions: rows of the table `predictions` of one run.
        other: rows of the run to subtract.
        resamples: number of resamples, fewer for more than 20,000 patients; equal for equal patients.

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
            raise UsageError("the two runs were not tested on the same instances, with the same people and classes: "
                             "expected two runs of one data set, scenario and patient split")  # fmt: skip
        runs.append(theirs)

    def measured(weights: Floats) -> Floats:
        """Return the metrics of the run, minus those of the other."""
        of_run, *of_other = (run.metrics(weights) for run in runs)
        return of_run - of_other[0] if of_other else of_run

    people = len(ours.people)
    obstacles = {metric: ours.obstacle(metric) for metric in PATIENT_METRICS}
    count = min(resamples, most_resamples(people))
    if all(obstacles.values()):
        count = 0
    draws = measured(drawn_people(people, count))
    intervals = {}
    for metric, of_metric in zip(PATIENT_METRICS, draws.T, strict=True):
        value = float(of_metric[0])
        obstacle = obstacles[metric]
        low, high = np.nan, np.nan
        if not obstacle:
            low, high = ends_of(of_metric, people)
            if np.isnan(low) and np.isfinite(value):
                obstacle = ALIKE
        intervals[metric] = PatientInterval(value, low, high, people, obstacle, ours.unit)
    return intervals


def ends_of(draws: Floats, people: int) -> tuple[float, float]:
    """Return the ends of a 95 % interval: quantiles of the resamples whose levels allow for few people.

    The levels are P(Z < -t sqrt(n / (n - 1))) and 1 minus it, with Z standard normal and t the 97.5 % quantile of
    Student's t with n - 1 degrees of freedom: 0.9 % for 10 people, 2.4 % for 100 (the expanded percentile interval;
    Hesterberg, 2015). At 2.5 %, ends of a mean are too narrow by sqrt((n - 1) / n), and normal where t is right.

    Args:
        draws: the value, then that of each resample; those that are undefined are left out.
        people: n.

    Returns:
        Two numbers; NaN below 3 people, and if the value is undefined or the ends are equal.
    """
    defined = draws[1:][np.isfinite(draws[1:])]
    if people < MIN_UNITS or not defined.size or not np.isfinite(draws[0]):
        return np.nan, np.nan
    t = special.stdtrit(people - 1, (1 + CONFIDENCE) / 2)
    tail = special.ndtr(-t * np.sqrt(people / (people - 1)))
    low, high = np.quantile(defined, (tail, 1 - tail)).tolist()
    return (low, high) if low < high else (np.nan, np.nan)


def predictions_of(store: RunStore, run_ids: Iterable[str] | None = None) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield runs of a store with their predictions; one table is in memory at a time.

    Args:
        store: the store.
        run_ids: the runs; by default all with predictions.
    """
    predicted = store.predicted()
    wanted = sorted(predicted) if run_ids is None else [run_id for run_id in run_ids if run_id in predicted]
    for run_id in wanted:
        yield run_id, store.read("predictions", run_id)


def intervals(store: RunStore, run_ids: Iterable[str] | None = None) -> pd.DataFrame:
    """Return `patient_bootstrap` of runs as a table: run_id, metric, value, low, high, people, obstacle, unit.

    Args:
        store: the store.
        run_ids: the runs; by default all with predictions.
    """
    rows: list[tuple[object, ...]] = []
    for run_id, predictions in predictions_of(store, run_ids):
        if not len(predictions):
            continue
        for metric, interval in patient_bootstrap(predictions).items():
            if np.isfinite(interval.value):
                rows.append((run_id, metric, *astuple(interval)))
    return pd.DataFrame(rows, columns=COLUMNS)


@dataclass(frozen=True)
class _Task:
    """The test instances of a task: their patients, as indices into `people`, targets [n, C], and classes as text."""

    patients: Ints
    instances: Ints
    targets: Bools
    labels: npt.NDArray[np.object_]

    def classes(self) -> Iterator[tuple[str, Ints]]:
        """Yield each class of tasks with several classes, such as "AF" or "target_1 = 1", with the people who have it.

        The labels of the instances name a class, if they tell it.
        """
        outputs = self.targets.shape[1]
        exclusive = outputs > 1 and (self.targets.sum(1) == 1).all()
        for output in range(outputs):
            present = self.targets[:, output]
            if present.all() or not present.any():
                continue
            yield self._named(present, f"target_{output} = 1"), np.unique(self.patients[present])
            if not exclusive:
                yield self._named(~present, f"target_{output} = 0"), np.unique(self.patients[~present])

    def _named(self, chosen: Bools, otherwise: str) -> str:
        """Return the label of the chosen instances, if they have the same and no other instance has it."""
        labels = set(self.labels[chosen].tolist())
        name = labels.pop() if len(labels) == 1 else ""
        return otherwise if not name or (self.labels[~chosen] == name).any() else str(name)


@dataclass(frozen=True)
class _TestSet:
    """Predictions of a run: tasks, and predictions by stage and task."""

    unit: str
    people: npt.NDArray[np.object_]
    tasks: Sequence[_Task]
    names: Sequence[str]
    stages: Sequence[Sequence[Predicted]]

    @classmethod
    def of(cls, predictions: pd.DataFrame) -> _TestSet:
        in_tasks = predictions[predictions["evaluated_on"] > 0]
        rows = in_tasks.sort_values(["trained_on", "evaluated_on", "instance"], kind="stable")
        predicted = Predicted.of(rows)
        unit, unit_of_row = drawn_units(rows)
        people, codes = np.unique(unit_of_row, return_inverse=True)
        instances = rows["instance"].to_numpy()
        labels = rows["label"].fillna("").to_numpy(dtype=object)
        trained = rows["trained_on"].to_numpy()
        evaluated = rows["evaluated_on"].to_numpy()
        numbers = np.unique(evaluated).tolist()
        stages = []
        for stage in np.unique(trained).tolist():
            stages.append([predicted.take((trained == stage) & (evaluated == number)) for number in numbers])
        tasks = []
        names = []
        for number in numbers:
            of_task = (trained == trained[0]) & (evaluated == number)
            tasks.append(_Task(codes[of_task], instances[of_task], predicted.targets[of_task], labels[of_task]))
            names.append(str(rows["task"].to_numpy()[of_task][0]))
        if len(stages) == 1 and len(tasks) > 1:  # trained on all tasks at once
            union = _Task(
                np.concatenate([task.patients for task in tasks]),
                np.concatenate([task.instances for task in tasks]),
                np.concatenate([task.targets for task in tasks]),
                np.concatenate([task.labels for task in tasks]),
            )
            return cls(unit, people, [union], ["all tasks"], [[predicted]])
        return cls(unit, people, tasks, names, stages)

    def same_instances(self, other: _TestSet) -> bool:
        """Return whether both were tested on the same instances of the same people and classes, in any tasks."""
        return self._facts_of_instances() == other._facts_of_instances()

    def _facts_of_instances(self) -> dict[int, tuple[object, object]]:
        """Return the person and the classes of each instance."""
        facts: dict[int, tuple[object, object]] = {}
        for task in self.tasks:
            people = self.people[task.patients]
            of_instances = zip(people, task.labels, strict=True)
            facts.update(zip(task.instances.tolist(), of_instances, strict=True))
        return facts

    def obstacle(self, metric: str) -> str:
        """Return why a metric has no interval; empty if it has one."""
        if len(self.people) < MIN_UNITS:
            return f"{several(len(self.people), f'test {self.unit}')} where {MIN_UNITS} are needed"
        if metric.startswith("test_accuracy"):
            return ""
        for name, task in zip(self.names, self.tasks, strict=True):
            for label, people in task.classes():
                if len(people) < MIN_UNITS:
                    with_label = f"{several(len(people), f'test {self.unit}')} with {label} in task {name}"
                    return f"{with_label} where {MIN_UNITS} are needed"
        return ""

    def metrics(self, weights: Floats) -> Floats:
        """Return `PATIENT_METRICS` [b, metrics] with weights of the people [b, people], the first row all 1."""
        n = len(self.tasks)
        if len(self.stages) < n:
            return np.full((len(weights), len(PATIENT_METRICS)), np.nan)
        r = np.full((3, len(weights), len(self.stages), n), np.nan)
        for column, task in enumerate(self.tasks):
            step = max(1, AT_ONCE // max(1, len(task.patients)))
            for first in range(0, len(weights), step):
                some = slice(first, first + step)
                of_instances = weights[some].T[task.patients].T
                for row, stage in enumerate(self.stages):
                    r[:, some, row, column] = scores(stage[column], of_instances)
        share = np.ones((len(weights), n))
        people_of_tasks = [np.unique(task.patients) for task in self.tasks]
        if min(map(len, people_of_tasks)) < FEW_IN_TASK:
            share = np.stack([weights[:, people].mean(1) for people in people_of_tasks], axis=1)
        metrics = []
        for of_measure in r:
            for terms_of in _OF_R.values():
                terms = terms_of(of_measure)
                metric = mean_of_defined(terms, share[:, : terms.shape[1]])
                is_defined = not np.isnan(terms[0]).any()
                metrics.append(metric if is_defined else np.full(len(weights), np.nan))
        return np.stack(metrics, axis=1)


def most_resamples(count: int) -> int:
    """Return the number of resamples of people: 1,000, fewer above 20,000, and 0 below 3."""
    return min(RESAMPLES, max(RESAMPLES // 5, _MOST_WEIGHTS // count)) if count >= MIN_UNITS else 0


def drawn_people(count: int, resamples: int) -> Floats:
    """Return how often each person counts: once, then as often as drawn with replacement, [1 + resamples, people].

    Equal numbers give equal draws.

    Args:
        count: of the people.
        resamples: how many.
    """
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=resamples)
    return np.vstack([np.ones((1, count)), drawn])


def mean_of_defined(values: Floats, weights: Floats) -> Floats:
    """Return the weighted mean of each row [b, k] without NaN; NaN if a row has no number."""
    of_defined = np.where(np.isnan(values), 0, weights)
    weighted = np.nan_to_num(values) * of_defined
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(weighted.sum(1) / of_defined.sum(1))


def scores(predicted: Predicted, weights: Floats) -> Floats:
    """Return weighted AUC, accuracy and balanced accuracy.

    The definitions are those of `runs` with weighted sums: AUC is the share of pairs of a positive and a negative
    instance in the right order, weighted by the product of their weights; ties count half.

    Args:
        predicted: n instances.
        weights: [b, n].

    Returns:
        [3, b]: means over the classes that have weight; NaN without any.
    """
    of_instances = np.ascontiguousarray(weights.T)
    aucs = []
    recalls = []
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = weights @ predicted.right / weights.sum(1)
        for present, said, score in zip(predicted.targets.T, predicted.said.T, predicted.scores.T, strict=True):
            has_both = present.any() and not present.all()
            if has_both:
                aucs.append(_auc(present, score, of_instances))
            recall = weights @ (present & said) / (weights @ present)
            if predicted.exclusive and present.any():
                recalls.append(recall)
            elif has_both:
                recall_of_absence = weights @ ~(present | said) / (weights @ ~present)
                recalls.append((recall + recall_of_absence) / 2)
    return np.stack([_mean_over_classes(aucs, len(weights)), accuracy, _mean_over_classes(recalls, len(weights))])


def _mean_over_classes(by_class: Sequence[Floats], count: int) -> Floats:
    """Return the mean over the classes in which a value is defined, [b], from values [b] of each class."""
    if not by_class:
        return np.full(count, np.nan)
    values = np.stack(by_class, axis=1)
    return mean_of_defined(values, np.ones_like(values))


def by_score(present: Bools, score: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the weights [b, distinct scores] of the instances with and without a class, by ascending score [n]."""
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    sorted_weights = weights[:, order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    has_class = present[order]
    positive = np.add.reduceat(sorted_weights * has_class, first, axis=1)
    negative = np.add.reduceat(sorted_weights * ~has_class, first, axis=1)
    return positive, negative


def _auc(present: Bools, score: Floats, weights: Floats) -> Floats:
    """Return the weighted AUC [b]; `weights` are [n, b], so that sums over instances run along whole rows."""
    negative = np.flatnonzero(~present)[np.argsort(score[~present])]
    below = np.pad(np.cumsum(weights[negative], axis=0), ((1, 0), (0, 0)))
    positive_weights = weights[present]
    right = np.zeros(weights.shape[1])
    for side in ("left", "right"):  # ties count half
        rank = np.searchsorted(score[negative], score[present], side)
        right += np.einsum("ib,ib->b", positive_weights, below[rank])
    return np.asarray(right / 2 / (positive_weights.sum(0) * below[-1]))
