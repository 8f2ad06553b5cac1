"""The choices of tuned spaces, computed from the store and the studies; they are not stored themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.search_space import SearchSpace, in_words
from clops_sweep.experiment.spaces.selection import configs_at_bounds
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.planning.curriculum import BY_DIFFICULTY
from clops_sweep.planning.request import Request
from clops_sweep.search.standing import Standing, standings

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet
    from clops_sweep.data.scenarios import Scenario


@dataclass(frozen=True)
class ChosenCell:
    """The choice of a method of a tuned space.

    Attributes:
        method: label of the method; empty if the space has a single configuration.
        chosen: the chosen config fields; None until the tuning ends, and if every trial failed.
        words: the choice in words; empty if there was nothing to choose.
        trials: number of configurations that were tried.
        run_ids: all runs of the tuning, including pending and pruned ones.
        best: the runs of the chosen configuration.
    """

    method: str
    chosen: Mapping[str, Any] | None = field(hash=False)
    words: str = ""
    trials: int = 0
    run_ids: tuple[str, ...] = ()
    best: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tuned:
    """A tuned space with the choices of its methods.

    Attributes:
        space: the search space.
        choices: one for each method that is not like another.
    """

    space: SearchSpace
    choices: tuple[ChosenCell, ...]

    @property
    def reported(self) -> SearchSpace | None:
        """The space of the chosen configurations; None until all choices are known."""
        chosen = {it.method: it.chosen for it in self.choices if it.chosen is not None}
        return self.space.reported(chosen) if len(chosen) == len(self.choices) else None


def tuned(request: Request, there: Sequence[Standing] | None = None) -> list[Tuned]:
    """Return the requested tuned spaces with their choices; `there` are its searches, if they are known.

    Raises:
        UsageError: a study's journal cannot be read, or it was made from another definition.
    """
    spaces = request.selection.tuned
    found = standings(request) if spaces and there is None else there or ()
    studies = {standing.space.name: standing for standing in found}
    return [Tuned(space, tuple(_of_studies(space, studies))) for space in spaces]


def with_reported(request: Request) -> Request:
    """Return the request with the encoders that are trained, and the configurations that are chosen, by now."""
    request = request.with_pretrained()
    if not request.selection.tuned:
        return request
    reported = tuple(it.reported for it in tuned(request) if it.reported is not None)
    return replace(request, selection=replace(request.selection, reported=reported))


def _of_studies(space: SearchSpace, studies: Mapping[str, Standing]) -> list[ChosenCell]:
    """Return the choices of Optuna: the best trial of each study that has all its trials."""
    names = iter(phase.name for phase in space.phases)
    choices = []
    for method in (it for it in space.methods if not it.like):
        if not method.parameters:
            choices.append(ChosenCell(method.name, {}))
            continue
        standing = studies[next(names)]
        trials = standing.record.trials if standing.record is not None else ()
        run_ids = tuple(dict.fromkeys(run_id for trial in trials for run_id in trial.run_ids))
        choice = ChosenCell(method.name, None, trials=len(trials), run_ids=run_ids)
        if standing.record is not None and standing.record.best and not standing.left:
            best = standing.record.best[0]
            chosen = standing.search.settings(best.labels)
            choice = replace(choice, chosen=chosen, words=in_words(best.labels), best=best.run_ids)
        choices.append(choice)
    return choices


def configs_of(space: SearchSpace) -> list[RunConfig]:
    """Return the configs of a space; for a search, those at its bounds."""
    return configs_at_bounds(space) or [request.config for request in space.requests()]


def tasks_of(request: Request, configs: Iterable[RunConfig]) -> list[tuple[Scenario, FrameSet]]:
    """Return the distinct tasks of some configs with their frames; configs whose data are not prepared are skipped."""
    prepared = [config for config in configs if request.data_hash(config) is not None]
    found = {(config.data_key, config.task_order, *config.tasks_key): config for config in prepared}
    kept = [(in_sequential_order(config), request.data.frames(config.data_key)) for config in found.values()]
    return [(scenario_of(config, frames), frames) for config, frames in kept]


def in_sequential_order(config: RunConfig) -> RunConfig:
    """Return a config with a known task order: an order by difficulty depends on unfinished runs."""
    return config.replace(task_order="sequential") if config.task_order in BY_DIFFICULTY else config
