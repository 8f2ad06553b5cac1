"""OptunaSearch: what a search varies and optimises. Plain data; importing it needs neither Optuna, torch nor Ray."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from clops_sweep.arguments import arguments_of_class
from clops_sweep.errors import UsageError, nearest, nearest_or_all, prefixed, shown
from clops_sweep.experiment.columns import numeric_columns
from clops_sweep.experiment.config import RunConfig, kind_of, known_key
from clops_sweep.experiment.fields import NOT_SEARCHED, OF_DATA
from clops_sweep.experiment.limits import check_limits
from clops_sweep.experiment.metrics import MEASURES, metric_named
from clops_sweep.experiment.plugins.options import OPTIONS, IntOption, distribution_of
from clops_sweep.experiment.plugins.values import as_list, as_python, has_twice, length
from clops_sweep.experiment.spaces.tuning import (
    Method,
    TuneOn,
    TuningSet,
    fields_set,
    methods_of,
    variant,
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
    "grid": "RandomSampler",  # all its points are enqueued: `GridSampler` would repeat points of concurrent trials
}
"""Samplers by name, with their class in `optuna.samplers`.

CMA-ES is missing because Optuna's implementation pickles its state into the study. Opening another person's results
folder would then execute code from it.
"""

_MOST_CHOICES = 10_000
"""Maximum number of values of a parameter, which are all checked before anything starts."""

_MAX_COMBINATIONS = 2_000
"""Maximum number of combinations of categories that are checked in advance; beyond, each category is checked once."""

_LIMITS = {"sampler_seed": IntOption(0, ge=0), "max_concurrent": IntOption(1, ge=1)}


@arguments_of_class
@dataclass(frozen=True)
class SuccessiveHalving:
    """Pruning between tasks by asynchronous successive halving (ASHA; Li et al., 2020), with tasks as the resource.

    Decisions are made after min_resource * reduction_factor ** i tasks (i = 0, 1, ...), the rungs. A trial continues
    only if its value is among the best 1 / reduction_factor of the trials that have reached the rung. The value is the
    objective, averaged over the tasks so far and over seeds. The first trial on a rung always continues.

    Args:
        min_resource: number of tasks before the first decision.
        reduction_factor: number of trials that compete for one place on the next rung.

    Raises:
        UsageError: a number is too small.
    """

    min_resource: int = 1
    reduction_factor: int = 2

    def __post_init__(self) -> None:
        check_limits(
            self, {"min_resource": IntOption(1, ge=1), "reduction_factor": IntOption(2, ge=2)}, "SuccessiveHalving: "
        )

    def rungs(self) -> Iterator[int]:
        """Return the numbers of tasks after which decisions are made: ascending, without end."""
        return (self.min_resource * self.reduction_factor**rung for rung in itertools.count())


@arguments_of_class
@dataclass(frozen=True)
class OptunaSearch:
    """A search over config fields with Optuna, instead of axes.

    A trial is one choice of the parameters. It is run with each seed of the search space, and its values are the means
    of the objectives over seeds. These runs are stored like any others::

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

    If a run fails after its retries, its trial fails: it has no value, its pending runs are not started, and it counts
    as one of the `n_trials`.

    Args:
        parameters: name of a config field to an Optuna distribution or a list of values, or a free name to named
            variants, each of which sets any number of fields. None means the default distribution of an option.
        n_trials: total number of trials of the study, including failed and pruned ones; by default all of a grid.
        objectives: numeric columns of the table `runs` to "maximize" or "minimize", but none of the test set; by
            default the first headline metric of the scenario, maximized.
        sampler: tpe, random, gp, nsga2, nsga3, or grid for every combination of lists and variants, the last parameter
            varying fastest.
        sampler_seed: seed of the suggestions. A suggestion depends only on it, the trial's number and the trials known
            at that time.
        sampler_options: further arguments of the sampler's class in `optuna.samplers`.
        pruning: whether to stop trials that fall behind, between two tasks. It requires a single objective, which is a
            measure such as auc or balanced_accuracy.
        max_concurrent: maximum number of concurrent trials; None for as many as the cluster holds. With 1, repeating
            the search gives the same trials.
        tune_on: the tuning data: "same", or a `TuneOn`. The chosen configuration is then run on the axes and seeds of
            the search space.
        methods: instead of `parameters`, label of a method to config fields; each method is tuned in its own study.
            Lists, mappings and distributions are tuned, other values are fixed. ``like`` names another method whose
            settings and choice are reused.
        trials_each: number of trials of each method, instead of `n_trials`; by default all of a grid.

    Raises:
        UsageError: there is nothing to vary or optimise, a column or sampler is unknown, the number of trials is
            missing, or pruning is impossible with the objectives.
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
    tune_on: TuningSet = "same"
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    trials_each: int | None = None

    def __post_init__(self) -> None:
        if self.tune_on != "same" and not isinstance(self.tune_on, TuneOn):
            raise UsageError(f"OptunaSearch: tune_on = {shown(self.tune_on)}: expected 'same' or TuneOn(...)")
        if self.trials_each is not None and not self.methods:
            raise UsageError(
                f"OptunaSearch: trials_each = {shown(self.trials_each)} without methods; expected n_trials, or methods"
            )
        if self.methods and (self.n_trials or (self.trials_each is None and self.sampler != "grid")):
            raise UsageError("OptunaSearch: methods take trials_each, the trials of each of them, and no n_trials")
        for name, value in (
            ("parameters", self.parameters),
            ("objectives", self.objectives),
            ("sampler_options", self.sampler_options),
        ):
            if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
                raise UsageError(f"OptunaSearch: {name} = {shown(value)}: expected a mapping from names")
        for name in self.parameters:
            if not name.strip():
                raise UsageError(f"OptunaSearch: parameter {shown(name)}: expected text")
        methods = methods_of(self.methods, self.parameters)
        stored = {name: _parameter(name, parameter) for name, parameter in self.parameters.items()}
        object.__setattr__(self, "parameters", stored)
        if self.sampler == "grid":
            self._check_grid(methods)
        counted = "trials_each" if self.methods else "n_trials"
        check_limits(self, {counted: IntOption(1, ge=1), **_LIMITS}, "OptunaSearch: ")
        _check_objectives(self.objectives, self.tune_on)
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

    def _check_grid(self, methods: Sequence[Method]) -> None:
        """Check that a grid has no ranges, and let it try every combination unless a number of trials is given."""
        for method in methods:
            with prefixed(f"OptunaSearch: method {method.name!r}") if method.name else nullcontext():
                for name, given in method.parameters.items():
                    parameter = _parameter(name, given)
                    if not isinstance(parameter, Mapping | tuple):
                        raise UsageError(
                            f"parameter {name!r}: {parameter}: expected a list of values or named variants in a grid"
                        )
        if not (self.methods or self.n_trials):
            object.__setattr__(self, "n_trials", math.prod(len(self._labels(name)) for name in self.parameters))

    def points(self) -> Iterator[dict[str, Any]]:
        """Return the combinations of a grid as labels by parameter; nothing for other samplers."""
        labels = (self._labels(name) for name in self.parameters)
        if self.sampler == "grid":
            yield from (dict(zip(self.parameters, point, strict=True)) for point in itertools.product(*labels))

    def of(self, method: Method) -> OptunaSearch:
        """Return the search over the parameters of one method."""
        return replace(
            self,
            parameters=method.parameters,
            n_trials=self.trials_each or self.n_trials,
            methods={},
            trials_each=None,
        )

    @property
    def chooses(self) -> bool:
        """Whether it chooses configurations, which are then reported, instead of reporting its trials."""
        return bool(self.methods) or isinstance(self.tune_on, TuneOn)

    @property
    def fields(self) -> list[str]:
        """The config fields and options that it sets or varies."""
        return list(fields_set(methods_of(self.methods, self.parameters)))

    @property
    def pruner(self) -> SuccessiveHalving | None:
        """The pruning rule, or None."""
        return (SuccessiveHalving() if self.pruning is True else self.pruning) or None

    @property
    def distributions(self) -> dict[str, FloatDistribution | IntDistribution | tuple[Any, ...]]:
        """The numeric distribution or the choices of each parameter; named variants are represented by their names."""
        distributions: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            distributions[name] = tuple(parameter) if isinstance(parameter, Mapping) else parameter
        return distributions

    def settings(self, labels: Mapping[str, Any]) -> dict[str, Any]:
        """Convert the labels of a trial to config fields; the label of named variants is the variant's name."""
        settings: dict[str, Any] = {}
        for name, label in labels.items():
            variants: Any = self.parameters[name]
            settings |= variants[label] if isinstance(variants, Mapping) else {name: label}
        return settings

    def corners(self) -> Iterator[dict[str, Any]]:
        """Yield choices to check: all combinations of categories with numbers at their minimum, and each maximum once.

        With more than 2,000 of these, each category is used once instead. Apart from the bounds of single fields,
        only categories decide whether a config is valid, so these choices suffice. All combinations of parameters that
        the frames depend on follow, numbers with their bounds: each is other data, which a launch prepares.
        """
        labels = {name: self._labels(name) for name in self.parameters}
        lowest = {name: choices[0] for name, choices in labels.items()}
        categorical = {n: c for n, c in labels.items() if isinstance(self.distributions[n], tuple)}
        if math.prod(len(choices) for choices in categorical.values()) <= _MAX_COMBINATIONS:
            for combination in itertools.product(*categorical.values()):
                yield lowest | dict(zip(categorical, combination, strict=True))
        others = labels if len(labels) > len(categorical) else categorical
        for name, choices in others.items():
            for choice in choices[1:]:
                yield lowest | {name: choice}
        of_data = {name: choices for name, choices in labels.items() if self._decides_data(name)}
        if len(of_data) > 1:
            for combination in itertools.product(*of_data.values()):
                yield lowest | dict(zip(of_data, combination, strict=True))

    def _decides_data(self, name: str) -> bool:
        """Return whether the frames of a trial depend on a parameter."""
        return any(self.settings({name: label}).keys() & set(OF_DATA) for label in self._labels(name))

    def check(self, base: RunConfig) -> None:
        """Check every parameter together with the base config.

        Raises:
            UsageError: a field is unknown or cannot be searched over, a value is out of bounds, or two parameters set
                the same field.
        """
        seen: dict[str, str] = {}
        for name, parameter in self.parameters.items():
            where = f"parameter {name!r}"
            if isinstance(parameter, Mapping) and (name in RunConfig.model_fields or name in OPTIONS):
                raise UsageError(f"{where}: named variants need a name that is not a config field")
            if not isinstance(parameter, Mapping | tuple):
                _check_scale(where, known_key(name), parameter)
            for key in sorted({key for label in self._labels(name) for key in self.settings({name: label})}):
                known_key(key)
                if key in NOT_SEARCHED:
                    raise UsageError(f"{where}: {key!r} cannot be searched over: {NOT_SEARCHED[key]}")
                if key in seen:
                    raise UsageError(f"two parameters set {key!r}: {seen[key]!r} and {name!r}")
                seen[key] = name
        for labels in self.corners():
            config = base.replace(**self.settings(labels))
            if "encoder" in seen and isinstance(config.encoder, RunConfig):
                raise UsageError(
                    f"encoder = {shown(config.encoder)}: an encoder that a run trains cannot be searched over; "
                    "expected it in base or axes of the search space"
                )
            order = config.task_order
            if "task_order" in seen and isinstance(order, tuple) and config.orders_by_name:
                raise UsageError(
                    f"task_order {shown(list(order))}: names of tasks cannot be searched over; expected "
                    "permutations of their positions"
                )
            if config.task_order in ("curriculum", "anti_curriculum"):
                raise UsageError(
                    f"task_order {config.task_order!r} would need another run for each trial; "
                    "expected a permutation or a seed in a search"
                )

    def _labels(self, name: str) -> tuple[Any, ...]:
        """Return the categories of a parameter, or its lowest and highest value."""
        distribution = self.distributions[name]
        return distribution if isinstance(distribution, tuple) else (distribution.low, distribution.high)


