"""What the command says about searches, and how it runs them. Optuna is imported only where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from clops_sweep.cli.asked import Asked
from clops_sweep.experiment.search_space import SearchSpace, in_words
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.search.records import StudyRecord, TrialRecord
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    from clops_sweep.sweep.jobs import Resources


def check_searches(asked: Asked) -> None:
    """Whatever is wrong with a search, its database or its study is said before anything starts.

    Raises:
        BadInput: any of it.
    """
    for space in asked.searches:
        from clops_sweep.search.samplers import make_sampler

        study_of(asked, space)
        assert space.search is not None
        make_sampler(space.search)


def study_of(asked: Asked, space: SearchSpace) -> StudyRecord | None:
    """What the study of a search holds by now, if there is one."""
    from clops_sweep.search.study import read_study

    return read_study(space, asked.store, data_hashes(asked, space))


def data_hashes(asked: Asked, space: SearchSpace) -> dict[str, str]:
    """What the prepared data of a search hold, as far as they are prepared, by how its definition calls them."""
    data_hash = asked.data_hash
    found = {}
    for config in asked.configs_of(space):
        content = data_hash(config)
        if content is not None:
            dataset, split_seed, normalize = config.data_key
            found[f"{dataset}, split {split_seed}, normalize {normalize}"] = content
    return found


def run_searches(asked: Asked, resources: Callable[[], Resources], retry: bool) -> bool | None:
    """Runs what is missing of every search, one after the other.

    Args:
        asked: what is asked for.
        resources: makes what a trial takes; to import that takes seconds, so it is done only if something is missing.
        retry: whether trials and runs that have failed are taken up again.

    Returns:
        Whether anything ran; None if the user has interrupted it.

    Raises:
        BadInput: another driver is running one of them, or its database cannot be used.
        StoreError: results, or what is known about trials, can no longer be written.
    """
    ran = False
    for space in asked.searches:
        from clops_sweep.search.run import run_search
        from clops_sweep.search.storage import only_driver
        from clops_sweep.search.study import SearchStudy
        from clops_sweep.sweep.display import SweepDisplay

        assert space.search is not None
        with (
            only_driver(space, asked.work_folder),
            closing(SearchStudy(space, asked.store, data_hashes(asked, space))) as study,
        ):
            if retry:
                study.retry_failed()
            if not study.left:
                continue
            ran = True
            frames = asked.frames(asked.configs_of(space))
            with SweepDisplay(sorted(space.search.fields)) as display:
                try:
                    run_search(
                        space, study, frames, asked.data_hash, asked.store, asked.work_folder, resources(), display,
                        retry=retry,
                    )  # fmt: skip
                except KeyboardInterrupt:
                    return None
            if display.interrupted:
                return None
    return ran


def all_ended(asked: Asked) -> bool:
    """Whether every search has all of its trials, and none of them has failed."""
    records = [(space, study_of(asked, space)) for space in asked.searches]
    return all(
        record is not None
        and space.search is not None
        and len(record.of("complete", "pruned")) >= space.search.n_trials
        and not record.of("failed")
        for space, record in records
    )


def print_searches(asked: Asked) -> None:
    """How every search stands, a line or two each."""
    for space in asked.searches:
        record = study_of(asked, space)
        assert space.search is not None
        ended = len(record.of("complete", "pruned", "failed")) if record else 0
        counts = {
            state: len(record.of(state)) if record else 0 for state in ("complete", "pruned", "failed", "running")
        }
        pending = max(0, space.search.n_trials - ended - counts["running"])
        click.echo(
            f"search {space.name!r}: {space.search.n_trials} trials asked for, {_counted(counts)}, {pending} pending"
        )
        if record is not None and record.best:
            click.echo(f"  {best_in_words(record)}")


def failed_runs(asked: Asked) -> set[str]:
    """The runs that have made trials of searches fail."""
    records = [study_of(asked, space) for space in asked.searches]
    runs = {run_id for record in records if record for trial in record.of("failed") for run_id in trial.run_ids}
    return {run_id for run_id, state in asked.store.statuses().items() if state == "failed"} & runs if runs else set()


def print_studies(store: RunStore) -> None:
    """The searches whose studies lie beside a store, a line each."""
    from clops_sweep.search.study import search_counts

    for name, counts in search_counts(store).items():
        click.echo(f"search {name!r}: trials {_counted(counts)}")


def unprepared(asked: Asked) -> list[str]:
    """The data sets of searches that are not prepared on this machine."""
    data_hash = asked.data_hash
    configs = [config for space in asked.searches for config in asked.configs_of(space)]
    return list(dict.fromkeys(config.dataset for config in configs if data_hash(config) is None))


def runs_to_come(asked: Asked) -> list[PlannedRun]:
    """The runs that the trials of all searches may still take, for an estimate; their parameters are not known yet."""
    runs = []
    for space in asked.searches:
        record = study_of(asked, space)
        assert space.search is not None
        ended = len(record.of("complete", "pruned", "failed")) if record else 0
        for _ in range(max(0, space.search.n_trials - ended)):
            runs += [PlannedRun(None, space.base.replace(seed=seed), "pending") for seed in space.seeds]
    return runs


def best_in_words(record: StudyRecord) -> str:
    """The best trial and its values; of several objectives, how many trials none betters."""
    best = record.best
    first = _value_in_words(record, best[0])
    if len(best) == 1:
        return f"best so far: {first}"
    return f"{len(best)} trials are bettered by no other in all objectives; the first of them: {first}"


def _value_in_words(record: StudyRecord, trial: TrialRecord) -> str:
    values = ", ".join(f"{name} {value:.4g}" for name, value in zip(record.objectives, trial.values or (), strict=True))
    return f"{values} in trial {trial.number} ({in_words(trial.labels)})"


def _counted(counts: Mapping[Any, int]) -> str:
    texts = [f"{counts.get(state, 0)} {state}" for state in ("complete", "pruned", "failed")]
    return ", ".join(texts) + (f", {counts['running']} under way" if counts.get("running") else "")
