"""Table of tuned methods: score while tuning, score when reported, and the cost of tuning."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import RESULTS
from clops_sweep.experiment.fields import OF_TASKS
from clops_sweep.experiment.metrics import MEASURES, limits_of_difference
from clops_sweep.experiment.prepared_tasks import prepared_tasks
from clops_sweep.experiment.spaces.search_space import TunedSpace
from clops_sweep.experiment.spaces.selection import configs_of
from clops_sweep.experiment.spaces.tuning import METHOD, TuneOn
from clops_sweep.planning.request import Request
from clops_sweep.planning.searches import Tuning
from clops_sweep.planning.state import State
from clops_sweep.search.records import Edge

from ..collect import Experiment, collect
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
from ..results import over_units
from ..statistics import (
    Estimate,
    PairedDifference,
    Replicate,
    Split,
    Units,
    clipped,
    ordered,
    partitions,
    standard_error,
    units_in_words,
    units_of,
)
from .terminal_table import TerminalTable

LEVEL = 0.95
"""Coverage of the interval of the optimism, which is not adjusted for the number of methods."""

_LEVEL_IN_WORDS = f"{100 * LEVEL:.4g} %, unadjusted"
OPTIMISM = f"optimism [{_LEVEL_IN_WORDS}]"
"""Heading of the column of the optimism."""


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
        reported_runs: number of finished reported runs.
        seconds: total compute time of these runs.
        measure: the optimised column, computed on the validation set.
        test: the reported column, computed on the test set.
        while_tuning: mean and standard deviation of `measure` of the chosen configuration while tuning, over patient
            splits or, with one split, seeds.
        reported: mean and standard deviation of `test` of the reported runs, over patient splits or seeds.
        units: the units that `reported` counts as n; None without reported runs.
        is_mixed: whether tuning and reported runs are of different editions of the data; there is no optimism then.
        same_tasks: mean and standard deviation of `test` of the reported runs on the tasks that tuning had, after
            training on these alone; without values if they cannot be compared (see `on_tasks_of_tuning`).
        optimism: score while tuning minus `same_tasks`, over patient splits (positive: tuning was too optimistic).
            The interval has the level `LEVEL` and ends at the limits of the measure. Paired if every reported split
            was also tuned on. Otherwise the variance of the score while tuning is the variance over splits of the
            reported runs' validation scores, divided by the number of tuning splits.
        first_tasks: number of tasks while tuning; None for all.
        seen: share of the reported test people who were validation people while tuning, averaged over the reported
            splits; NaN if the data are not prepared.
        tied: whether all of several trials have the same score.
        equal: number of trials with the score of the chosen configuration, its own included.
        edges: the numeric parameters whose chosen value is on the edge of what was tried; none if all trials are tied.
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
    same_tasks: Estimate
    optimism: PairedDifference
    reported_runs: int = 0
    units: Units | None = None
    is_mixed: bool = False
    first_tasks: int | None = None
    seen: float = np.nan
    tied: bool = False
    equal: int = 1
    edges: Mapping[str, Edge] = field(hash=False, default_factory=dict)


def tuned_methods(state: State) -> list[TunedMethod]:
    """Return a row for each tuned method; methods that take over the choice of another have no row."""
    return [row for tuned in state.tuned for row in _rows(tuned, state.resolved)]


def _rows(tuned: Tuning, asked: Request) -> Iterator[TunedMethod]:
    space = tuned.space
    ((measure, direction),) = space.undivided.objectives.items()
    test = f"test_{measure}" if f"test_{measure}" in RESULTS else measure
    seen = _seen(space, asked.data)
    tune_on = space.search.tune_on
    first_tasks = tune_on.tasks if isinstance(tune_on, TuneOn) else None
    reported_ids = _reported_ids(tuned, asked)
    wanted: set[str] = set()
    for choice in tuned.choices:
        wanted.update(reported_ids[choice.method], choice.run_ids)
    runs = asked.store.read("runs", wanted)
    finished = runs[runs["status"] == "finished"]
    for choice in tuned.choices:
        reported = _with_ids(finished, reported_ids[choice.method])
        tuning = _with_ids(finished, choice.best)
        cost = _with_ids(finished, choice.run_ids)
        r_matrix = asked.store.read("r_matrix", list(reported["run_id"])) if first_tasks else pd.DataFrame()
        is_mixed = of_other_editions(tuning, reported)
        compared = on_tasks_of_tuning(tuning, reported, r_matrix, measure)
        while_tuning, _ = over_units(tuning, measure)
        of_reported, units = over_units(reported, test)
        same_tasks, _ = over_units(compared, test)
        yield TunedMethod(
            space=space.name,
            tune_on=str(tune_on),
            method=choice.method,
            chosen=None if choice.state == "open" else choice.words,
            trials=choice.trials,
            runs=len(cost),
            seconds=float(cost["seconds"].sum()),
            measure=measure,
            test=test,
            while_tuning=while_tuning,
            reported=of_reported,
            same_tasks=same_tasks,
            optimism=optimism_of(tuning, compared, measure, test, 1 if direction == "maximize" else -1),
            reported_runs=len(reported),
            units=units,
            is_mixed=is_mixed,
            first_tasks=first_tasks,
            seen=seen if choice.state == "made" else 0.0,
            tied=choice.tied,
            equal=choice.equal,
            edges={} if choice.tied else choice.edges,
        )


def _with_ids(runs: pd.DataFrame, run_ids: Collection[str]) -> pd.DataFrame:
    return runs[runs["run_id"].isin(run_ids)]


def _reported_ids(tuned: Tuning, asked: Request) -> dict[str, list[str]]:
    """Return the ids of the reported runs by method; without prepared data, those in the store."""
    ids: dict[str, list[str]] = {choice.method: [] for choice in tuned.choices}
    if tuned.reported is None:
        return ids
    hashes = {request.config: asked.data_hash(request.config) for request in tuned.reported.requests()}
    if all(hashes.values()):
        for request in tuned.reported.requests():
            method = request.labels.get(METHOD, "")
            content = hashes[request.config]
            if method in ids and content is not None:
                ids[method].append(request.config.run_id(content))
        return ids
    (experiment,) = collect([tuned.reported], asked.store.read("runs"), present=asked.edition)
    for position, cell in enumerate(experiment.cells):
        method = cell.labels.get(METHOD, "")
        if method in ids:
            ids[method] += experiment.run_ids(position)
    return ids


def on_tasks_of_tuning(
    tuning: pd.DataFrame, reported: pd.DataFrame, r_matrix: pd.DataFrame, measure: str
) -> pd.DataFrame:
    """Return the reported runs with their scores on the tasks of tuning, after training on these tasks alone.

    A run on the first k tasks is the beginning of a run on all tasks: its score is the mean over j <= k of R[k][j].
    There are no rows if the data or their editions differ, if the measure is no mean over R, or if a run has no R[k]
    (joint training).

    Args:
        tuning: rows of `runs` of the chosen configuration while tuning.
        reported: rows of the reported runs.
        r_matrix: their rows of `r_matrix`; needed if tuning had fewer tasks.
        measure: the column that tuning optimises.
    """
    none = reported.iloc[:0]
    if not len(tuning) or not len(reported) or of_other_editions(tuning, reported):
        return none
    in_both = [name for name in OF_TASKS if name in tuning]
    different = [name for name in in_both if str(tuning[name].iloc[0]) != str(reported[name].iloc[0])]
    if not different:
        return reported
    if different != ["first_tasks"] or measure not in MEASURES:
        return none
    tasks = tuning["first_tasks"].iloc[0]
    stage = r_matrix[(r_matrix["trained_on"] == tasks) & r_matrix["evaluated_on"].between(1, tasks)]
    compared = reported.copy()
    for split, column in (("validation", measure), ("test", f"test_{measure}")):
        of_run = stage[stage["split"] == split].groupby("run_id")[measure].mean()
        compared[column] = compared["run_id"].map(of_run)
    return compared if compared[f"test_{measure}"].notna().all() else none


def of_other_editions(tuning: pd.DataFrame, reported: pd.DataFrame) -> bool:
    """Return whether runs of tuning and reported runs are of different editions of one data set.

    Runs of earlier versions do not record the edition, and count as of any.

    Args:
        tuning: rows of `runs` of the chosen configuration while tuning.
        reported: rows of the reported runs.
    """
    columns = ["dataset", "prepared_hash"]
    if not {*columns}.issubset(tuning.columns):
        return False
    before = tuning[columns].dropna().drop_duplicates()
    after = reported[columns].dropna().drop_duplicates()
    both = before.merge(after, on="dataset")
    return bool((both["prepared_hash_x"] != both["prepared_hash_y"]).any())


def optimism_of(tuning: pd.DataFrame, reported: pd.DataFrame, measure: str, test: str, sign: int) -> PairedDifference:
    """Return the score while tuning minus the reported score on the same tasks, with the variance of both.

    Validation and test people of a split are drawn alike. So what people add cancels on average over splits, and the
    splits are independent: rho = 0.

    Args:
        tuning: rows of `runs` of the chosen configuration while tuning.
        reported: rows of the reported runs, as `on_tasks_of_tuning` returns them.
        measure: the column that tuning optimises.
        test: the reported column.
        sign: 1 if larger is better, else -1.
    """
    if not len(tuning) or not len(reported):
        return PairedDifference(np.nan, np.nan, np.nan, np.nan, 0)
    while_tuning = _by_replicate(tuning, measure)
    on_test = _by_replicate(reported, test)
    on_validation = _by_replicate(reported, measure)
    replicates = ordered(on_test)
    units = replace(units_of(replicates, partitions(reported), test), overlap=0.0)
    of_splits = _by_split(while_tuning)
    paired = all(split in of_splits for split, _ in replicates)
    if paired:
        before = [while_tuning.get((split, seed), of_splits[split]) for split, seed in replicates]
    else:
        before = [float(np.mean(list(of_splits.values())))] * len(replicates)
    after = [on_test[replicate] for replicate in replicates]
    of_units = _of_units(sign * (np.array(before) - np.array(after)), units)
    obstacle = units.obstacle
    variances = [float(standard_error(of_units, units.overlap)) ** 2]
    if not paired and not obstacle:
        if units.kind != "seeds":  # as variable as the scores of the reported runs on validation people
            scores = _of_units(np.array([on_validation[replicate] for replicate in replicates]), units)
            variances.append(float(np.var(scores, ddof=1)) / len(of_splits))
        else:
            obstacle = "the variance of the score while tuning is unknown"
    n = len(of_units)
    mean = float(of_units.mean())
    low, high, p = np.nan, np.nan, np.nan
    variance = sum(variances)
    if not obstacle and variance > 0:
        freedom = (n - 1) * variance**2 / sum(part**2 for part in variances)  # Welch and Satterthwaite
        deviation = variance**0.5
        half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * deviation
        low, high = mean - half, mean + half
        p = float(2 * stdtr(freedom, -abs(mean) / deviation))
    difference = PairedDifference(mean, low, high, p, n, replace(units, obstacle=obstacle), tuple(of_units.tolist()))
    larger, smaller = (measure, test) if sign > 0 else (test, measure)
    return clipped(difference, limits_of_difference(larger, smaller))


def _by_split(values: Mapping[Replicate, float]) -> dict[Split, float]:
    """Return the mean over the seeds of each split."""
    of_splits: dict[Split, list[float]] = {}
    for (split, _), value in values.items():
        of_splits.setdefault(split, []).append(value)
    return {split: float(np.mean(of_seeds)) for split, of_seeds in of_splits.items()}


def _of_units(values: NDArray[np.float64], units: Units) -> NDArray[np.float64]:
    return np.array([values[list(members)].mean() for members in units.members])


def _by_replicate(runs: pd.DataFrame, column: str) -> dict[Replicate, float]:
    values: dict[Replicate, list[float]] = {}
    for replicate, value in zip(Experiment.replicates_of(runs), runs[column], strict=True):
        values.setdefault(replicate, []).append(float(value))
    return {replicate: float(np.mean(of_runs)) for replicate, of_runs in values.items()}


def _seen(space: TunedSpace, data: PreparedData) -> float:
    from clops_sweep.data.scenarios.leaks import share_seen

    configs = list(chain.from_iterable(map(configs_of, space.phases)))
    try:
        tuned_on = prepared_tasks(configs, data)
        reported = prepared_tasks(space.reported_at_bounds, data)
    except UsageError:  # `check_fit` reports tasks that cannot be built
        return np.nan
    if not tuned_on or not reported:
        return np.nan
    shares = [share_seen(scenario, frames, tuned_on) for scenario, frames in reported]
    return float(np.mean(shares))


def terminal_table(rows: Sequence[TunedMethod]) -> TerminalTable:
    """Return the state and the results of the methods of one tuned space."""
    first = rows[0]
    has_optimism = any(row.optimism.n for row in rows)
    notes: list[str] = []
    scores = [f"{first.measure}, tuning", "reported"]
    if first.test != first.measure:
        scores = ["validation", "test"]
        notes.append(f"{first.measure}: of validation people while tuning, of test people in the reported runs")
    numbers = ("trials", "runs", "compute", *scores)
    header = ("method", "chosen", *numbers, "n", *(["optimism"] if has_optimism else []))
    texts = []
    for row in rows:
        means = [number(row.while_tuning.mean), number(row.reported.mean), _n_in_words(row)]
        cost = [str(row.trials), str(row.runs), duration(row.seconds) if row.runs else DASH]
        text = [row.method or row.space, _chosen_in_words(row), *cost, *means]
        if has_optimism:
            optimism = row.optimism
            text.append(with_interval(optimism.mean, optimism.low, optimism.high) if optimism.n else DASH)
        texts.append(tuple(text))
    tasks = " on the tasks of tuning" if first.first_tasks else ""
    level = f" [{_LEVEL_IN_WORDS}]" if any(np.isfinite(row.optimism.low) for row in rows) else ""
    notes += _on_choices(rows)
    if seen := seen_in_words(rows):
        notes.append(f"test people seen: {seen} of the reported test people were validation people while tuning")
    if has_optimism:
        notes.append(f"optimism{level}: score while tuning minus test score of the reported runs{tasks}")
    return TerminalTable(
        f"tuning of {first.space!r} on {first.tune_on}",
        header,
        tuple(texts),
        numbers,
        tuple(notes),
    )


def seen_in_words(rows: Sequence[TunedMethod]) -> str:
    """Return the share of the reported test people who were validation people while tuning: "80 %" or "up to 80 %".

    Empty without any.
    """
    shares = [row.seen for row in rows if np.isfinite(row.seen)]
    most = max(shares, default=0.0)
    if not most > 0:
        return ""
    are_alike = len({round(share, 2) for share in shares}) == 1
    return f"{'' if are_alike else 'up to '}{100 * most:.0f} %"


def edges_in_words(edges: Mapping[str, Mapping[str, Edge]]) -> str:
    """Return a sentence on all choices that lie on the edge of what was tried, without its full stop.

    Empty if no choice does. Terminal, report and dashboard show it.

    Args:
        edges: the parameters on an edge by title of the method, which is empty for the only method.
    """
    by_parameter: dict[str, list[str]] = {}
    for method, of_method in edges.items():
        for name, edge in of_method.items():
            by_parameter.setdefault(name, []).append(f"{method} ({edge})" if method else f"({edge})")
    parts = []
    for name, methods in by_parameter.items():
        of_methods = ", ".join(methods)
        parts.append(f"{name} {of_methods}" if of_methods.startswith("(") else f"{name} of {of_methods}")
    if not parts:
        return ""
    return f"On the edge of what was tried: {'; '.join(parts)}: wider ranges may give better scores"


def budgets_in_words(trials: Mapping[str, int]) -> str:
    """Return a sentence on methods that were tuned on different numbers of configurations, without its full stop.

    Empty if the numbers are equal.

    Args:
        trials: number of configurations tried by name of the method, for each method whose tuning has ended.
    """
    if len(set(trials.values())) < 2:
        return ""
    counts = [str(count) for count in trials.values()]
    return (
        f"Tuning was unequal: {', '.join(trials)} were tuned on {', '.join(counts[:-1])} and {counts[-1]} "
        "configurations; more configurations favour a method"
    )


def budgets_of(rows: Sequence[TunedMethod]) -> str:
    """Return `budgets_in_words` of the rows of one tuned space."""
    return budgets_in_words({row.method: row.trials for row in rows if row.chosen})


def _on_choices(rows: Sequence[TunedMethod]) -> list[str]:
    """Return the sentences on choices that say less than they seem to.

    They are about unequal tuning, ties, values on an edge, and editions of the data.
    """
    on_edge = edges_in_words({row.method: row.edges for row in rows})
    unequal = budgets_of(rows)
    sentences = [*([unequal] if unequal else []), *_on_ties(rows), *([on_edge] if on_edge else [])]
    if mixed := [row.method or row.space for row in rows if row.is_mixed]:
        of_some = f" of {', '.join(mixed)}" if len(mixed) < len(rows) else ""
        sentences.append(
            f"No optimism{of_some}: tuning and reported runs are of different editions of the data, so their scores "
            "cannot be compared"
        )
    return sentences


def _on_ties(rows: Sequence[TunedMethod]) -> list[str]:
    """Return a sentence for each method whose best trials have the same score."""
    sentences = []
    for row in rows:
        if not row.tied:
            if row.equal > 1:
                shared = f"{row.equal} of {row.trials} trials share the best {row.measure}"
                sentences.append(f"{row.method or row.space}: {shared}, and the choice is the first of them")
            continue
        of_tasks = f" on {plural(row.first_tasks, 'task')}" if row.first_tasks else ""
        sentences.append(
            f"{row.method or row.space}: all {row.trials} trials have the same {row.measure}: what was tuned has no "
            f"effect{of_tasks}, so the choice is the first one"
        )
    return sentences


def _n_in_words(row: TunedMethod) -> str:
    """Return number and kind of the units of the reported score, as in "3 splits"; a dash without reported runs."""
    return row.units.in_short(row.reported.n) if row.units is not None else DASH


def _chosen_in_words(row: TunedMethod) -> str:
    if row.chosen is None:
        return "no choice yet"
    return row.chosen or "nothing to choose"


def tuning_text(rows: Sequence[TunedMethod], name: str) -> TextTable:
    """Return the methods of one tuned space as a table."""
    first = rows[0]
    measure, test = metric_named(first.measure).plain, metric_named(first.test).plain
    header = ["method", "chosen", "trials", "runs", "compute"]
    header += [f"{measure} while tuning", f"{test} reported", "n", "reported runs"]
    notes_on_tasks = []
    if first.first_tasks:
        header.append(f"{test}, tasks of tuning")
        notes_on_tasks.append(
            f"{header[-1]}: of the reported runs after their first {plural(first.first_tasks, 'task')}, on which "
            "tuning took place. The reported score is about all tasks and includes their difficulty and forgetting."
        )
    header += [OPTIMISM, "test people seen"]
    cells = tuple(_cells(row, with_same_tasks=bool(first.first_tasks)) for row in rows)
    notes = (
        f"Tuned on {first.tune_on}: chosen is the configuration with the best mean {measure} on validation people.",
        "Optimism: how much better the score while tuning is than the test score of the reported runs on the tasks of "
        f"tuning [{_LEVEL_IN_WORDS}].",
        "The interval of the optimism lies within the limits of the measure. It is paired if every reported patient "
        "split was also tuned on; else it includes the variance of the score while tuning. A dash: tuning and "
        "report evaluate different tasks or measures.",
        *(f"{sentence}." for sentence in _on_choices(rows)),
        *notes_on_tasks,
        "Test people seen: share of the reported test people who were validation people while tuning, in another "
        "patient split.",
        "Mean ± standard deviation (n - 1) over patient splits, each the mean over its seeds; with one split, over its "
        "seeds. n: those of the reported score.",
        "Compute: total time of the finished tuning runs, without pruned runs.",
        *units_in_words([row.optimism.units for row in rows]),
    )
    data = pd.DataFrame(map(tuning_as_data, rows), dtype=object)
    title = f"Tuning of {first.space}"
    return TextTable(name, title, tuple(header), cells, 2, (), notes, data, may_split=True)


def _cells(row: TunedMethod, with_same_tasks: bool) -> tuple[TextCell, ...]:
    """Return the row of a method in the table."""
    optimism = row.optimism
    cells = [
        label_cell(row.method or row.space),
        TextCell(row.chosen or DASH, row.chosen or ""),
        count_cell(row.trials),
        count_cell(row.runs),
        TextCell(duration(row.seconds) if row.runs else DASH, row.seconds),
        _estimate_cell(row.while_tuning),
        _estimate_cell(row.reported),
        count_cell(row.reported.n, _n_in_words(row)),
        count_cell(row.reported_runs),
    ]
    if with_same_tasks:
        cells.append(_estimate_cell(row.same_tasks))
    cells.append(TextCell(with_interval(optimism.mean, optimism.low, optimism.high), optimism.mean))
    cells.append(TextCell(f"{row.seen:.0%}" if np.isfinite(row.seen) else DASH, row.seen))
    return tuple(cells)


def _estimate_cell(score: Estimate) -> TextCell:
    return TextCell(plus_minus(score.mean, score.sd), score.mean)


def tuning_as_data(row: TunedMethod) -> dict[str, object]:
    """Return a method as plain data for JSON; missing numbers are None."""
    numbers = {
        "seconds": row.seconds,
        "while_tuning": row.while_tuning.mean,
        "while_tuning_sd": row.while_tuning.sd,
        "reported": row.reported.mean,
        "reported_sd": row.reported.sd,
        "same_tasks": row.same_tasks.mean,
        "same_tasks_sd": row.same_tasks.sd,
        "optimism": row.optimism.mean,
        "low": row.optimism.low,
        "high": row.optimism.high,
        "level": LEVEL if np.isfinite(row.optimism.low) else np.nan,
        "test_people_seen": row.seen,
    }
    return {
        **{name: getattr(row, name) for name in ("space", "tune_on", "method", "chosen", "trials", "runs")},
        **{"measure": row.measure, "test_measure": row.test, "n": row.reported.n},
        **{"unit": "" if row.units is None else row.units.counted, "reported_runs": row.reported_runs},
        **{"mixed_editions": row.is_mixed, "tied": row.tied, "trials_with_best_score": row.equal},
        "on_edge": ", ".join(f"{name} ({edge})" for name, edge in row.edges.items()),
        **{name: float(value) if np.isfinite(value) else None for name, value in numbers.items()},
    }
