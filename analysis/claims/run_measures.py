"""Measures of single runs beyond the columns of `runs`, from their R, curves and instances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from clops_sweep.learning.metrics.difficulty import TaskDistribution, curriculum, similarity_matrix
from clops_sweep.store.tables import TableName

from ..difficulty import fit_gaussians
from ..figures.frames import Frames

Floats = npt.NDArray[np.float64]

SIGNAL_HERTZ = 1.0, 40.0
"""The band in Hz with most of the power of an ECG: baseline wander lies below it, muscle and mains noise above."""

_AT_A_TIME = 512

_GROUPS = 50
"""Groups of people of the jackknife."""
_HALVINGS = 10
"""Random halves of the people."""
_LEAST = 50
"""Fewest instances for a distance from a Gaussian."""


@dataclass(frozen=True)
class RunTables:
    """One run: its row of `runs`, its rows of another table, and its frames if they are prepared here."""

    row: Mapping[str, object]
    rows: pd.DataFrame
    frames: Frames | None = None

    @property
    def tasks(self) -> list[str]:
        """Tasks in training order, as in the rows."""
        column = "training_task" if "training_task" in self.rows else "task"
        return [str(task) for task in self.rows[column].unique()]

    @property
    def r(self) -> tuple[list[str], Floats]:
        """Tasks in training order, and R[i][j] on the validation split; NaN if missing."""
        of_validation = self.rows[self.rows["split"] == "validation"]
        rows = of_validation.sort_values(["trained_on", "evaluated_on"])
        names = rows.drop_duplicates("evaluated_on")["task"].astype(str).tolist()
        r = np.full((len(names), len(names)), np.nan)
        r[rows["trained_on"] - 1, rows["evaluated_on"] - 1] = rows["auc"]
        return names, r

    @property
    def curves(self) -> tuple[list[str], Floats, npt.NDArray[np.int64]]:
        """Tasks in training order; AUC [epochs, tasks]; the index of the task trained in each epoch."""
        tasks = self.tasks
        number_of = {task: number for number, task in enumerate(tasks)}
        epochs, first, row = np.unique(self.rows["epoch"].to_numpy(), return_index=True, return_inverse=True)
        trained = [number_of[str(task)] for task in self.rows["training_task"].to_numpy()]
        evaluated = [number_of[str(task)] for task in self.rows["task"].to_numpy()]
        auc = np.full((len(epochs), len(tasks)), np.nan)
        auc[row, evaluated] = self.rows["auc"]
        return tasks, auc, np.array(trained, dtype=np.int64)[first]

    @property
    def s_of_people(self) -> list[list[Floats]]:
        """s of the instances of each task, in training order, by person; each instance alone if people are unknown."""
        has_s = np.isfinite(self.rows["s"].to_numpy(dtype=float))
        rows = self.rows[has_s]
        people_known = "patient" in rows and rows["patient"].notna().all()
        tasks = []
        for _, of_task in rows.groupby("task", sort=False):
            people = pd.factorize(of_task["patient"])[0] if people_known else np.arange(len(of_task))
            order = np.argsort(people, kind="stable")
            starts = np.flatnonzero(np.diff(people[order])) + 1
            s = of_task["s"].to_numpy(dtype=float)
            tasks.append(np.split(s[order], starts))
        return tasks


def _number(run: RunTables, column: str) -> float:
    """Return a number of the run's row; NaN if it has no such column."""
    return float(str(run.row.get(column, "nan")))


def _log_seconds(run: RunTables) -> float:
    return float(np.log(_number(run, "seconds")))


def _unsolved(run: RunTables) -> float:
    tried = _number(run, "projections")
    return _number(run, "projection_failures") / tried if tried else 0.0


def _loss_of_first_task(run: RunTables) -> float:
    _, r = run.r
    return float(r[0, 0] - r[1, 0]) if len(r) > 1 else np.nan


def _loss_in_the_end(run: RunTables) -> float:
    """Loss since the end of the task's own training, not since the best epoch, which is partly best by chance."""
    _, r = run.r
    return float(r[0, 0] - r[-1, 0]) if len(r) > 1 else np.nan


def _worst_task(run: RunTables) -> float:
    _, r = run.r
    return float(r[-1].min())


def _loss_of_lead_i(run: RunTables) -> float:
    names, r = run.r
    if not {"Lead I", "Lead V1"} <= set(names):
        return np.nan
    first, v1 = names.index("Lead I"), names.index("Lead V1")
    return float(r[v1 - 1, first] - r[v1, first]) if v1 > first else np.nan


