"""Table of tuned methods: score while tuning, score when reported, and the cost of tuning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import RESULTS
from clops_sweep.experiment.fields import OF_TASKS
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.tuning import METHOD
from clops_sweep.planning.request import Request
from clops_sweep.search.choosing import Tuned, configs_of, tasks_of

from ..collect import Experiment
from ..formats import (
    DASH,
    TextCell,
    TextTable,
    count_cell,
    duration,
    label_cell,
    number,
    plural,
    plus_minus,
    with_interval,
)
from ..metrics import metric_named
from ..statistics import (
    Estimate,
    PairedDifference,
    Replicate,
    Units,
    estimate,
    ordered,
    partitions,
    standard_error,
    units_in_words,
    units_of,
)


@dataclass(frozen=True)
class TunedMethod:
    """A method of a tuned space.

    Attributes:
        space: name of the search space.
        tune_on: the tuning data as text, such as "TuneOn(tasks=1)".
        method: label of the method; empty if the space tunes a single method.
        chosen: the chosen configuration as text; empty if there was nothing to choose, None without a choice, because
            tuning is unfinished or failed.
        trials: number of configurations tried.
        runs: number of finished tuning runs.
        seconds: total compute time of these runs.
        measure: the optimised column, computed on the validation set.
        test: the reported column, computed on the test set.
        while_tuning: mean and standard deviation of `measure` over the tuning runs of the chosen configuration.
        reported: mean and standard deviation of `test` over the reported runs.
        optimism: score while tuning minus reported score, over patient splits (positive: tuning was too optimistic).
            Paired if every reported split was also tuned on. Otherwise the variance of the score while tuning is the
            variance over splits of the reported runs' validation scores, divided by the number of tuning splits.
        seen: share of the reported test people who were validation people while tuning, averaged over the reported
            splits; NaN if the data are not prepared.
    """

    space: str
    tune_on: str
    method: str
    chosen: str | None
    trials: int
    runs: int
    seconds: float
    measure: str
    test: str
    while_tuning: Estimate
    reported: Estimate
    optimism: PairedDifference
    seen: float = np.nan


def tuned_methods(found: Sequence[Tuned], asked: Request) -> list[TunedMethod]:
    """Return a row for each tuned method; methods that take over the choice of another have no row."""
    return [row for it in found for row in _rows(it, asked)]


def _rows(it: Tuned, asked: Request) -> Iterator[TunedMethod]:
    ((measure, direction),) = it.space.objectives.items()
    test = f"test_{measure}" if f"test_{measure}" in RESULTS else measure
    requests = [] if it.reported is None else list(it.reported.requests())
    seen = _seen(it.space, asked)
    ids = {
        choice.method: [
            request.config.run_id(content)
            for request in requests
            if request.labels.get(METHOD, "") == choice.method and (content := asked.data_hash(request.config))
        ]
        for choice in it.choices
    }
    runs = asked.store.read(
        "runs", {run_id for choice in it.choices for run_id in (*ids[choice.method], *choice.run_ids)}
    )
    runs = runs[runs["status"] == "finished"]
    for choice in it.choices:
        reported, tuning, cost = (
            runs[runs["run_id"].isin(of)] for of in (ids[choice.method], choice.best, choice.run_ids)
        )
        yield TunedMethod(
            it.space.name,
            str(getattr(it.space.search, "tune_on", "same")),
            choice.method,
            None if choice.chosen is None else choice.words,
            choice.trials,
            len(cost),
            float(cost["seconds"].sum()),
            measure,
            test,
            estimate(tuning[measure]),
            estimate(reported[test]),
            optimism_of(tuning, reported, measure, test, 1 if direction == "maximize" else -1),
            seen if choice.words else 0.0,
        )


def optimism_of(tuning: pd.DataFrame, reported: pd.DataFrame, measure: str, test: str, sign: int) -> PairedDifference:
    """Return the score while tuning minus the reported score, with the variance of both.

    Validation and test people of a split are drawn alike. So what people add cancels on average over splits, and the
    splits are independent: rho = 0, unless tuning had other tasks.

    Args:
        tuning: rows of `runs` of the chosen configuration while tuning.
        reported: rows of the reported runs.
        measure: the column that tuning optimises.
        test: the reported column.
        sign: 1 if larger is better, else -1.
    """
    if not len(tuning) or not len(reported):
        return PairedDifference(np.nan, np.nan, np.nan, np.nan, 0)
    then, now, scores = (_by_replicate(*it) for it in ((tuning, measure), (reported, test), (reported, measure)))
    replicates = ordered(now)
    units = units_of(replicates, partitions(reported), test)
    alike = {name: str(tuning[name].iloc[0]) == str(reported[name].iloc[0]) for name in OF_TASKS if name in tuning}
    same_tasks = all(alike.values())
    if same_tasks:
        units = replace(units, overlap=0.0)
    of_splits = {split: float(np.mean([it for (of, _), it in then.items() if of == split])) for split, _ in then}
    paired = alike.get("dataset", True) and all(split in of_splits for split, _ in replicates)
    constant = float(np.mean(list(of_splits.values())))
    ours = np.array([then.get(it, of_splits[it[0]]) if paired else constant for it in replicates])
    each = _of_units(sign * (ours - np.array([now[it] for it in replicates])), units)
    n, obstacle = len(each), units.obstacle
    variances = [float(standard_error(each, units.overlap)) ** 2]
    if not paired and not obstacle:
        if same_tasks and units.kind != "seeds":  # as variable as the scores of the reported runs on validation people
            of_scores = _of_units(np.array([scores[it] for it in replicates]), units)
            variances.append(float(np.var(of_scores, ddof=1)) / len(of_splits))
        else:
            obstacle = "the variance of the score while tuning is unknown"
    mean, low, high, p = float(each.mean()), np.nan, np.nan, np.nan
    if not obstacle and (variance := sum(variances)) > 0:
        freedom = (n - 1) * variance**2 / sum(it**2 for it in variances)  # Welch and Satterthwaite
        half = float(stdtrit(freedom, 0.975)) * variance**0.5
        low, high, p = mean - half, mean + half, float(2 * stdtr(freedom, -abs(mean) / variance**0.5))
    return PairedDifference(mean, low, high, p, n, replace(units, obstacle=obstacle), tuple(each.tolist()))


def _of_units(values: NDArray[np.float64], units: Units) -> NDArray[np.float64]:
    return np.array([values[list(members)].mean() for members in units.members])


def _by_replicate(runs: pd.DataFrame, column: str) -> dict[Replicate, float]:
    values: dict[Replicate, list[float]] = {}
    for replicate, value in zip(Experiment.replicates_of(runs), runs[column], strict=True):
        values.setdefault(replicate, []).append(float(value))
    return {replicate: float(np.mean(of)) for replicate, of in values.items()}


def _seen(space: SearchSpace, asked: Request) -> float:
    from clops_sweep.data.scenarios.leaks import share_seen

    try:
        tuned_on = tasks_of(asked, [config for phase in space.phases for config in configs_of(phase)])
        reported = tasks_of(asked, space.reported_at_bounds)
    except UsageError:  # `check_fit` reports tasks that cannot be built
        return np.nan
    return float(np.mean([share_seen(*it, tuned_on) for it in reported])) if tuned_on and reported else np.nan


def tuning_in_words(row: TunedMethod) -> str:
    """Describe the state and the result of a method's tuning in one line."""
    name = f"tuned {row.space!r}{f', {row.method}' if row.method else ''} on {row.tune_on}: "
    cost = f"{plural(row.trials, 'trial')}, {plural(row.runs, 'run')}, {duration(row.seconds)}"
    if row.chosen is None:
        return f"{name}no choice yet ({cost}); its reported runs wait for it"
    chosen = f"{row.chosen} ({cost}); {row.measure} {number(row.while_tuning.mean)} while tuning" * bool(row.chosen)
    parts = [chosen or "nothing to choose"]
    if row.reported.n:
        parts.append(f"{row.test} {number(row.reported.mean)} reported (n = {row.reported.n})")
    if row.optimism.n:
        parts.append(f"optimism {with_interval(row.optimism.mean, row.optimism.low, row.optimism.high)}")
    return name + ", ".join(parts)


