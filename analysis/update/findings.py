"""Content of an update report, as records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..page_head import JUDGED_BY, SUBGROUPS
from ..statistics import MIN_UNITS
from .measures import Bin, Change, ClassMeasures, Quantity, Slice
from .people import ChangedPerson, FlipTracing, Matrix

OF_RUNS = ("run", "patients in training")
"""Rows in the description of a change that are facts about its runs, and not settings."""
FILE_OF_CRITERIA, HASH_OF_CRITERIA = "criteria file", "SHA-256 of the criteria"
"""Facts of `data` about the acceptance criteria."""
_DIGITS = 8
"""Digits of the hash of the criteria in a part of the page."""


@dataclass(frozen=True)
class Decision:
    """The verdict on one acceptance criterion.

    Attributes:
        criterion: its name in `Criteria`.
        of: the class or subgroup to which it applies; empty for all instances.
        limit: the allowed minimum or maximum.
        measured: the measured value with its interval.
        instances: number of instances that the value is about; 0 for a subgroup that the last task alone has, which is
            not tested.
        units: number of distinct patients of these instances, or of recordings or instances if people are unknown.
        where: titles of their tasks, in words; for a subgroup that is not tested, that of the last task.
        holds: whether the value is within the limit; False for an undefined value. A calibration error with an interval
            is above its limit only if the whole interval is. None if it is not judged: there are fewer than `needed`
            units, or it would hold and the criteria ask for certain verdicts alone.
        certain: whether the whole interval lies strictly on one side of the limit, with at least 20 units. If none or
            all of n units have an event, the interval ends at the 95 % bound, 1 - 0.05^(1/n) or 0.05^(1/n).
        crosses: whether the limit lies within the interval or at its end, so that the verdict is not certain.
        needed: number of units that a verdict needs.
    """

    criterion: str
    of: str
    limit: float
    measured: Quantity
    instances: int
    units: int
    where: str
    holds: bool | None
    certain: bool
    crosses: bool
    needed: int = MIN_UNITS

    @property
    def is_tested(self) -> bool:
        """Whether any compared instance is in the subgroup that the criterion is about."""
        return self.instances > 0

    @property
    def is_about_few(self) -> bool:
        """Whether too few units are the reason why the criterion is not judged."""
        return self.units < self.needed

    @property
    def beyond(self) -> float:
        """How far the measured value is beyond its limit: 0.17 for 22 % where at most 5 % are allowed.

        Negative within the limit; infinite for an undefined value, which is worse than any other.
        """
        if math.isnan(self.measured.value):
            return math.inf
        distance = self.measured.value - self.limit
        return distance if self.criterion.startswith("max") else -distance


@dataclass(frozen=True)
class EarlierTask:
    """The test instances of one task before and after the update.

    Attributes:
        title: title of the task.
        instances: number of test instances.
        units: number of distinct patients, or of recordings or instances if people are unknown.
        units_changed: number of those with a decision that changed, whether it became wrong, right or stays wrong.
        auc: AUC before and after, as `runs` defines it, of pooled folds the mean of the folds' own values; no interval
            if a class has fewer than three units.
        accuracy: accuracy before and after.
        right_to_wrong: number of instances that were right before and are wrong after.
        wrong_to_right: number of instances that were wrong before and are right after.
    """

    title: str
    instances: int
    units: int
    units_changed: int
    auc: Change
    accuracy: Change
    right_to_wrong: int
    wrong_to_right: int


@dataclass(frozen=True)
class NewClass:
    """A class that the model before the update has not learned; there is no measure before.

    Attributes:
        name: name of the class.
        instances: number of test instances.
        units: number of distinct patients, or of recordings or instances if people are unknown.
        accuracy: accuracy of the updated model on these instances.
    """

    name: str
    instances: int
    units: int
    accuracy: Quantity


@dataclass(frozen=True)
class LastTask:
    """The updated model on the test instances of the task that it has learned last, and of no earlier task.

    Attributes:
        title: title of the task.
        instances: number of test instances.
        units: number of distinct patients, or of recordings or instances if people are unknown.
        accuracy: accuracy of the updated model.
        classes: sensitivity and specificity of each class.
    """

    title: str
    instances: int
    units: int
    accuracy: Quantity
    classes: tuple[ClassMeasures, ...]


@dataclass(frozen=True)
class CountByTask:
    """Test instances and their people by task: of all, of a class or of a subgroup.

    Attributes:
        name: what is counted, such as "all", "class AF" or "sex f".
        instances: number of instances by title of the task.
        units: number of distinct patients, or of recordings or instances if people are unknown, by title of the task.
    """

    name: str
    instances: Mapping[str, int]
    units: Mapping[str, int]


@dataclass(frozen=True)
class FoldResult:
    """What the models of one fold do; each patient is tested in one fold.

    Attributes:
        fold: its name, such as "fold:1/5".
        run_id: the run.
        instances: number of compared test instances.
        units: number of distinct patients of these, or of recordings or instances if people are unknown.
        accuracy: accuracy before and after.
        right_to_wrong: share of the instances that were right before and are wrong after.
        auc: AUC before and after, a mean over the compared tasks.
        brier: Brier score before and after.
        calibration: expected calibration error before and after.
        new_units: number of distinct patients of the last task alone; 0 without any.
        new_accuracy: accuracy of the updated model on them; None without any.
    """

    fold: str
    run_id: str
    instances: int
    units: int
    accuracy: Change
    right_to_wrong: Quantity
    auc: Change
    brier: Change
    calibration: Change
    new_units: int
    new_accuracy: Quantity | None


@dataclass(frozen=True)
class Findings:
    """A model before and after an update, measured on the same test instances.

    Attributes:
        title: words of the user for the top of the page; empty without any.
        run_id: the run whose last model is the updated one; of pooled folds the run of fold 1.
        against: the run whose last model is replaced; empty if it is the same run before its last task.
        folds: results of each fold if several are pooled; else empty.
        pooled: sentences on what pooled folds judge; empty for a single run.
        other_data: sentences on a stored model that was applied to other data: how many people were left out, and which
            tasks it has never seen; empty for runs of the same data.
        copies: sentences on test people whose recordings are in training under another name; empty without any.
        description: the settings that changed, as (name, before, after).
        data: facts about the evaluation data, by name.
        recordings: sentence on the recordings of windows, each right if more than half of its windows are; empty if
            instances are no windows of recordings.
        instances: number of compared test instances.
        units: number of distinct patients, or of recordings or instances if people are unknown.
        unit: what the bootstrap resamples: "patient", "recording" or "instance".
        noun: what an instance is in words: "recording" if each is a recording of its own, "window" if it is a part of
            one, else "instance".
        resamples: number of bootstrap resamples.
        flips: flips and accuracy of all instances, then of each class, task and subgroup.
        earlier: each task of the compared instances, in the order of training; empty if all tasks are tested on the
            same instances.
        counts: test instances and patients by task, those of the last task included: all, then each class and subgroup.
        changed_decisions: share of instances on which the two models decide differently.
        drift: Jensen-Shannon distance between the predicted probabilities.
        overall: accuracy, Brier score, expected calibration error, and calibration error beyond chance.
        uncut_calibration: calibration error beyond chance before it is cut off at 0: it may be negative, for means over
            runs.
        reliability: reliability curves before and after.
        classes: sensitivity and specificity of each class.
        became: numbers of instances by decision before and after; empty if outputs are not classes.
        confusion: number of instances by true class and decision, "before" and "after"; each empty if instances have
            several classes.
        people: the people whose decisions changed, those with most decisions that became wrong first.
        new_people: those among the instances of `new`, in the same order.
        pseudonyms_are_kept: whether the secret of the pseudonyms is in a file, so that people can be looked up.
        tracings: signals of flips; empty without the frames of the run.
        without_frames: why the prepared frames of the run were not used; empty if they were.
        new: instances of the last task that no earlier task has, of classes that the model before has learned; None
            without such instances.
        new_classes: the classes that the model before has not learned.
        last_task: the updated model on the last task, or on those that the model of a run on other data has never seen;
            None if the task has no test instances of its own.
        brought: sentences on what the last task brings; empty with `against`.
        decided: sentence on the classes that a decision is among; empty if it is among all classes in every task.
        judged_on: sentences on the tasks that criteria are about; empty without criteria or `against`.
        unknown: number of instances without a value, by subgroup column.
        criteria: verdicts on the acceptance criteria.
        limits: the limits and demands of the criteria by name, such as "min_sensitivity of AF"; empty without criteria.
        judged_before: sentences on pages of the same comparison that were judged by other criteria; empty without any.
        limitations: sentences for the reader of the report.
        models: facts about the two models, as (name, before, after): ids, versions, hashes.
        commands: commands that repeat the report, each with its purpose.
    """

    title: str
    run_id: str
    against: str
    folds: tuple[FoldResult, ...]
    pooled: str
    other_data: str
    copies: str
    description: tuple[tuple[str, str, str], ...]
    data: Mapping[str, str]
    recordings: str
    instances: int
    units: int
    unit: str
    noun: str
    resamples: int
    flips: tuple[Slice, ...]
    earlier: tuple[EarlierTask, ...]
    counts: tuple[CountByTask, ...]
    changed_decisions: Quantity
    drift: Quantity
    overall: tuple[Change, ...]
    uncut_calibration: Change
    reliability: tuple[tuple[Bin, ...], tuple[Bin, ...]]
    classes: tuple[ClassMeasures, ...]
    became: Mapping[str, Mapping[str, int]]
    confusion: Mapping[str, Matrix]
    people: tuple[ChangedPerson, ...]
    new_people: tuple[ChangedPerson, ...]
    pseudonyms_are_kept: bool
    tracings: tuple[FlipTracing, ...]
    without_frames: str
    new: Slice | None
    new_classes: tuple[NewClass, ...]
    last_task: LastTask | None
    brought: tuple[str, ...]
    decided: str
    judged_on: str
    unknown: Mapping[str, int]
    criteria: tuple[Decision, ...]
    limits: Mapping[str, float]
    judged_before: str
    limitations: tuple[str, ...]
    models: tuple[tuple[str, str, str], ...]
    commands: tuple[tuple[str, str], ...]

    @property
    def holds(self) -> bool | None:
        """Whether every criterion holds.

        False if one fails. None if none fails, but one is not judged, or if no criteria were given.
        """
        verdicts = [criterion.holds for criterion in self.criteria]
        if False in verdicts:
            return False
        return None if None in verdicts or not verdicts else True

    @property
    def drawn(self) -> str:
        """What intervals are over, for a reader."""
        return f"{self.unit}s{'' if self.unit == 'patient' else ' as if independent, because people are unknown'}"

    @property
    def groups(self) -> tuple[Slice, ...]:
        """The entries of `flips` for subgroups."""
        return tuple(part for part in self.flips if part.column not in ("all", "class", "task"))

    @property
    def worst(self) -> Slice | None:
        """The class or subgroup of at least 3 units with the lowest accuracy after the update; None without any."""
        among = [part for part in self.flips if part.column == "class"] + list(self.groups)
        large = [part for part in among if part.units >= MIN_UNITS]
        return min(large, key=lambda part: part.accuracy.after.value, default=None)

    @property
    def parts(self) -> frozenset[str]:
        """The parts of the page that depend on options or on the frames of the run, in words."""
        parts = {f"{SUBGROUPS}{part.column}" for part in self.groups}
        if self.criteria:
            sha256 = self.data.get(HASH_OF_CRITERIA, "")
            parts.add(f"{JUDGED_BY}{sha256[:_DIGITS]}")
        if self.title:
            parts.add("a title")
        if not self.without_frames:
            parts.add("tracings and titles of tasks")
        return frozenset(parts)

    def as_data(self) -> dict[str, Any]:
        """Return the findings as plain data for JSON, without tracings; undefined numbers are NaN.

        `judged` says whether `holds` is a verdict, of the update and of each criterion: None is no pass.
        """
        data = asdict(replace(self, tracings=()))
        del data["tracings"]
        for criterion in data["criteria"]:
            criterion["judged"] = criterion["holds"] is not None
        verdict = {"holds": self.holds, "judged": self.holds is not None}
        return {**data, **verdict, "worst": None if self.worst is None else asdict(self.worst)}