def _largest_drop(run: RunTables) -> float:
    """Largest drop over tasks from the end of a task's own training to its minimum afterwards, at least 0."""
    tasks, auc, trained = run.curves
    drops = []
    for task in range(len(tasks)):
        end = int(np.flatnonzero(trained == task)[-1])
        drops.append(float(auc[end, task] - auc[end:, task].min()))
    return max(drops, default=np.nan)


def _first_of_last(run: RunTables) -> float:
    _, auc, trained = run.curves
    return float(auc[_start_of_last(trained), -1])


def _start_of_last(trained: npt.NDArray[np.int64]) -> int:
    """Return the first epoch of the last task."""
    return int(np.flatnonzero(trained == trained.max())[0])


def _last_of_last(run: RunTables) -> float:
    _, auc, _ = run.curves
    return float(auc[-1, -1])


def _kept_during_last(run: RunTables) -> float:
    """Lowest AUC on each earlier task during the last one minus the AUC before it, mean over tasks; at most 0."""
    _, auc, trained = run.curves
    start = _start_of_last(trained)
    if start == 0:
        return np.nan
    before = auc[start - 1, :-1]
    lowest = auc[start - 1 :, :-1].min(axis=0)
    return float((lowest - before).mean())


def _rank_by_beta(run: RunTables) -> float:
    """0.95 - Spearman's correlation of s and the final beta, mean over tasks: positive if they rank differently.

    The correlation of any two measures is below 1, so 1 would prove nothing.
    """
    correlations = [_correlation(rows["s"], rows["beta"]) for _, rows in run.rows.groupby("task")]
    return 0.95 - _mean(correlations)


def _final_beta(run: RunTables) -> float:
    return float(run.rows["beta"].mean())


class Sampled(NamedTuple):
    """A measure of a run, and its variance over other people of the same tasks, which seeds of a split do not show."""

    value: float
    variance: float = 0.0


def _share_between_tasks(run: RunTables) -> Sampled:
    """Share of the variance of s between tasks, beyond what equal tasks have by chance; 0 on average if they are equal.

    With n_k instances of variance of the mean V_k in task k, of n in all, eta squared is corrected by the expected sum
    of squares between equal tasks: (SS_between - sum_k n_k V_k (1 - n_k / n)) / SS_total. V_k draws people, not
    instances.
    """
    tasks = run.s_of_people
    everything = np.concatenate(list(chain.from_iterable(tasks)))
    mean_of_all = everything.mean()
    between = spread = 0.0
    for people in tasks:
        s = np.concatenate(people)
        mean = s.mean()
        n = len(people)
        if n < 2:
            return Sampled(np.nan)
        sums = np.array([(of_person - mean).sum() for of_person in people])
        variance = n / (n - 1) * (sums**2).sum() / len(s) ** 2
        excess = (mean - mean_of_all) ** 2 - variance * (1 - len(s) / len(everything))
        between += len(s) * excess
        spread += len(s) ** 2 * _of_square(variance, excess)
    total = ((everything - mean_of_all) ** 2).sum()
    if not total:
        return Sampled(np.nan)
    return Sampled(float(between / total), float(spread / total**2))


def _of_square(variance: Any, square: Any) -> Any:
    """Return the variance of the square of a Gaussian of this variance, of mean `square` ** 0.5."""
    return 2 * variance**2 + 4 * variance * np.maximum(square, 0)


def l_moment_ratios(s: Floats) -> Floats:
    """Return the L-skewness and the L-kurtosis of each row of values [..., n]; NaN without spread (Hosking, 1990)."""
    x = np.sort(s, axis=-1)
    n = s.shape[-1]
    rank = np.arange(n)
    weights = np.ones(n)
    b = [x.mean(axis=-1)]
    for order in range(1, 4):  # probability-weighted moments
        weights = weights * (rank - order + 1) / (n - order)
        b.append((weights * x).mean(axis=-1))
    second = 2 * b[1] - b[0]
    third = 6 * b[2] - 6 * b[1] + b[0]
    fourth = 20 * b[3] - 30 * b[2] + 12 * b[1] - b[0]
    has_spread = np.ptp(x, axis=-1, keepdims=True) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.stack([third, fourth], axis=-1) / second[..., None]
    return np.where(has_spread, ratios, np.nan)


GAUSSIAN_RATIOS: Final = 0.0, 30 / np.pi * np.arctan(np.sqrt(2)) - 9
"""L-skewness and L-kurtosis of a Gaussian."""