def tuning_text(rows: Sequence[TunedMethod], name: str) -> TextTable:
    """Return the methods of one tuned space as a table."""
    measure, test = (metric_named(column).plain for column in (rows[0].measure, rows[0].test))
    header = (
        *("method", "chosen", "trials", "runs", "compute"),
        *(f"{measure} while tuning", f"{test} reported", "n", "optimism", "test people seen"),
    )
    cells = tuple(
        (
            label_cell(row.method or row.space),
            TextCell(row.chosen or DASH, row.chosen or ""),
            *map(count_cell, (row.trials, row.runs)),
            TextCell(duration(row.seconds) if row.runs else DASH, row.seconds),
            *(TextCell(plus_minus(it.mean, it.sd), it.mean) for it in (row.while_tuning, row.reported)),
            count_cell(row.reported.n),
            TextCell(with_interval(row.optimism.mean, row.optimism.low, row.optimism.high), row.optimism.mean),
            TextCell(f"{row.seen:.0%}" if np.isfinite(row.seen) else DASH, row.seen),
        )
        for row in rows
    )
    notes = (
        f"Tuned on {rows[0].tune_on}: chosen is the configuration with the best mean {measure} on validation people. "
        "Optimism: how much better the score while tuning is than the reported one [95 % interval], paired if every "
        "reported patient split was also tuned on; else the interval includes the variance of the score while tuning.",
        "Test people seen: share of the reported test people who were validation people while tuning, in another "
        "patient split.",
        "Compute: total time of the finished tuning runs, without pruned runs.",
        *units_in_words([row.optimism.units for row in rows]),
    )
    data = pd.DataFrame(map(tuning_as_data, rows), dtype=object)
    return TextTable(name, f"Tuning of {rows[0].space}", header, cells, 2, (), notes, data)


def tuning_as_data(row: TunedMethod) -> dict[str, object]:
    """Return a method as plain data for JSON; missing numbers are None."""
    numbers = {
        "seconds": row.seconds,
        "while_tuning": row.while_tuning.mean,
        "reported": row.reported.mean,
        "optimism": row.optimism.mean,
        "low": row.optimism.low,
        "high": row.optimism.high,
        "test_people_seen": row.seen,
    }
    return {
        **{name: getattr(row, name) for name in ("space", "tune_on", "method", "chosen", "trials", "runs")},
        **{"measure": row.measure, "test_measure": row.test, "n": row.reported.n},
        **{name: float(value) if np.isfinite(value) else None for name, value in numbers.items()},
    }
