"""The searches of a request with their studies, and the choices of tuned spaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from clops_sweep.experiment.spaces.axes import in_words
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch
from clops_sweep.experiment.spaces.search_space import SearchSpace, TunedSpace, search_of
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.planning.request import Request
from clops_sweep.search.records import Edge, StudyRecord, TrialState


@dataclass(frozen=True)
class Search:
    """A search and the record of its study, None before the study exists."""

    space: SearchSpace
    search: OptunaSearch
    record: StudyRecord | None

    def count(self, *states: TrialState) -> int:
        """Return the number of trials in any of the given states."""
        return len(self.record.of(*states)) if self.record else 0

    @property
    def left(self) -> int:
        """Number of trials that have not ended: those that run, also beyond `n_trials`, and those still to suggest."""
        running = self.count("running")
        ended = self.count("complete", "pruned", "failed")
        return running + max(0, self.search.n_trials - ended - running)

    @property
    def complete(self) -> bool:
        """Whether all trials have ended and none has failed."""
        return not self.left and not self.count("failed")

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The runs of all its trials, each once."""
        trials = () if self.record is None else self.record.trials
        return tuple(dict.fromkeys(run_id for trial in trials for run_id in trial.run_ids))


@dataclass(frozen=True)
class Choice:
    """The choice of a method of a tuned space.

    Attributes:
        method: label of the method; empty if the space has a single configuration.
        state: "made" once the tuning has ended; "open" before, and if every trial failed; "none" for a method whose
            configuration is given.
        chosen: the chosen config fields, if it is made.
        words: the same in words.
        trials: number of configurations that were tried.
        run_ids: all runs of the tuning, including pending and pruned ones.
        best: the runs of the chosen configuration.
        tied: whether all of several trials have the same value, so that the choice is the first by chance.
        equal: number of complete trials with the value of the chosen one, itself included.
        edges: the numeric parameters whose chosen value is on the edge of what was tried.
    """

    method: str
    state: Literal["none", "open", "made"]
    chosen: Mapping[str, Any] = field(hash=False, default_factory=dict)
    words: str = ""
    trials: int = 0
    run_ids: tuple[str, ...] = ()
    best: tuple[str, ...] = ()
    tied: bool = False
    equal: int = 1
    edges: Mapping[str, Edge] = field(hash=False, default_factory=dict)


@dataclass(frozen=True)
class Tuning:
    """The tuning of a tuned space so far.

    Attributes:
        space: the tuned space.
        choices: one for each method that is not like another.
    """

    space: TunedSpace
    choices: tuple[Choice, ...]

    @property
    def is_decided(self) -> bool:
        """Whether all choices are known."""
        return all(choice.state != "open" for choice in self.choices)

    @cached_property
    def _known(self) -> dict[str, Mapping[str, Any]]:
        """The config fields by method of the configurations that are reported; none before the first choice."""
        if not self.is_decided and not any(choice.state == "made" for choice in self.choices):
            return {}
        return {choice.method: choice.chosen for choice in self.choices if choice.state != "open"}

    @cached_property
    def reported(self) -> SearchSpace | None:
        """The space of the configurations that are chosen so far; None before the first choice."""
        return self.space.reported(self._known) if self._known else None

    @property
    def to_report(self) -> SearchSpace | None:
        """The space of the other configurations, at the bounds of their searches; None if all are chosen."""
        if self.is_decided:
            return None
        others = [choice.method for choice in self.choices if choice.method not in self._known]
        return self.space.reported(next(self.space.bounds(others)))


def data_hashes(request: Request, space: SearchSpace) -> dict[str, str]:
    """Return the content hashes of the prepared data of a search, by their names in its definition."""
    hashes = {}
    for config in configs_at_bounds(space):
        content = request.data_hash(config)
        if content is not None:
            key = config.data_key
            more = "".join(f", {name} {value}" for name, value in key.given.items())
            hashes[f"{key.dataset}, split {key.split_seed}, normalize {key.normalize}{more}"] = content
    return hashes


def search_with_study(request: Request, space: SearchSpace) -> Search:
    """Return a search with its study."""
    from clops_sweep.search.trials import read_study

    return Search(space, search_of(space), read_study(space, request.store, data_hashes(request, space)))


def choices_of(space: TunedSpace, searches: Mapping[str, Search]) -> Iterator[Choice]:
    """Yield the choice of each method that is not like another."""
    phases = iter(space.phases)
    for method in space.methods:
        if method.parameters:
            yield _choice(method.name, searches[next(phases).name])
        elif not method.like:
            yield Choice(method.name, "none")


def _choice(method: str, search: Search) -> Choice:
    """Return the choice of Optuna: the best trial of a study that has all its trials."""
    if search.record is None:
        return Choice(method, "open")
    trials = len(search.record.of("complete", "pruned", "failed", "running"))
    if search.left or not search.record.best:
        return Choice(method, "open", trials=trials, run_ids=search.run_ids)
    best = search.record.best[0]
    complete = search.record.of("complete")
    return Choice(
        method,
        "made",
        search.search.settings(best.labels),
        in_words(best.labels),
        trials,
        search.run_ids,
        best.run_ids,
        tied=search.record.tied,
        equal=sum(trial.values == best.values for trial in complete),
        edges=best.edges,
    )