def _distance_from_gaussian(run: RunTables) -> Sampled:
    """Squared distance of L-skewness and L-kurtosis of s from a Gaussian's, mean over tasks; 0 on average if Gaussian.

    Their sampling variance, which the squared distance of a sample includes, is subtracted; it is the jackknife's, over
    at most 50 groups of people. Tasks of fewer than 50 instances, whose variance is too uncertain, are left out.
    """
    of_tasks = []
    for people in run.s_of_people:
        n = min(_GROUPS, len(people))
        groups = [np.concatenate(people[start::_GROUPS]) for start in range(n)]
        s = np.concatenate(groups)
        if n < 3 or len(s) < _LEAST or not np.ptp(s):
            continue
        without_a_group = []
        for left_out in range(n):
            kept = [*groups[:left_out], *groups[left_out + 1 :]]
            without_a_group.append(l_moment_ratios(np.concatenate(kept)))
        resampled = np.array(without_a_group)
        ratios = n * l_moment_ratios(s) - (n - 1) * resampled.mean(axis=0)
        variance = (n - 1) ** 2 / n * resampled.var(axis=0, ddof=1)
        squares = (ratios - GAUSSIAN_RATIOS) ** 2 - variance
        of_tasks.append((squares.sum(), _of_square(variance, squares).sum()))
    if not of_tasks:
        return Sampled(np.nan, np.nan)
    distance, variance_of_distance = np.mean(of_tasks, axis=0)
    return Sampled(float(distance), float(variance_of_distance) / len(of_tasks))


def _similarity_by_curriculum(run: RunTables) -> Sampled:
    """Mean similarity of neighbours in the curriculum minus that in training order.

    The curriculum is that of one half of the people and similarities are those of the other half, mean over random
    halves of each task: a curriculum is made of the largest similarities, and larger by chance on its own people.
    Halves have as many people in every task, because similarities of few people are smaller. As a half evaluates half
    of the people, the variance of the mean is s^2 (1 / n + 1) (`clops_sweep.analysis.statistics`).
    """
    tasks = run.s_of_people
    # Undefined with two tasks, which have one pair, and without spread of s, as after one epoch.
    if len(tasks) < 3 or min(map(len, tasks)) < 2 or not any(np.ptp(np.concatenate(people)) for people in tasks):
        return Sampled(np.nan)
    half = min(map(len, tasks)) // 2
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(_HALVINGS):
        one: list[TaskDistribution] = []
        other: list[TaskDistribution] = []
        for people in tasks:
            order = rng.permutation(len(people))
            one.append(_of_people(people, order[:half]))
            other.append(_of_people(people, order[half : 2 * half]))
        gains.append(_gain(one, other))
        gains.append(_gain(other, one))
    variance = np.var(gains, ddof=1) * (1 / len(gains) + 1)
    return Sampled(float(np.mean(gains)), float(variance))


def _of_people(people: Sequence[Floats], chosen: npt.NDArray[np.int64]) -> TaskDistribution:
    """Return the distribution of s of some people of a task."""
    return TaskDistribution.of(np.concatenate([people[person] for person in chosen]))


def _gain(ordered: Sequence[TaskDistribution], evaluated: Sequence[TaskDistribution]) -> Any:
    """Return how much more similar neighbours are by the curriculum of some people than in training order."""
    matrix = similarity_matrix(evaluated)
    path = np.array(curriculum(ordered))
    in_training = np.arange(len(evaluated))
    by_curriculum = matrix[path[:-1], path[1:]].mean()
    return by_curriculum - matrix[in_training[:-1], in_training[1:]].mean()


def _s_of_89_above_67(run: RunTables) -> float:
    means = run.rows.groupby("task")["s"].mean()
    return float(means.get("8-9", np.nan) - means.get("6-7", np.nan))


def _similarity_of_89(run: RunTables) -> float:
    fits = fit_gaussians(run.rows)
    if not {"8-9", "10-11"} <= set(fits.tasks):
        return np.nan
    similarities = similarity_matrix(fits.fits)[fits.tasks.index("8-9")]
    to_89 = dict(zip(fits.tasks, similarities, strict=True))
    del to_89["8-9"]
    to_1011 = to_89.pop("10-11")
    return float(to_1011 - max(to_89.values()))


