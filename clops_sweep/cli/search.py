"""Output on the state of searches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from clops_sweep.cli.plain_table import TERMINAL, print_table
from clops_sweep.errors import several
from clops_sweep.experiment.spaces.axes import in_words
from clops_sweep.planning.searches import Search, Tuning
from clops_sweep.planning.state import State
from clops_sweep.search.records import StudyRecord, TrialRecord, TrialState, journal_of
from clops_sweep.store.rows import printable
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    from clops_sweep.analysis.tables.tuning import TunedMethod


_CHOSEN = "chosen"
_UNDER_WAY = "under way"


def print_searches(searches: Sequence[Search], tuned: Sequence[Tuning] = (), *, is_interrupted: bool = False) -> None:
    """Print the state of every search, except complete ones of tuned spaces, which `print_tuned` shows.

    Args:
        searches: the searches.
        tuned: the tuned spaces.
        is_interrupted: whether a launch was just interrupted, so that its trials no longer run.
    """
    of_tuned = {phase.name for tuning in tuned for phase in tuning.space.phases}
    of_running = "interrupted" if is_interrupted else _UNDER_WAY
    for it in searches:
        if it.complete and it.space.name in of_tuned:
            continue
        found = {state: it.count(state) for state in ("complete", "pruned", "failed", "running")}
        pending = max(0, it.left - found["running"])
        trials = several(it.search.n_trials, "trial")
        counted = _counted(found, of_running)
        runs = _runs_in_words(it)
        click.echo(f"search {it.space.name!r}: {trials} asked for{runs}, {counted}, {pending} pending")
        if it.record is not None and it.record.best:
            click.echo(f"  {printable(_best_in_words(it.record))}")


def _runs_in_words(search: Search) -> str:
    """Return how trials make runs, as in " (x 2 splits x 3 seeds = 36 runs)"; empty if a trial is a run."""
    replicates = search.space.replicates()
    if len(replicates) < 2:
        return ""
    most = "up to " if search.search.pruner else ""
    runs = search.search.n_trials * len(replicates)
    return f" (x {replicates_in_words(replicates)} = {most}{runs:,} runs)"


def replicates_in_words(replicates: Sequence[Mapping[str, Any]]) -> str:
    """Return the patient splits and seeds of a configuration in words, as in "5 folds x 2 seeds".

    Args:
        replicates: values of the fields of splits and of the seed.
    """
    seeds = {replicate.get("seed") for replicate in replicates}
    splits = {(replicate.get("split"), replicate.get("split_seed")) for replicate in replicates}
    what = "split" if any(fold is None for fold, _ in splits) else "fold"
    words = f"{several(len(splits), what)} x {several(len(seeds), 'seed')}"
    return words if len(splits) * len(seeds) == len(replicates) else several(len(replicates), "split and seed")


def tuned_rows(state: State) -> list[TunedMethod]:
    """Return the choices of tuned spaces, with scores and cost; without such a space, pandas is not loaded."""
    if not state.tuned:
        return []
    from clops_sweep.analysis.tables.tuning import tuned_methods

    return tuned_methods(state)


def print_tuned(rows: Sequence[TunedMethod]) -> None:
    """Print a table for each tuned space, a row for each method."""
    if not rows:
        return
    from clops_sweep.analysis.tables.tuning import terminal_table

    for space in dict.fromkeys(row.space for row in rows):
        table = terminal_table([row for row in rows if row.space == space])
        click.echo(printable(table.title))
        texts = [[printable(text) for text in row] for row in table.rows]
        print_table(table.header, texts, wrapped=[_CHOSEN], numbers=table.numbers, width=TERMINAL)
        for note in table.notes:
            click.echo(note)


def tuned_as_data(rows: Sequence[TunedMethod]) -> list[dict[str, object]]:
    """Return the state of the tuning of each method as data for JSON."""
    if not rows:
        return []
    from clops_sweep.analysis.tables.tuning import tuning_as_data

    return [tuning_as_data(row) for row in rows]


def search_as_data(search: Search) -> dict[str, Any]:
    """Return the state of a search with its best trial or, with several objectives, its Pareto front."""
    states: tuple[TrialState, ...] = ("complete", "pruned", "failed", "running")
    best = search.record.best if search.record else []
    return {
        "name": search.space.name,
        "n_trials": search.search.n_trials,
        "runs_per_trial": len(search.space.replicates()),
        **{state: search.count(state) for state in states},
        "pending": max(0, search.left - search.count("running")),
        "best": [
            {"number": trial.number, "values": dict(zip(search.space.objectives, trial.values or (), strict=True))}
            | {"parameters": dict(trial.labels), "run_ids": list(trial.run_ids)}
            for trial in best
        ],
    }


def study_counts(store: RunStore) -> dict[str, Counter[str]]:
    """Count the trials of the studies in a store by state.

    Raises:
        UsageError: the file of the studies is damaged.
    """
    if journal_of(store) is None:  # without it, Optuna need not be loaded
        return {}
    from clops_sweep.search.trials import read_studies

    return {study.name: Counter(str(trial.state) for trial in study.trials) for study in read_studies(store)}


def studies_in_words(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the counts in words, one line per study."""
    return [f"search {name!r}: trials {_counted(found)}" for name, found in counts.items()]


def _best_in_words(record: StudyRecord) -> str:
    """Describe the best trial and its values; with several objectives, the size of the Pareto front."""
    best = record.best
    first = _value_in_words(record, best[0])
    if len(best) == 1:
        return f"best so far: {first}"
    return f"{len(best)} trials on the Pareto front, the first of them: {first}"


def _value_in_words(record: StudyRecord, trial: TrialRecord) -> str:
    values = ", ".join(f"{name} {value:.3f}" for name, value in zip(record.objectives, trial.values or (), strict=True))
    runs = f", mean of {len(trial.run_ids)} runs," if len(trial.run_ids) > 1 else ""
    return f"{values}{runs} in trial {trial.number} ({in_words(trial.labels)})"


def _counted(counts: Mapping[Any, int], of_running: str = _UNDER_WAY) -> str:
    texts = [f"{counts.get(state, 0)} {state}" for state in ("complete", "pruned", "failed")]
    return ", ".join(texts) + (f", {counts['running']} {of_running}" if counts.get("running") else "")