_REPORTED = {"test": "test people", "unseen": "people in no task", "stream": "the stream that is reported"}
"""Data that a search does not choose on, by `Metric.split`; on a stream, unless `tune_on` names another one."""


def _check_objectives(objectives: Mapping[str, Direction], tune_on: TuningSet) -> None:
    """Check the columns and directions of objectives.

    Raises:
        UsageError: a column does not exist, is not numeric or is measured on reported data, or a direction is invalid.
    """
    numeric = numeric_columns()
    for column, direction in objectives.items():
        if column not in numeric:
            raise UsageError(
                f"objective {column!r}: the table runs has no numeric column of that name"
                f"{nearest(column, dict.fromkeys(numeric))}"
            )
        split = metric_named(column).split
        if split in _REPORTED and (split != "stream" or tune_on == "same"):
            instead = "a metric of validation people, such as 'auc'" + ", or TuneOn(...)" * (split == "stream")
            raise UsageError(
                f"objective {column!r} is measured on {_REPORTED[split]}, and a search does not choose on what it "
                f"reports; expected {instead}"
            )
        if direction not in ("maximize", "minimize"):
            raise UsageError(f"objective {column!r}: {direction!r}: expected maximize or minimize")


def _parameter(
    name: str, given: Any
) -> FloatDistribution | IntDistribution | tuple[Any, ...] | dict[str, dict[str, Any]]:
    """Return a parameter in its stored form: a numeric distribution, a tuple of choices, or named variants."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if given is None and name in OPTIONS:
        try:
            given = distribution_of(OPTIONS[name])
        except ValueError as error:
            raise UsageError(f"parameter {name!r}: {error}; expected a distribution of its own") from None
    if isinstance(given, FloatDistribution | IntDistribution):
        if not all(math.isfinite(bound) and abs(bound) < 2**63 for bound in (given.low, given.high)):
            raise UsageError(f"parameter {name!r}: {given}: expected finite bounds, below 2**63")
        return given
    if isinstance(given, Mapping) and given:
        return {label: variant(name, label, settings) for label, settings in given.items()}
    if isinstance(given, CategoricalDistribution):
        given = given.choices
    if isinstance(given, list | tuple | range) or isinstance(as_python(given), list):
        return choices(name, given)
    raise UsageError(
        f"parameter {name!r}: expected a distribution, a list of values or a mapping from names to settings"
    )


def choices(name: str, values: Any) -> tuple[Any, ...]:
    """Check that the values of a parameter are a list of distinct values, and return them."""
    if (length(values) or 0) > _MOST_CHOICES:
        raise UsageError(f"parameter {name!r}: {shown(values)}: expected {_MOST_CHOICES:,} values at most")
    with prefixed(f"parameter {name!r}: {shown(values)}"):
        choices = as_list(values)
        twice = has_twice(choices)
    if not choices:
        raise UsageError(f"parameter {name!r}: expected at least one value")
    if twice:
        raise UsageError(f"parameter {name!r}: {shown(values)}: expected values that differ")
    return tuple(choices)


def _check_scale(where: str, name: str, distribution: Any) -> None:
    from optuna.distributions import FloatDistribution

    kind = kind_of(name)
    if kind not in (int, float):
        raise UsageError(f"{where}: {distribution}: the field is not a number; expected a list of its values")
    if kind is int and isinstance(distribution, FloatDistribution):
        raise UsageError(f"{where}: {distribution}: the field takes whole numbers; expected an IntDistribution")
