"""What tuned spaces have chosen: a function of the store and the studies, so that nothing has to be kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from statistics import fmean
from typing import TYPE_CHECKING, Any

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.search_space import Candidate, RunRequest, SearchSpace, in_words
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.planning.curriculum import BY_DIFFICULTY
from clops_sweep.planning.request import Request
from clops_sweep.search.standing import Standing, standings

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.scenarios import Scenario


@dataclass(frozen=True)
class Choice:
    """What a method of a tuned space is tuned to.

    Attributes:
        method: its label; empty if the space has one configuration alone.
        chosen: the config fields that were chosen; None until its tuning has ended, or if every trial failed.
        words: the choice in words; empty if there was nothing to choose.
        score: the mean of the objective over the runs of the chosen trial; None if there was nothing to choose.
        trials: how many configurations were tried.
        run_ids: all runs of its tuning that are known, those that are pending or were pruned included.
        best: those of the chosen configuration.
        left: whether its tuning goes on.
    """

    method: str
    chosen: Mapping[str, Any] | None = field(hash=False)
    words: str = ""
    score: float | None = None
    trials: int = 0
    run_ids: tuple[str, ...] = ()
    best: tuple[str, ...] = ()
    left: bool = False


@dataclass(frozen=True)
class Tuned:
    """A space that is tuned, with the choice of each of its methods.

    Attributes:
        space: the space.
        choices: one for each method that has a choice of its own.
    """

    space: SearchSpace
    choices: tuple[Choice, ...]

    @property
    def reported(self) -> SearchSpace | None:
        """The space that is reported; None until all choices are known."""
        chosen = {it.method: it.chosen for it in self.choices if it.chosen is not None}
        return self.space.reported(chosen) if len(chosen) == len(self.choices) else None


def tuned(asked: Request) -> list[Tuned]:
    """Return what the tuned spaces among those asked for have chosen, from the store and the studies.

    Raises:
        UsageError: a study's database cannot be read, or it was made from another definition.
    """
    spaces = asked.selection.tuned
    studies = {standing.space.name: standing for standing in standings(asked)} if spaces else {}
    found = []
    for space in spaces:
        phases = {phase.name: phase for phase in space.phases()}
        grids = [phase for phase in phases.values() if phase.search is None]
        if grids or not phases:
            choices = _of_grid(asked, space, list(grids[0].requests()) if grids else [])
        else:
            choices = _of_studies(space, studies)
        found.append(Tuned(space, tuple(choices)))
    return found


def with_reported(asked: Request) -> Request:
    """Return the request with the spaces of all configurations that have been chosen by now."""
    if not asked.selection.tuned:
        return asked
    reported = tuple(it.reported for it in tuned(asked) if it.reported is not None)
    return replace(asked, selection=replace(asked.selection, reported=reported))


def _of_grid(asked: Request, space: SearchSpace, requests: Sequence[RunRequest]) -> list[Choice]:
    """The choices of a grid: the best mean over runs that are all finished; of equal ones the first."""
    ((column, direction),) = space.objectives.items()
    ids: dict[str, list[str]] = {}
    for request in requests:
        content = asked.data_hash(request.config)
        run_id = request.config.run_id(content) if content is not None else ""
        ids.setdefault(str(next(iter(request.labels.values()))), []).append(run_id)
    asked_for = {run_id for of in ids.values() for run_id in of}
    statuses = {run_id: it for run_id, it in asked.store.statuses().items() if run_id in asked_for}
    finished = sorted(run_id for run_id, status in statuses.items() if status == "finished")
    rows = asked.store.rows("runs", ["run_id", column], finished) if finished else []
    values = {row["run_id"]: float("nan") if row[column] is None else float(row[column]) for row in rows}
    found: dict[str, list[Candidate]] = {}
    for candidate in space.candidates():
        found.setdefault(candidate.method, []).append(candidate)
    choices = []
    for method, candidates in found.items():
        if not candidates[0].label:
            choices.append(Choice(method, candidates[0].chosen))
            continue
        run_ids = tuple(dict.fromkeys(run_id for it in candidates for run_id in ids[it.label]))
        means = [(fmean(values.get(run_id, float("nan")) for run_id in ids[it.label]), it) for it in candidates]
        sign = 1 if direction == "maximize" else -1
        ranked = sorted(((mean, it) for mean, it in means if isfinite(mean)), key=lambda each: -sign * each[0])
        left = not statuses.keys() >= set(run_ids)
        if left or not ranked:
            choices.append(Choice(method, None, "", None, len(candidates), run_ids, (), left))
            continue
        score, best = ranked[0]
        kept = tuple(ids[best.label])
        choices.append(Choice(method, best.chosen, in_words(best.labels), score, len(candidates), run_ids, kept))
    return choices


def _of_studies(space: SearchSpace, studies: Mapping[str, Standing]) -> list[Choice]:
    """The choices of Optuna: the best trial of each study that has all of its trials."""
    names = iter(phase.name for phase in space.phases())
    choices = []
    for method in (it for it in space.methods if not it.like):
        if not method.parameters:
            choices.append(Choice(method.name, {}))
            continue
        standing = studies[next(names)]
        trials = standing.record.trials if standing.record is not None else ()
        run_ids = tuple(dict.fromkeys(run_id for trial in trials for run_id in trial.run_ids))
        choice = Choice(method.name, None, "", None, len(trials), run_ids, (), bool(standing.left))
        if standing.record is not None and standing.record.best and not standing.left:
            best, (score,) = standing.record.best[0], standing.record.best[0].values or ()
            chosen, words = standing.search.settings(best.labels), in_words(best.labels)
            choice = replace(choice, chosen=chosen, words=words, score=score, best=best.run_ids)
        choices.append(choice)
    return choices


def configs_of(space: SearchSpace) -> list[RunConfig]:
    """The configs of a space; of a search, those at its bounds."""
    return configs_at_bounds(space) or [request.config for request in space.requests()]


def tasks_of(asked: Request, configs: Iterable[RunConfig]) -> list[tuple[Scenario, FrameSet]]:
    """The different tasks of some configs, as far as their data are prepared here, with these."""
    prepared = [config for config in configs if asked.data_hash(config) is not None]
    found = {(config.data_key, config.task_order, *config.tasks_key): config for config in prepared}
    kept = [(in_order(config), asked.data.frames(config.data_key)) for config in found.values()]
    return [(scenario_of(config, frames), frames) for config, frames in kept]


def in_order(config: RunConfig) -> RunConfig:
    """A config whose task order is known: an order by difficulty follows from runs that are not finished yet."""
    return config.replace(task_order="sequential") if config.task_order in BY_DIFFICULTY else config
