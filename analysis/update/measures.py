"""Measures of two models, with bootstrap intervals over patients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.spatial.distance import jensenshannon

from ..people.patient_intervals import AT_ONCE, by_score, drawn_people, ends_of, most_resamples
from ..people.predicted import Bools, Floats, Predicted
from .paired import Ints, OneClass, Paired

BINS: Final = 15
"""Bins of confidence for the expected calibration error and the reliability curve."""
DRIFT_BINS: Final = 10
FIXED: Final = 0.9
"""The specificity at which sensitivity is reported, and the sensitivity at which specificity is reported."""

_RATES: Final = ("sensitivity", "specificity")


@dataclass(frozen=True)
class Quantity:
    """A number with its 95 % interval; `low` and `high` are NaN without an interval."""

    value: float
    low: float
    high: float

    def as_share(self) -> Quantity:
        """Return the quantity with value and interval cut off at 0 and 1."""
        return Quantity(*(float(np.clip(it, 0.0, 1.0)) for it in (self.value, self.low, self.high)))


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

    @property
    def title(self) -> str:
        """Column and value in words, such as "class AF"; "all instances" for all."""
        return "all instances" if self.column == "all" else f"{self.column} {self.name}"


@dataclass(frozen=True)
class ClassMeasures:
    """Sensitivity and specificity of one class against the rest.

    `positives` of `instances`, from `units` patients (or recordings or instances), have the class.
    """

    name: str
    positives: int
    instances: int
    units: int
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
        self.paired, self._units = paired, paired.units
        self._count = int(self._units.max(initial=-1)) + 1
        self.resamples = most_resamples(self._count)
        self._weights = drawn_people(self._count, self.resamples)

    def slices(self) -> Iterator[Slice]:
        """Yield flips and accuracy of all instances, of each class, of each task if several, and of each subgroup."""
        paired = self.paired
        yield self._slice("all", "all", np.ones(len(paired), bool))
        for name, has in paired.classes.items():
            yield self._slice("class", name, has)
        columns = {"task": paired.tasks} if len(set(paired.tasks)) > 1 else {}
        for column, values in {**columns, **paired.groups}.items():
            for name in sorted(set(values)):
                yield self._slice(column, str(name), values == name)

    def _slice(self, column: str, name: str, rows: Bools) -> Slice:
        before, after = self.paired.before.right, self.paired.after.right
        ours = self._mean(np.column_stack([before, after, before & ~after, after & ~before]), rows)
        units = len(np.unique(self._units[rows]))
        return Slice(
            column,
            name,
            int(rows.sum()),
            units,
            _change("accuracy", ours[:, 0], ours[:, 1], units),
            _quantity(ours[:, 2], units),
            _quantity(ours[:, 3], units),
        )

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
        found = []
        for before, after in zip(self.paired.before.probabilities.T, self.paired.after.probabilities.T, strict=True):
            one, other = (self._sums(np.eye(DRIFT_BINS)[_bins(it, DRIFT_BINS)]) for it in (before, after))
            found.append(jensenshannon(one, other, base=2, axis=1))
        return _quantity(np.nan_to_num(np.mean(found, axis=0)), self._count)

    def calibration_error(self) -> Change:
        """Expected calibration error over 15 bins of equal width (Guo et al., 2017), without its bias.

        ECE = sum_b |E_b| / n, where E_b is the sum of right - confidence over the decisions in bin b, and n the number
        of decisions. By chance alone E_b is not 0, so this is above 0 for a perfectly calibrated model (Kumar et al.,
        2019). Here the sign of a bin comes from other patients: with E_bp the sum over patient p,
        sum_b sum_p sign(E_b - E_bp) E_bp / n. Its mean is 0 for a perfectly calibrated model, whatever the dependence
        within a patient, so it can be negative and averaged over runs; pages show 0 then.

        With a softmax, each instance is one decision for its most probable class. With sigmoids, each output is a
        decision, whose confidence is max(p, 1 - p).
        """
        return self._of_both("expected calibration error", self._calibration_error)

    def _calibration_error(self, model: Predicted) -> Floats:
        confidence, right = confidences(model)
        excess = np.zeros((self._count, BINS))
        for column, good in zip(confidence.T, right.T, strict=True):
            np.add.at(excess, (self._units, _bins(column, BINS)), good - column)
        error = np.zeros(len(self._weights))
        for of_bin in excess.T:
            there = of_bin != 0
            of_people = self._weights[:, there] * of_bin[there]
            error += (np.sign(of_people.sum(1, keepdims=True) - of_people) * of_people).sum(1)
        decisions = self._sums(np.full((len(self.paired), 1), confidence.shape[1]))
        with np.errstate(invalid="ignore"):
            return np.asarray(error / decisions[:, 0])

    def brier(self) -> Change:
        """Brier score: mean squared error, summed over classes for a softmax, averaged over outputs for sigmoids."""

        def score(model: Predicted) -> Floats:
            error = (model.probabilities - self.paired.targets) ** 2
            return self._mean((error.sum(1) if model.exclusive else error.mean(1))[:, None])[:, 0]

        return self._of_both("Brier score", score)

    def classes(self) -> Iterator[ClassMeasures]:
        """Yield sensitivity and specificity of each class: for the decisions, and each with the other at least 0.9."""
        for it in self.paired.one_by_one():
            sides = it.rows & it.has, it.rows & ~it.has
            units = [len(np.unique(self._units[side])) for side in sides]
            before, after = (self._at(it, score) for score in it.scores)
            decided, fixed = [], []
            for k, name in enumerate(_RATES):
                right = self._mean(np.transpose(it.said == (k == 0)), sides[k])
                decided.append(_change(name, right[:, 0], right[:, 1], units[k]))
                fixed.append(_change(f"{name} at {_RATES[1 - k]} {FIXED:g}", before[k], after[k], min(units)))
            yield ClassMeasures(it.name, int(sides[0].sum()), int(it.rows.sum()), units[0], *decided, *fixed)

    def became(self) -> dict[str, dict[str, int]]:
        """Return numbers of instances by decision before and decision after.

        Empty unless each instance has one of the outputs and every output means one class in all tasks.
        """
        paired = self.paired
        names = [set(paired.labels[has].tolist()) for has in paired.targets.T]
        if not (paired.before.exclusive and paired.after.exclusive) or any(len(it) > 1 for it in names):
            return {}
        outputs = np.array([next(iter(it), "another class") for it in names], dtype=object)
        pairs = Counter(
            zip(*(outputs[it.said.argmax(1)].tolist() for it in (paired.before, paired.after)), strict=True)
        )
        ordered = list(dict.fromkeys(outputs.tolist()))
        return {one: {other: pairs[one, other] for other in ordered} for one in ordered}

    def _at(self, one: OneClass, score: Floats) -> Floats:
        units = self._units[one.rows]
        step = max(1, AT_ONCE // len(units))
        weights = (self._weights[first : first + step][:, units] for first in range(0, len(self._weights), step))
        return np.hstack([at_fixed(one.has[one.rows], score[one.rows], each) for each in weights])

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
        found = self._sums(np.column_stack([values * chosen[:, None], chosen]).astype(np.float64))
        with np.errstate(invalid="ignore"):
            return np.asarray(found[:, :-1] / found[:, -1:])


def confidences(model: Predicted) -> tuple[Floats, Bools]:
    """Return the confidence of each decision and whether it is correct, each [n, decisions]."""
    if model.exclusive:
        return model.probabilities.max(1, keepdims=True), model.right[:, None]
    return np.maximum(model.probabilities, 1 - model.probabilities), model.said == model.targets


def reliability(model: Predicted) -> list[Bin]:
    """Return the reliability curve over 15 confidence bins of equal width, without empty bins."""
    both = confidences(model)
    confidence, right = both[0].ravel(), both[1].ravel()
    place = _bins(confidence, BINS)
    return [
        Bin(int(here.sum()), float(confidence[here].mean()), float(right[here].mean()))
        for here in (place == number for number in range(BINS))
        if here.any()
    ]


def at_fixed(positive: Bools, score: Floats, weights: Floats) -> Floats:
    """Return the greatest sensitivity at a specificity of at least 0.9, and vice versa, over all thresholds.

    Args:
        positive: bool [n], whether an instance has the class.
        score: [n]; an instance counts as positive if its score reaches the threshold.
        weights: [b, n], how often each resample draws an instance.

    Returns:
        [2, b]: sensitivity, then specificity; NaN for resamples without positives or without negatives.
    """
    counts = [np.cumsum(it[:, ::-1], axis=1) for it in by_score(positive, score, weights)]
    with np.errstate(invalid="ignore"):
        found, false = (np.pad(it / it[:, -1:], ((0, 0), (1, 0))) for it in counts)
    sensitivity = np.where(1 - false >= FIXED - 1e-12, found, 0).max(1)
    specificity = np.where(found >= FIXED - 1e-12, 1 - false, 0).max(1)
    return np.where(np.isnan(found[:, -1] + false[:, -1]), np.nan, [sensitivity, specificity])


def _bins(values: Floats, count: int) -> Ints:
    return np.clip((values * count).astype(np.int64), 0, count - 1)


def _change(name: str, before: Floats, after: Floats, units: int) -> Change:
    return Change(name, *(_quantity(draws, units) for draws in (before, after, after - before)))


def _quantity(draws: Floats, units: int) -> Quantity:
    """Return the value `draws[0]` with the interval of `ends_of`."""
    return Quantity(float(draws[0]), *ends_of(draws, units))
