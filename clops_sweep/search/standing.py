"""State of searches: their studies and their pending runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clops_sweep.errors import prefixed
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.planning.plan import Plan, PlannedRun
from clops_sweep.planning.request import Request
from clops_sweep.search.records import StudyRecord, TrialState


@dataclass(frozen=True)
class Standing:
    """A search and the record of its study, None before the study exists."""

    space: SearchSpace
    search: OptunaSearch
    record: StudyRecord | None

    def count(self, *states: TrialState) -> int:
        """Return the number of trials in any of the given states."""
        return len(self.record.of(*states)) if self.record else 0

    @property
    def left(self) -> int:
        """Number of trials that have not ended."""
        return max(0, self.search.n_trials - self.count("complete", "pruned", "failed"))

    @property
    def complete(self) -> bool:
        """Whether all trials have ended and none has failed."""
        return self.count("complete", "pruned") >= self.search.n_trials and not self.count("failed")


def check_samplers(request: Request) -> None:
    """Check the samplers of all searches with Optuna.

    Raises:
        UsageError: invalid options.
    """
    for space in request.selection.searches:
        from clops_sweep.search.samplers import make_sampler

        assert isinstance(space.search, OptunaSearch)
        with prefixed(f"search space {space.name!r}"):
            make_sampler(space.search)


def standings(request: Request) -> list[Standing]:
    """Return the state of every requested search.

    Raises:
        UsageError: a study's journal cannot be read, or the study was created from another definition.
    """
    found = []
    for space in request.selection.searches:
        from clops_sweep.search.study import read_study

        assert isinstance(space.search, OptunaSearch)
        found.append(Standing(space, space.search, read_study(space, request.store, data_hashes(request, space))))
    return found


def data_hashes(request: Request, space: SearchSpace) -> dict[str, str]:
    """Return the content hashes of the prepared data of a search, by their names in its definition."""
    found = {}
    for config in configs_at_bounds(space):
        content = request.data_hash(config)
        if content is not None:
            key = config.data_key
            more = "".join(f", {name} {value}" for name, value in key.given.items())
            found[f"{key.dataset}, split {key.split_seed}, normalize {key.normalize}{more}"] = content
    return found


def unprepared(request: Request) -> list[str]:
    """Return the data sets of searches that are not prepared on this machine."""
    configs = [config for space in request.selection.searches for config in configs_at_bounds(space)]
    return list(dict.fromkeys(config.data_key.words for config in configs if request.data_hash(config) is None))


def runs_to_come(request: Request, there: Iterable[Standing]) -> Iterator[PlannedRun]:
    """Return the runs that searches and tuning may still request, for an estimate; their parameters are not known."""
    for standing in there:
        base = standing.space.base
        of_a_trial = [PlannedRun(None, base.replace(**it), "pending") for it in standing.space.replicates()]
        for _ in range(standing.left):
            yield from of_a_trial
    reported = {space.name for space in request.selection.reported}
    for space in (it for it in request.selection.tuned if it.name not in reported):
        for run in next(space.at_bounds()).requests():
            yield from [PlannedRun(None, run.config, "pending")] * len(space.seeds)


def finished_runs(request: Request, plan: Plan, there: Iterable[Standing]) -> set[str]:
    """Return the runs that count as finished, including those of trials."""
    found = {str(run.run_id) for run in plan.of("finished")}
    found |= {str(run.run_id) for run in plan.of("pending")} & request.store.without_kept()
    records = [it.record for it in there if it.record is not None]
    return found.union(*(trial.run_ids for record in records for trial in record.trials))


def failed_runs(request: Request) -> set[str]:
    """Return the failed runs of failed trials."""
    trials = [trial for standing in standings(request) if standing.record for trial in standing.record.of("failed")]
    runs = {run_id for trial in trials for run_id in trial.run_ids}
    return {run_id for run_id, state in request.store.statuses().items() if state == "failed"} & runs if runs else set()
