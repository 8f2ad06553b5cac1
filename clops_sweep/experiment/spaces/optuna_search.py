"""OptunaSearch: what a search varies and optimises. Plain data; importing it needs neither Optuna, torch nor Ray."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from clops_sweep.errors import UsageError, nearest, nearest_or_all, shown
from clops_sweep.experiment.columns import numeric_columns
from clops_sweep.experiment.config import RunConfig, kind_of, known_key
from clops_sweep.experiment.limits import check_limits
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.experiment.plugins.options import OPTIONS, IntOption
from clops_sweep.experiment.plugins.values import as_list, as_python, has_twice, length
from clops_sweep.experiment.spaces.tuning import (
    NOT_COMPARABLE,
    Method,
    TuningSet,
    check_tune_on,
    methods_of,
    settings_of,
)

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

Direction = Literal["maximize", "minimize"]
SAMPLERS: Mapping[str, str] = {
    "tpe": "TPESampler",
    "random": "RandomSampler",
    "gp": "GPSampler",
    "nsga2": "NSGAIISampler",
    "nsga3": "NSGAIIISampler",
}
"""How samplers are called here, and in `optuna.samplers`.

CMA-ES is not among them: Optuna's keeps its state as a pickle in the study, and opening a results folder would
execute code that others put there.
"""

_MOST_CHOICES = 10_000
"""Values of one parameter: each is checked before anything starts."""

MAX_COMBINATIONS = 2_000
"""Up to so many combinations of categories are checked beforehand; of more, every category by itself."""

_LIMITS = {"sampler_seed": IntOption(0, ge=0), "max_concurrent": IntOption(1, ge=1)}


@dataclass(frozen=True)
class SuccessiveHalving:
    """Pruning between tasks by asynchronous successive halving (ASHA; Li et al., 2020), the resource being tasks.

    After min_resource * reduction_factor ** i tasks (i = 0, 1, ...) a trial goes on only if its value is among the best
    1 / reduction_factor of those that have got as far; the value is the average of the objective over the tasks seen so
    far, averaged over seeds. The first trial to get there always goes on.

    Args:
        min_resource: after how many tasks it is first decided.
        reduction_factor: how many trials compete for one place.

    Raises:
        UsageError: a number that is too small.
    """

    min_resource: int = 1
    reduction_factor: int = 2

    def __post_init__(self) -> None:
        check_limits(
            self, {"min_resource": IntOption(1, ge=1), "reduction_factor": IntOption(2, ge=2)}, "SuccessiveHalving: "
        )

    def rungs(self) -> Iterator[int]:
        """After how many tasks it is decided, ascending and without end."""
        return (self.min_resource * self.reduction_factor**rung for rung in itertools.count())


@dataclass(frozen=True)
class OptunaSearch:
    """A search by Optuna over config fields, instead of a search space's axes.

    A trial is one choice of the parameters, run once with every seed of the search space; its values are the means over
    seeds of the objectives. Every one of these runs is an ordinary run with an ordinary row in the store::

        SearchSpace(
            name="tuned",
            base=RunConfig(dataset="mitbih"),
            search=OptunaSearch(
                parameters={
                    "learning_rate": FloatDistribution(1e-5, 1e-2, log=True),
                    "mc_samples": IntDistribution(5, 50, step=5),
                    "acquisition": ["bald_mcd", "entropy"],
                    "storage": {"by beta": {}, "random": {"storage_order": "random"}},
                },
                n_trials=50,
                objectives={"auc": "maximize"},
                pruning=True,
            ),
            seeds=range(3),
        )

    A trial of which a run has failed, after its retries, fails and has no value; the runs of it that have not been
    started yet are not started. It counts as one of the `n_trials`.

    Args:
        parameters: from a config field to a distribution of Optuna's or a list of its values, or from a free name to
            named variants, each of which sets any number of fields. None stands for the distribution that follows from
            an option's definition.
        n_trials: how many trials the study is to have in all, whatever became of them.
        objectives: from numeric columns of the table `runs` to "maximize" or "minimize"; by default the first headline
            metric of the scenario, maximized.
        sampler: tpe, random, gp, nsga2 or nsga3.
        sampler_seed: a trial's suggestion follows from it, the trial's number and the trials known by then.
        sampler_options: further arguments of the sampler's class in `optuna.samplers`.
        pruning: whether trials that fall behind are stopped between two tasks; only with one objective, a
            measure such as auc or balanced_accuracy.
        max_concurrent: how many trials are under way at once; None for as many as the cluster holds. With 1, the same
            search gives the same trials.
        storage: URL of the study's database, as SQLAlchemy and Optuna understand it; by default `optuna.db` in the
            folder of results.
        tune_on: what the configuration is chosen on; it is then run on the axes and seeds of the search space.
        methods: instead of parameters, methods that are each tuned by a study of their own: from a label to config
            fields. Lists, mappings and distributions are tuned, other values are fixed. ``like`` names another method
            whose settings and choice it takes over.
        trials_each: how many trials each of the methods gets, instead of `n_trials`.

    Raises:
        UsageError: nothing to vary or to optimise, an unknown column or sampler, no trials, or pruning that cannot be.
    """

    parameters: Mapping[str, BaseDistribution | Sequence[Any] | Mapping[str, Mapping[str, Any]] | None] = field(
        default_factory=dict
    )
    n_trials: int = 0
    objectives: Mapping[str, Direction] = field(default_factory=dict)
    sampler: str = "tpe"
    sampler_seed: int = 0
    sampler_options: Mapping[str, Any] = field(default_factory=dict)
    pruning: bool | SuccessiveHalving = False
    max_concurrent: int | None = None
    storage: str | None = None
    tune_on: TuningSet = "same"
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    trials_each: int | None = None

    def __post_init__(self) -> None:
        check_tune_on("OptunaSearch", self.tune_on)
        if self.trials_each is not None and not self.methods:
            raise UsageError(
                f"OptunaSearch: trials_each = {shown(self.trials_each)} without methods; expected n_trials, or methods"
            )
        if self.methods and (self.n_trials or self.trials_each is None):
            raise UsageError("OptunaSearch: methods take trials_each, the trials of each of them, and no n_trials")
        counted = "trials_each" if self.methods else "n_trials"
        check_limits(self, {counted: IntOption(1, ge=1), **_LIMITS}, "OptunaSearch: ")
        for name, value in (
            ("parameters", self.parameters),
            ("objectives", self.objectives),
            ("sampler_options", self.sampler_options),
        ):
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise UsageError(f"OptunaSearch: {name} = {shown(value)}: expected a mapping from names")
        if self.storage is not None and not (isinstance(self.storage, str) and self.storage.strip()):
            raise UsageError(f"OptunaSearch: storage = {shown(self.storage)}: expected the URL of a database")
        for name in self.parameters:
            if not name.strip():
                raise UsageError(f"OptunaSearch: parameter {shown(name)}: expected text")
        methods_of("OptunaSearch", self.methods, self.parameters)
        object.__setattr__(self, "parameters", {name: _parameter(name, it) for name, it in self.parameters.items()})
        check_objectives(self.objectives)
        if not isinstance(self.sampler, str) or self.sampler not in SAMPLERS:
            raise UsageError(f"sampler = {shown(self.sampler)}: not known{nearest_or_all(str(self.sampler), SAMPLERS)}")
        if not isinstance(self.pruning, bool | SuccessiveHalving):
            raise UsageError(f"pruning = {self.pruning!r}: expected True, False or SuccessiveHalving(...)")
        measured = [dict(self.objectives) == {measure: "maximize"} for measure in MEASURES]
        if self.pruning and self.objectives and not any(measured):
            raise UsageError(
                "pruning compares trials by the average of a measure between tasks; expected one objective with it, "
                f"one of {', '.join(MEASURES)} to maximize, or no pruning"
            )

    def of(self, method: Method) -> OptunaSearch:
        """Return the search over the parameters of one method, on the setting that it is part of."""
        return replace(
            self,
            parameters=method.parameters,
            n_trials=self.trials_each or self.n_trials,
            tune_on="same",
            methods={},
            trials_each=None,
        )

    @property
    def pruner(self) -> SuccessiveHalving | None:
        """The rule of pruning, if there is one."""
        return (SuccessiveHalving() if self.pruning is True else self.pruning) or None

    @property
    def distributions(self) -> dict[str, FloatDistribution | IntDistribution | tuple[Any, ...]]:
        """Every parameter's distribution of numbers, or its choices; those of named variants are their names."""
        found: Mapping[str, Any] = self.parameters
        return {name: tuple(it) if isinstance(it, Mapping) else it for name, it in found.items()}

    @property
    def fields(self) -> set[str]:
        """The config fields that trials set."""
        return {key for name in self.parameters for label in self._labels(name) for key in self.settings({name: label})}

    def settings(self, labels: Mapping[str, Any]) -> dict[str, Any]:
        """A trial's choice as config fields."""
        return settings_of(self.parameters, labels)

    def corners(self) -> Iterator[dict[str, Any]]:
        """Choices at the bounds: every combination of categories with numbers at their lowest, each highest number.

        Of very many categories, each once instead of every combination. For a trial to be a valid config, the fields'
        own bounds apart, is a matter of categories alone.
        """
        labels = {name: self._labels(name) for name in self.parameters}
        lowest = {name: choices[0] for name, choices in labels.items()}
        categorical = {n: c for n, c in labels.items() if isinstance(self.distributions[n], tuple)}
        if math.prod(len(choices) for choices in categorical.values()) <= MAX_COMBINATIONS:
            for combination in itertools.product(*categorical.values()):
                yield lowest | dict(zip(categorical, combination, strict=True))
        others = labels if len(labels) > len(categorical) else categorical
        for name, choices in others.items():
            for choice in choices[1:]:
                yield lowest | {name: choice}

    def check(self, base: RunConfig) -> None:
        """Looks at every parameter with the base config that it varies.

        Raises:
            UsageError: an unknown field, one that cannot be searched over, a value out of the field's bounds, or fields
                that two parameters set.
        """
        seen: dict[str, str] = {}
        for name, parameter in self.parameters.items():
            where = f"parameter {name!r}"
            if isinstance(parameter, Mapping) and (name in RunConfig.model_fields or name in OPTIONS):
                raise UsageError(f"{where}: named variants need a name that is no config field")
            if not isinstance(parameter, Mapping | tuple):
                _check_scale(where, known_key(name), parameter)
            for key in sorted({key for label in self._labels(name) for key in self.settings({name: label})}):
                known_key(key)
                if key in NOT_COMPARABLE:
                    raise UsageError(f"{where}: {key!r} cannot be searched over: {NOT_COMPARABLE[key]}")
                if key in seen:
                    raise UsageError(f"two parameters set {key!r}: {seen[key]!r} and {name!r}")
                seen[key] = name
        for labels in self.corners():
            config = base.replace(**self.settings(labels))
            if config.task_order in ("curriculum", "anti_curriculum"):
                raise UsageError(
                    f"task_order {config.task_order!r} is found out by other runs, one for each trial; "
                    "expected a permutation or a seed in a search"
                )

    def _labels(self, name: str) -> tuple[Any, ...]:
        """A parameter's categories, or its lowest and highest value."""
        distribution = self.distributions[name]
        return distribution if isinstance(distribution, tuple) else (distribution.low, distribution.high)


