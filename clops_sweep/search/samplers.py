"""Optuna samplers whose suggestions do not depend on the process that asks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from clops_sweep.errors import UsageError, listed, reason, user_code
from clops_sweep.experiment.spaces.optuna_search import SAMPLERS
from clops_sweep.experiment.spaces.search_space import SearchSpace, search_of


class SeededByTrial(BaseSampler):
    """Gives every trial its own sampler, seeded with the search's seed and the trial's number.

    Samplers keep their random state in memory, so a new sampler in a resumed search would repeat its first suggestions.
    This one continues as if uninterrupted, because all its state is in the study.

    Args:
        make: creates the sampler from a seed.
        seed: seed of the search.
    """

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self._make = make
        self._seed = seed
        self._current: tuple[int, BaseSampler] | None = None
        self._drawn: set[str] = set()
        """Parameters that the current sampler has drawn."""

    def _of(self, trial: FrozenTrial) -> BaseSampler:
        if self._current is None or self._current[0] != trial.number:
            seed = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)[0]
            self._current = trial.number, self._make(int(seed))
            self._drawn = set()
        return self._current[1]

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters that are sampled jointly."""
        return self._of(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Sample them."""
        values = self._of(trial).sample_relative(study, trial, search_space)
        self._drawn.update(values)
        return values

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Sample a parameter independently.

        If an earlier process was killed between two parameters of the trial, those that it stored are drawn again, so
        that the rest is as it would have been.
        """
        sampler = self._of(trial)
        for name, distribution in trial.distributions.items():
            if name not in self._drawn:
                self._drawn.add(name)
                sampler.sample_independent(study, trial, name, distribution)
        self._drawn.add(param_name)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """Forward the start of a trial."""
        self._of(trial).before_trial(study, trial)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Any) -> None:
        """Forward the end of a trial."""
        self._of(trial).after_trial(study, trial, state, values)


def make_sampler(space: SearchSpace) -> SeededByTrial:
    """Return the sampler of a search space. TPE treats running trials as bad ones (the "constant liar").

    Raises:
        UsageError: see `sampler_maker`.
    """
    return SeededByTrial(sampler_maker(space), search_of(space).sampler_seed)


def sampler_maker(space: SearchSpace) -> Callable[[int], BaseSampler]:
    """Return the function that creates the sampler of a search space from a seed, and has created one.

    Raises:
        UsageError: Optuna refuses the options of the sampler.
    """
    search = search_of(space)
    refusal = partial(refused, space)
    options = {name: _guarded(value, refusal) for name, value in search.sampler_options.items()}
    if search.sampler == "tpe":
        options.setdefault("constant_liar", True)  # trials run concurrently

    def make(seed: int) -> BaseSampler:
        sampler: BaseSampler = getattr(optuna.samplers, SAMPLERS[search.sampler])(seed=seed, **options)
        return sampler

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about experimental features
            make(0)
    except Exception as error:  # samplers report invalid options by different exceptions
        raise refusal(error) from None
    return make


def _guarded(value: Any, refusal: Callable[[BaseException], UsageError]) -> Any:
    """Return an option; a function of the user, such as `constraints_func`, with its errors in one sentence.

    Optuna calls it while it writes the journal, where other errors mean that the journal is damaged.
    """
    if not callable(value):
        return value

    @wraps(value)
    def called(*arguments: Any, **named: Any) -> Any:
        with user_code(refusal):
            return value(*arguments, **named)

    return called


def refused(space: SearchSpace, error: BaseException) -> UsageError:
    """Return an error of a sampler, which may come from functions of the user, in one sentence."""
    search = search_of(space)
    given = f" ({listed(search.sampler_options)})" if search.sampler_options else ""
    where = space.subject
    return UsageError(f"{where}: sampler_options of {search.sampler!r}{given}: {reason(error)}", place=where)
