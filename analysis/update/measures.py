"""Measures of two models, with bootstrap intervals over patients."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import jensenshannon

from ..people.patient_intervals import AT_ONCE, by_score, drawn_people, ends_of, mean_of_defined, most_resamples, scores
from ..people.predicted import Bools, Floats, Predicted
from ..statistics import MIN_UNITS
from .paired import Ints, Names, OneClass, Paired

BINS: Final = 15
"""Bins of confidence for the expected calibration error and the reliability curve."""
DRIFT_BINS: Final = 10
FIXED: Final = 0.9
"""The specificity at which sensitivity is reported, and the sensitivity at which specificity is reported."""

_DECIMALS: Final = 12
"""Decimals in which differences of two resamples must differ: rounding errors of floats do not count."""
SENSITIVITY: Final = "sensitivity"
SPECIFICITY: Final = "specificity"


@dataclass(frozen=True)
class Quantity:
    """A number with its 95 % interval; `low` and `high` are NaN without an interval."""

    value: float
    low: float
    high: float

    def as_share(self) -> Quantity:
        """Return the quantity with value and interval cut off at 0 and 1."""
        value, low, high = np.clip((self.value, self.low, self.high), 0.0, 1.0).tolist()
        return Quantity(value, low, high)


@dataclass(frozen=True)
class Change:
    """A measure before and after an update, and the difference after - before."""

    name: str
    before: Quantity
    after: Quantity
    difference: Quantity


@dataclass(frozen=True)
class Slice:
    """A group of instances and how the update changes their predictions.

    Attributes:
        column: "all", "class", "task" or a subgroup column.
        name: the value of the column.
        instances: number of instances.
        units: number of distinct patients, or of instances if patients are unknown.
        accuracy: accuracy before and after; a negative difference means forgetting.
        right_to_wrong: share of the instances that were right before and are wrong after.
        wrong_to_right: share of the instances that were wrong before and are right after.
    """

    column: str
    name: str
    instances: int
    units: int
    accuracy: Change
    right_to_wrong: Quantity
    wrong_to_right: Quantity

    def title(self, noun: str) -> str:
        """Return column and value in words, such as "class AF"; for all, "all recordings" if `noun` is "recording"."""
        return f"all {noun}s" if self.column == "all" else f"{self.column} {self.name}"

    @property
    def has_intervals(self) -> bool:
        """Whether any of its numbers has an interval."""
        numbers = (self.accuracy.before, self.accuracy.after, self.right_to_wrong, self.wrong_to_right)
        return any(math.isfinite(number.low) for number in numbers)


@dataclass(frozen=True)
class ClassMeasures:
    """Sensitivity and specificity of one class against the rest.

    `positives` of `instances`, from `units` patients (or recordings or instances), have the class. The others are from
    `units_without`.
    """

    name: str
    positives: int
    instances: int
    units: int
    units_without: int
    sensitivity: Change
    specificity: Change
    sensitivity_at_specificity: Change
    specificity_at_sensitivity: Change


@dataclass(frozen=True)
class Bin:
    """A bin of the reliability curve: number of decisions, mean confidence and share of correct decisions."""

    count: int
    confidence: float
    accuracy: float


class Measures:
    """Measures of two models on the same instances, with 95 % bootstrap intervals over patients (`ends_of`).

    A resample draws as many patients as the test set has, with replacement. Both models are measured on the same
    resample. Resamples in which a measure is undefined are left out. A measure has no interval with fewer than 3
    patients, or if all resamples agree: 0 flips among these patients do not exclude flips of others.

    Args:
        paired: the instances with the predictions of both models.

    Attributes:
        resamples: number of resamples; 0 with fewer than 3 units.
    """

    def __init__(self, paired: Paired) -> None:
        self.paired = paired
        self._units = paired.units
        self._count = int(self._units.max(initial=-1)) + 1
        self.resamples = most_resamples(self._count)
        self._weights = drawn_people(self._count, self.resamples)

    def slices(self) -> Iterator[Slice]:
        """Yield flips and accuracy of all instances, of each class, of each task if several, and of each subgroup."""
        paired = self.paired
        yield self._slice("all", "all", np.ones(len(paired), bool))
        for name, has in paired.classes.items():
            yield self._slice("class", name, has)
        columns = dict(paired.groups)
        if len(set(paired.tasks)) > 1:
            columns = {"task": paired.tasks, **columns}
        for column, values in columns.items():
            yield from self.slices_of(column, values)

    def slices_of(self, column: str, values: Names) -> Iterator[Slice]:
        """Yield flips and accuracy of the instances with each value of a column."""
        for name in sorted(set(values)):
            yield self._slice(column, str(name), values == name)

    def _slice(self, column: str, name: str, rows: Bools) -> Slice:
        before, after = self.paired.before.right, self.paired.after.right
        right_to_wrong = before & ~after
        wrong_to_right = after & ~before
        means = self._mean(np.column_stack([before, after, right_to_wrong, wrong_to_right]), rows)
        units = self._people(rows)
        return Slice(
            column=column,
            name=name,
            instances=int(rows.sum()),
            units=units,
            accuracy=_change("accuracy", means[:, 0], means[:, 1], units),
            right_to_wrong=_quantity(means[:, 2], units),
            wrong_to_right=_quantity(means[:, 3], units),
        )

    def accuracy(self, rows: Bools) -> Change:
        """Accuracy of some instances."""
        return self._slice("", "", rows).accuracy

    def auc(self, rows: Bools) -> Change:
        """AUC of some instances, as `runs` defines it: the mean over classes of the AUC of each against the rest.

        Of several folds, it is the mean over those in which it is defined: probabilities of several models have no
        common ranking. It has no interval if a class has fewer than 3 units among the instances, or all others have.
        """
        folds = self.paired.folds
        return self._mean_auc(rows, np.zeros(len(self.paired), np.int64) if folds is None else folds)

    def auc_over_tasks(self) -> Change:
        """Mean over tasks of the AUC of each, as `runs` defines `test_auc`; of the models of one fold."""
        return self._mean_auc(np.ones(len(self.paired), bool), self.paired.tasks.astype(str))

    def _mean_auc(self, rows: Bools, parts: npt.NDArray[Any]) -> Change:
        """Return the mean AUC of parts of some instances, over those parts in which it is defined.

        Args:
            rows: the instances, bool [n].
            parts: the part of each instance, [n].
        """
        draws: tuple[list[Floats], list[Floats]] = ([], [])
        for part in np.unique(parts[rows]):
            chosen = np.flatnonzero(rows & (parts == part))
            for of_model, model in zip(draws, (self.paired.before, self.paired.after), strict=True):
                of_model.append(self._auc_draws(model.take(chosen), self._units[chosen]))
        before, after = map(_mean_of_parts, draws)
        chosen = np.flatnonzero(rows)
        units = self._units[chosen]
        targets = self.paired.targets[chosen]
        fewest = len(np.unique(units))
        for has in targets.T:
            if has.any() and not has.all():
                fewest = min(fewest, len(np.unique(units[has])), len(np.unique(units[~has])))
        return _change("AUC", before, after, fewest if fewest < MIN_UNITS else len(np.unique(units)))

    def _auc_draws(self, predicted: Predicted, units: Ints) -> Floats:
        """Return the AUC of some instances, of these units, over the data and over each resample: [1 + b]."""
        parts = []
        step = max(1, AT_ONCE // max(1, len(units)))
        for first in range(0, len(self._weights), step):
            weights = self._weights[first : first + step][:, units]
            parts.append(scores(predicted, weights)[0])
        return np.concatenate(parts)

    def changed_decisions(self) -> Quantity:
        """Share of instances on which the two models decide differently; needs no labels."""
        differ = (self.paired.before.said != self.paired.after.said).any(1)
        return _quantity(self._mean(differ[:, None])[:, 0], self._count)

    def drift(self) -> Quantity:
        """Jensen-Shannon distance, 0 to 1, between the predicted probabilities before and after; needs no labels.

        For each output, the probabilities of all instances are counted in 10 bins of equal width. The distance of the
        two histograms is the square root of their Jensen-Shannon divergence to base 2. The result is the mean over
        outputs.
        """
        distances = []
        outputs_before = self.paired.before.probabilities.T
        outputs_after = self.paired.after.probabilities.T
        for before, after in zip(outputs_before, outputs_after, strict=True):
            distance = jensenshannon(self._histogram(before), self._histogram(after), base=2, axis=1)
            distances.append(distance)
        return _quantity(np.nan_to_num(np.mean(distances, axis=0)), self._count)

    def _histogram(self, probabilities: Floats) -> Floats:
        """Return counts in bins of probability over the data and over each resample, as `_sums`."""
        one_hot = np.eye(DRIFT_BINS)[_bins(probabilities, DRIFT_BINS)]
        return self._sums(one_hot)

    def calibration_error(self) -> Change:
        """Expected calibration error over 15 bins of equal width (Guo et al., 2017), without its bias.

        ECE = sum_b |E_b| / n, where E_b is the sum of right - confidence over the decisions in bin b, and n the number
        of decisions. By chance alone E_b is not 0, so this is above 0 for a perfectly calibrated model (Kumar et al.,
        2019). Here the sign of a bin comes from other patients: with E_bp the sum over patient p,
        sum_b sum_p sign(E_b - E_bp) E_bp / n. Its mean is 0 for a perfectly calibrated model, whatever the dependence
        within a patient, so it can be negative and averaged over runs. Reports cut it off at 0: `beyond_chance`.

        With a softmax, each instance is one decision for its most probable class. With sigmoids, each output is a
        decision, whose confidence is max(p, 1 - p).
        """
        return self._of_both("expected calibration error", self._calibration_error)

    def beyond_chance(self) -> Change:
        """`calibration_error` cut off at 0 before and after; the difference is that of the numbers cut off.

        Intervals are those of values cut off at 0, too, in every resample.
        """
        before, after = (self._calibration_error(model) for model in (self.paired.before, self.paired.after))
        change = _change("calibration error beyond chance", before, after, self._count)
        positive = np.clip(after, 0, 1) - np.clip(before, 0, 1)
        return Change(change.name, change.before.as_share(), change.after.as_share(), _quantity(positive, self._count))

    def plain_calibration_error(self) -> Change:
        """Expected calibration error of the reliability curves: sum_b |E_b| / n, see `calibration_error`.

        It is above 0 by chance alone, more so in resamples, so it has no intervals.
        """
        before, after = (_distance(reliability(model)) for model in (self.paired.before, self.paired.after))
        values = (Quantity(value, np.nan, np.nan) for value in (before, after, after - before))
        return Change("expected calibration error", *values)

    def _calibration_error(self, model: Predicted) -> Floats:
        confidence, right = confidences(model)
        excess = np.zeros((self._count, BINS))
        for column, good in zip(confidence.T, right.T, strict=True):
            np.add.at(excess, (self._units, _bins(column, BINS)), good - column)
        error = np.zeros(len(self._weights))
        for of_bin in excess.T:
            has_decisions = of_bin != 0
            of_people = self._weights[:, has_decisions] * of_bin[has_decisions]
            of_others = of_people.sum(1, keepdims=True) - of_people
            error += (np.sign(of_others) * of_people).sum(1)
        decisions = self._sums(np.full((len(self.paired), 1), confidence.shape[1]))
        with np.errstate(invalid="ignore"):
            return np.asarray(error / decisions[:, 0])

    def brier(self) -> Change:
        """Brier score: mean squared error, summed over classes for a softmax, averaged over outputs for sigmoids."""

        def score(model: Predicted) -> Floats:
            errors = (model.probabilities - self.paired.targets) ** 2
            of_instances = errors.sum(1) if model.exclusive else errors.mean(1)
            return self._mean(of_instances[:, None])[:, 0]

        return self._of_both("Brier score", score)

    def classes(self) -> Iterator[ClassMeasures]:
        """Yield sensitivity and specificity of each class: for the decisions, and each with the other at least 0.9."""
        for one in self.paired.one_by_one():
            positives = one.rows & one.has
            negatives = one.rows & ~one.has
            people = self._people(positives)
            people_without = self._people(negatives)
            fewest = min(people, people_without)
            detected = self._mean(np.transpose(one.said), positives)
            excluded = self._mean(np.transpose(~one.said), negatives)
            before, after = (self._at(one, score) for score in one.scores)
            yield ClassMeasures(
                name=one.name,
                positives=int(positives.sum()),
                instances=int(one.rows.sum()),
                units=people,
                units_without=people_without,
                sensitivity=_change(SENSITIVITY, detected[:, 0], detected[:, 1], people),
                specificity=_change(SPECIFICITY, excluded[:, 0], excluded[:, 1], people_without),
                sensitivity_at_specificity=_change(
                    f"{SENSITIVITY} at {SPECIFICITY} {FIXED:g}", before[0], after[0], fewest
                ),
                specificity_at_sensitivity=_change(
                    f"{SPECIFICITY} at {SENSITIVITY} {FIXED:g}", before[1], after[1], fewest
                ),
            )

    def _people(self, rows: Bools) -> int:
        """Return the number of units of some instances."""
        return len(np.unique(self._units[rows]))

    def became(self, names_of_outputs: Mapping[int, str] = MappingProxyType({})) -> dict[str, dict[str, int]]:
        """Return numbers of instances by decision before and decision after.

        Empty unless each instance has one of the outputs and every output means one class in all tasks.

        Args:
            names_of_outputs: the class of outputs that no instance has.
        """
        paired = self.paired
        if not (paired.before.exclusive and paired.after.exclusive):
            return {}
        classes = [set(paired.labels[has].tolist()) for has in paired.targets.T]
        if any(len(of_output) > 1 for of_output in classes):
            return {}
        titles = []
        for output, of_output in enumerate(classes):
            titles.append(next(iter(of_output), names_of_outputs.get(output, "another class")))
        outputs = np.array(titles, dtype=object)
        decided_before = outputs[paired.before.said.argmax(1)].tolist()
        decided_after = outputs[paired.after.said.argmax(1)].tolist()
        pairs = Counter(zip(decided_before, decided_after, strict=True))
        names = sorted(set(outputs.tolist()))  # the order of confusion matrices
        table: dict[str, dict[str, int]] = {}
        for before in names:
            table[before] = {after: pairs[before, after] for after in names}
        return table

    def _at(self, one: OneClass, score: Floats) -> Floats:
        units = self._units[one.rows]
        positive, scores = one.has[one.rows], score[one.rows]
        step = max(1, AT_ONCE // len(units))
        rates = []
        for first in range(0, len(self._weights), step):
            weights = self._weights[first : first + step][:, units]
            rates.append(at_fixed(positive, scores, weights))
        return np.hstack(rates)

    def _of_both(self, name: str, measured: Callable[[Predicted], Floats]) -> Change:
        return _change(name, measured(self.paired.before), measured(self.paired.after), self._count)

    def _sums(self, values: Floats) -> Floats:
        """Return sums of columns [n, k] over the data (row 0) and over each resample (rows 1 to b): [1 + b, k]."""
        of_units = np.zeros((self._count, values.shape[1]))
        np.add.at(of_units, self._units, values)
        return np.asarray(self._weights @ of_units)

    def _mean(self, values: Floats | Bools, rows: Bools | None = None) -> Floats:
        """Return means of columns [n, k] over `rows`, as `_sums`; NaN for a resample without such instances."""
        chosen = np.ones(len(self.paired), bool) if rows is None else rows
        with_count = np.column_stack([values * chosen[:, None], chosen])
        sums = self._sums(with_count.astype(np.float64))
        with np.errstate(invalid="ignore"):
            return np.asarray(sums[:, :-1] / sums[:, -1:])


def _mean_of_parts(draws: Sequence[Floats]) -> Floats:
    """Return the mean over parts of draws [1 + b] of each; a part that is undefined on the data is left out."""
    if not draws:
        return np.full(1, np.nan)
    values = np.stack([of_part for of_part in draws if np.isfinite(of_part[0])] or draws, axis=1)
    return mean_of_defined(values, np.ones_like(values)) if values.shape[1] > 1 else values[:, 0]


def confidences(model: Predicted) -> tuple[Floats, Bools]:
    """Return the confidence of each decision and whether it is correct, each [n, decisions]."""
    if model.exclusive:
        return model.probabilities.max(1, keepdims=True), model.right[:, None]
    return np.maximum(model.probabilities, 1 - model.probabilities), model.said == model.targets


def reliability(model: Predicted) -> list[Bin]:
    """Return the reliability curve over 15 confidence bins of equal width, without empty bins."""
    by_instance = confidences(model)
    confidence, right = by_instance[0].ravel(), by_instance[1].ravel()
    numbers = _bins(confidence, BINS)
    curve = []
    for number in np.unique(numbers):
        in_bin = numbers == number
        curve.append(Bin(int(in_bin.sum()), float(confidence[in_bin].mean()), float(right[in_bin].mean())))
    return curve


def _distance(curve: Sequence[Bin]) -> float:
    """Return the mean distance of a reliability curve from the diagonal, weighted by decisions."""
    distances = [part.count * abs(part.accuracy - part.confidence) for part in curve]
    return sum(distances) / sum(part.count for part in curve)


def at_fixed(positive: Bools, score: Floats, weights: Floats) -> Floats:
    """Return the greatest sensitivity at a specificity of at least 0.9, and vice versa, over all thresholds.

    Args:
        positive: bool [n], whether an instance has the class.
        score: [n]; an instance counts as positive if its score reaches the threshold.
        weights: [b, n], how often each resample draws an instance.

    Returns:
        [2, b]: sensitivity, then specificity; NaN for resamples without positives or without negatives.
    """
    true_rate, false_rate = (_rates(counts) for counts in by_score(positive, score, weights))
    sensitivity = np.where(1 - false_rate >= FIXED - 1e-12, true_rate, 0).max(1)
    specificity = np.where(true_rate >= FIXED - 1e-12, 1 - false_rate, 0).max(1)
    is_undefined = np.isnan(true_rate[:, -1] + false_rate[:, -1])
    return np.where(is_undefined, np.nan, [sensitivity, specificity])


def _rates(counts: Floats) -> Floats:
    """Return the share of instances at or above each threshold, from the highest; counts by ascending score [b, t]."""
    above = np.cumsum(counts[:, ::-1], axis=1)
    with np.errstate(invalid="ignore"):
        shares = above / above[:, -1:]
    return np.pad(shares, ((0, 0), (1, 0)))


def _bins(values: Floats, count: int) -> Ints:
    return np.clip((values * count).astype(np.int64), 0, count - 1)


def _change(name: str, before: Floats, after: Floats, units: int) -> Change:
    difference = _without_rounding_errors(after - before)
    return Change(name, _quantity(before, units), _quantity(after, units), _quantity(difference, units))


def _without_rounding_errors(draws: Floats) -> Floats:
    """Return draws of which those that differ by rounding errors are equal: to the first of them, or to zero."""
    rounded = np.round(draws, _DECIMALS)
    _, first, group = np.unique(rounded, return_index=True, return_inverse=True)
    return np.where(rounded == 0, 0.0, draws[first][group.reshape(draws.shape)])


def _quantity(draws: Floats, units: int) -> Quantity:
    """Return the value `draws[0]` with the interval of `ends_of`."""
    low, high = ends_of(draws, units)
    return Quantity(float(draws[0]), low, high)