def signal_to_noise(frames: Frames, instances: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Signal-to-noise ratio in dB: 10 log10 of a frame's power between 1 and 40 Hz over the rest, without the mean.

    The mean over channels. NaN if a frame is constant or its duration is unknown.

    Args:
        frames: prepared frames.
        instances: indices of frames, int64 [n].
    """
    ratios = np.full(len(instances), np.nan)
    if frames.frame_seconds is None:
        return ratios
    for start in range(0, len(instances), _AT_A_TIME):
        part = slice(start, start + _AT_A_TIME)
        signal = np.asarray(frames.signal(instances[part]), dtype=np.float64)
        signal = signal.reshape(len(signal), -1, signal.shape[-1])
        window = np.hanning(signal.shape[-1])
        mean = (signal * window).sum(axis=-1, keepdims=True) / window.sum()
        centred = signal - mean
        power = np.abs(np.fft.rfft(centred * window)) ** 2
        hertz = np.arange(power.shape[-1]) / frames.frame_seconds
        inside = (hertz >= SIGNAL_HERTZ[0]) & (hertz <= SIGNAL_HERTZ[1])
        within = power[..., inside].sum(axis=-1)
        outside = power[..., ~inside].sum(axis=-1)
        is_known = (within > 0) & (outside > 0)
        ratio = np.where(is_known, within, np.nan) / np.where(is_known, outside, 1.0)
        ratios[part] = (10 * np.log10(ratio)).mean(axis=-1)
    return ratios


def _signal_to_noise_by_s(run: RunTables) -> float:
    """Spearman's correlation of s with the signal-to-noise ratio, mean over tasks."""
    if run.frames is None:
        return np.nan
    instances = run.rows["instance"].to_numpy(dtype=np.int64)
    rows = run.rows.assign(ratio=signal_to_noise(run.frames, instances))
    return _mean([_correlation(of_task["s"], of_task["ratio"]) for _, of_task in rows.groupby("task")])


def _agreement_of_tasks(one: RunTables, other: RunTables) -> float:
    """Spearman's correlation of the tasks' mean s in two runs."""
    means = one.rows.groupby("task")["s"].mean()
    means_of_other = other.rows.groupby("task")["s"].mean()
    return _correlation(means, means_of_other.reindex(means.index))


Measure = Callable[[RunTables], float | Sampled]

MEASURES: Final[Mapping[str, tuple[TableName, Measure]]] = {
    "log_seconds": ("runs", _log_seconds),
    "unsolved_programmes": ("runs", _unsolved),
    "loss_of_first_task": ("r_matrix", _loss_of_first_task),
    "loss_of_first_task_in_the_end": ("r_matrix", _loss_in_the_end),
    "worst_task": ("r_matrix", _worst_task),
    "loss_of_lead_i_to_v1": ("r_matrix", _loss_of_lead_i),
    "largest_drop": ("curves", _largest_drop),
    "first_epoch_of_last_task": ("curves", _first_of_last),
    "last_epoch_of_last_task": ("curves", _last_of_last),
    "kept_during_last_task": ("curves", _kept_during_last),
    "rank_by_beta_is_not_by_s": ("instances", _rank_by_beta),
    "final_beta": ("instances", _final_beta),
    "share_of_s_between_tasks": ("instances", _share_between_tasks),
    "distance_from_gaussian": ("instances", _distance_from_gaussian),
    "similarity_by_curriculum": ("instances", _similarity_by_curriculum),
    "s_of_89_above_67": ("instances", _s_of_89_above_67),
    "similarity_of_89_and_1011": ("instances", _similarity_of_89),
    "signal_to_noise_by_s": ("instances", _signal_to_noise_by_s),
}
"""Measures of one run by name: the table that they need and the function; NaN if the run lacks the data."""

OF_TWO: Final[Mapping[str, tuple[TableName, Callable[[RunTables, RunTables], float]]]] = {
    "agreement_of_tasks": ("instances", _agreement_of_tasks),
}
"""Measures of two runs together."""


def column_like(measure: str) -> str:
    """Return a name whose beginning tells `units_of` the people that a measure evaluates: for s, those in training."""
    table, _ = MEASURES.get(measure) or OF_TWO.get(measure) or ("", None)
    return f"training_{measure}" if table == "instances" else measure


def _correlation(one: pd.Series, other: pd.Series) -> float:
    """Return Spearman's correlation; NaN if one side is constant."""
    if len(one) < 2 or one.nunique() < 2 or other.nunique() < 2 or other.isna().any() or one.isna().any():
        return np.nan
    return float(stats.spearmanr(one, other).statistic)


def _mean(values: Sequence[float]) -> float:
    """Return the mean of the finite values; NaN without any."""
    array = np.array(values)
    finite = array[np.isfinite(array)]
    return float(finite.mean()) if finite.size else np.nan