def check_objectives(objectives: Mapping[str, Direction]) -> None:
    """Look at the columns and directions of objectives.

    Raises:
        UsageError: no numeric column of that name, or no direction.
    """
    numeric = numeric_columns()
    for column, direction in objectives.items():
        if column not in numeric:
            raise UsageError(
                f"objective {column!r}: the table runs has no numeric column of that name"
                f"{nearest(column, dict.fromkeys(numeric))}"
            )
        if direction not in ("maximize", "minimize"):
            raise UsageError(f"objective {column!r}: {direction!r}: expected maximize or minimize")


def _parameter(name: str, it: Any) -> FloatDistribution | IntDistribution | tuple[Any, ...] | dict[str, dict[str, Any]]:
    """A parameter as it is stored: a distribution of numbers, a tuple of choices, or named variants."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if it is None and name in OPTIONS:
        try:
            it = OPTIONS[name].distribution()
        except ValueError as error:
            raise UsageError(f"parameter {name!r}: {error}; expected a distribution of its own") from None
    if isinstance(it, FloatDistribution | IntDistribution):
        if not all(math.isfinite(bound) and abs(bound) < 2**63 for bound in (it.low, it.high)):
            raise UsageError(f"parameter {name!r}: {it}: expected finite bounds, below 2**63")
        return it
    if isinstance(it, Mapping) and it:
        return {label: variant(name, label, settings) for label, settings in it.items()}
    if isinstance(it, CategoricalDistribution):
        it = it.choices
    if isinstance(it, list | tuple | range) or isinstance(as_python(it), list):
        return choices(name, it)
    raise UsageError(
        f"parameter {name!r}: expected a distribution, a list of values or a mapping from names to settings"
    )


def choices(name: str, values: Any) -> tuple[Any, ...]:
    """Return the values of a parameter, checked: a list of different values."""
    if (length(values) or 0) > _MOST_CHOICES:
        raise UsageError(f"parameter {name!r}: {shown(values)}: expected {_MOST_CHOICES:,} values at most")
    try:
        choices = as_list(values)
        twice = has_twice(choices)
    except ValueError as error:
        raise UsageError(f"parameter {name!r}: {shown(values)}: {error}") from None
    if not choices:
        raise UsageError(f"parameter {name!r}: expected at least one value")
    if twice:
        raise UsageError(f"parameter {name!r}: {shown(values)}: expected values that differ")
    return tuple(choices)


def variant(name: str, label: Any, settings: Any) -> dict[str, Any]:
    """Return the settings of a named variant of a parameter, checked."""
    if not isinstance(label, str):
        raise UsageError(f"parameter {name!r}: variant {shown(label)}: expected text as its name")
    if not isinstance(settings, Mapping):
        raise UsageError(f"parameter {name!r}: variant {shown(label)}: expected a mapping from fields to values")
    return {key: as_python(value) for key, value in settings.items()}


def _check_scale(where: str, name: str, distribution: Any) -> None:
    from optuna.distributions import FloatDistribution

    kind = kind_of(name)
    if kind not in (int, float):
        raise UsageError(f"{where}: {distribution}: the field is no number; expected a list of its values")
    if kind is int and isinstance(distribution, FloatDistribution):
        raise UsageError(f"{where}: {distribution}: the field takes whole numbers; expected an IntDistribution")
