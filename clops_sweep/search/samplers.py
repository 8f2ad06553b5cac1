"""Optuna's samplers, made so that what a trial is suggested does not depend on which process asks."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from clops_sweep.errors import UsageError, listed, reason, shown
from clops_sweep.experiment.plugins.options import IntOption
from clops_sweep.experiment.spaces.optuna_search import SAMPLERS, OptunaSearch


class SeededByTrial(BaseSampler):
    """Gives every trial a sampler of its own, whose seed follows from the search's seed and the trial's number.

    A sampler keeps its random state in memory. One that is made anew when a search is resumed would suggest the first
    trials once more; this one goes on as if nothing had happened, because all that it remembers is in the study.

    Args:
        make: makes the sampler from a seed.
        seed: of the search.
    """

    def __init__(self, make: Callable[[int], BaseSampler], seed: int) -> None:
        self._make = make
        self._seed = seed
        self._current: tuple[int, BaseSampler] | None = None

    def _of(self, trial: FrozenTrial) -> BaseSampler:
        if self._current is None or self._current[0] != trial.number:
            seed = np.random.SeedSequence([self._seed, trial.number]).generate_state(1)[0]
            self._current = trial.number, self._make(int(seed))
        return self._current[1]

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that are chosen together."""
        return self._of(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Chooses them."""
        return self._of(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Chooses a parameter by itself."""
        return self._of(trial).sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        """A trial begins."""
        self._of(trial).before_trial(study, trial)

    def after_trial(self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Any) -> None:
        """A trial has ended."""
        self._of(trial).after_trial(study, trial, state, values)


def make_sampler(search: OptunaSearch) -> SeededByTrial:
    """The sampler that a search asks for. TPE counts trials that are under way as bad ones (the "constant liar").

    Raises:
        UsageError: options that the sampler does not take.
    """
    _check_numbers(search)
    options = dict(search.sampler_options)
    if search.sampler == "tpe":
        options.setdefault("constant_liar", True)  # trials run beside each other

    def make(seed: int) -> BaseSampler:
        sampler: BaseSampler = getattr(optuna.samplers, SAMPLERS[search.sampler])(seed=seed, **options)
        return sampler

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on what is experimental
            make(0)
    except Exception as error:  # each sampler has its own way of saying what it does not take
        raise _refused(search, error) from None
    return SeededByTrial(make, search.sampler_seed)


_MOST_TRIED = 100
"""Trials after which a sampler whose options are tried makes its first suggestions."""


def try_sampler(search: OptunaSearch) -> None:
    """Let the sampler suggest some trials of a study in memory, since some options fail only when they are used.

    Raises:
        UsageError: the sampler raises, or its options are wrong.
    """
    sampler = make_sampler(search)
    if not search.sampler_options:
        return  # Optuna's own defaults work
    directions = list(search.objectives.values()) or ["maximize"]
    values = np.random.default_rng(0).random((_MOST_TRIED, len(directions)))
    distributions: dict[str, BaseDistribution] = {  # what the choices are does not matter to a sampler
        name: CategoricalDistribution(range(len(it))) if isinstance(it, tuple) else it
        for name, it in search.distributions.items()
    }
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            study = optuna.create_study(directions=directions, sampler=optuna.samplers.RandomSampler(seed=0))
            for of_trial in values[: min(search.n_trials - 1, _MOST_TRIED)]:
                study.tell(study.ask(distributions), list(of_trial))
            study.sampler = sampler
            for of_trial in values[:2]:
                study.tell(study.ask(distributions), list(of_trial))
    except BaseException as error:  # options may hold functions of the user's
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _refused(search, error) from None
    finally:
        optuna.logging.set_verbosity(verbosity)


_NUMBER = IntOption(0, ge=0, le=100_000)


def _check_numbers(search: OptunaSearch) -> None:
    """Check the options that count something, of which Optuna's samplers take negative numbers as well.

    Raises:
        UsageError: one is not a whole number, or out of bounds.
    """
    known = inspect.signature(getattr(optuna.samplers, SAMPLERS[search.sampler])).parameters
    for name, value in search.sampler_options.items():
        if name in known and known[name].annotation in ("int", int):
            try:
                _NUMBER.checked(value)
            except ValueError as error:
                raise UsageError(f"sampler_options of {search.sampler!r}: {name} = {shown(value)}: {error}") from None


def _refused(search: OptunaSearch, error: BaseException) -> UsageError:
    given = f" ({listed(search.sampler_options)})" if search.sampler_options else ""
    return UsageError(f"sampler_options of {search.sampler!r}{given}: {reason(error)}")
