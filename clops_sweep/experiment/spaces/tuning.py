"""Tuning data (`TuneOn`) and tuned methods (`Method`) of a search, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from clops_sweep.arguments import arguments_of_class
from clops_sweep.errors import UsageError, listed, nearest, nearest_or_all, prefixed, shown
from clops_sweep.experiment.config import SEED, RunConfig
from clops_sweep.experiment.fields import NOT_SEARCHED, SPLIT_AXES
from clops_sweep.experiment.limits import check_limits
from clops_sweep.experiment.plugins.options import OPTIONS, IntOption, checked
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.plugins.values import as_list, as_python, has_twice, is_whole
from clops_sweep.experiment.spaces.axes import Axes, fields_of

METHOD = "method"
"""Axis of a tuned space over its methods."""

_LIKE = "like"
"""Key in a method's settings. It names an earlier method whose settings and tuned choice are reused."""


@arguments_of_class
@dataclass(frozen=True)
class TuneOn:
    """Tuning data that differ from the reported data.

    Give exactly one of `tasks`, `splits` and `dataset`, optionally with `seeds`; or give `seeds` alone.

    Args:
        tasks: tune on the first `tasks` tasks only, on the reported splits.
        splits: tune on these split seeds, which partition the same people in other ways.
        dataset: tune on another data set, with the split of the base config.
        seeds: seeds while tuning; by default those of the search space. Given alone, tuning uses the reported splits
            with these seeds, none of which may be reported.

    Raises:
        UsageError: no argument is given, several of `tasks`, `splits` and `dataset` are, or a value is invalid.
    """

    tasks: int | None = None
    splits: Sequence[int] | None = None
    dataset: str | None = None
    seeds: Sequence[int] | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("tasks", "splits", "dataset") if getattr(self, name) is not None]
        if len(given) > 1 or not (given or self.seeds is not None):
            raise UsageError(
                f"TuneOn: {listed(given) if given else 'nothing'} given; expected one of tasks, splits and dataset, or "
                "seeds alone"
            )
        check_limits(self, {"tasks": IntOption(1, ge=1)}, "TuneOn: ")
        for name in ("splits", "seeds"):
            if (values := getattr(self, name)) is not None:
                object.__setattr__(self, name, _seeds(name, values))
        if self.dataset is not None and not isinstance(self.dataset, str):
            raise UsageError(f"TuneOn: dataset = {shown(self.dataset)}: expected the name of a data set")

    def __str__(self) -> str:
        given = [(name, getattr(self, name)) for name in ("tasks", "splits", "dataset", "seeds")]
        return f"TuneOn({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"


TuningSet = TuneOn | Literal["same"]


def splits_are_fixed(space: str, tune_on: TuningSet) -> str:
    """Return a sentence if a space is tuned on the patient splits that it reports, else an empty text.

    Args:
        space: name of the tuned space.
        tune_on: what it is tuned on.
    """
    if isinstance(tune_on, TuneOn) and (tune_on.splits is not None or tune_on.dataset is not None):
        return ""
    return (
        f"tuning of {space!r} uses the patient splits that it reports: more splits later need another name and another "
        "tuning; a space that is tuned on others from the start, with tune_on=TuneOn(splits=...), takes more"
    )


@dataclass(frozen=True)
class Method:
    """A method that is tuned.

    Attributes:
        name: label of the method; empty for a search with `parameters` instead of `methods`.
        fixed: values of config fields that are not tuned.
        parameters: tuned parameters: name to list, variants or distribution.
        like: name of the method whose choice is reused; empty if the method is tuned itself.
    """

    name: str
    fixed: Mapping[str, Any] = field(hash=False)
    parameters: Mapping[str, Any] = field(hash=False)
    like: str = ""

    @property
    def tuned_fields(self) -> tuple[str, ...]:
        """The config fields that its parameters set, each once."""
        return tuple(dict.fromkeys(fields_of(self.parameters)))


def methods_of(methods: Mapping[str, Mapping[str, Any]], parameters: Mapping[str, Any]) -> list[Method]:
    """Return the methods of a search; a single unnamed one if the search has `parameters` instead of `methods`.

    Settings that are lists, mappings or distributions are tuned; all others are fixed. The name of a method that sets
    neither `strategy` nor `like` is that of its strategy.

    Args:
        methods: settings by name of the method.
        parameters: tuned parameters of a search without methods.

    Raises:
        UsageError: both `methods` and `parameters` are given, or neither, or a method is invalid.
    """
    if bool(methods) == bool(parameters):
        what = "has parameters and methods; expected one of them" if methods else "parameters is empty"
        raise UsageError(f"OptunaSearch{' ' if methods else ': '}{what}{'' if methods else '; expected at least one'}")
    if not methods:
        return [Method("", {}, parameters)]
    if not isinstance(methods, Mapping) or not all(isinstance(settings, Mapping) for settings in methods.values()):
        raise UsageError(f"OptunaSearch: methods = {shown(methods)}: expected a mapping from names to settings")
    checked_methods: dict[str, Method] = {}
    for name, settings in methods.items():
        if not isinstance(name, str) or not name.strip():
            raise UsageError(f"OptunaSearch: method {shown(name)}: expected text as its name")
        method = _method(_subject(name), name, settings, checked_methods)
        checked_methods[name] = method
        for key in fields_set([method]):
            if key in NOT_SEARCHED:
                raise UsageError(f"{_subject(name)}: {key!r} cannot be searched over: {NOT_SEARCHED[key]}")
    return list(checked_methods.values())


def variant(name: str, label: Any, settings: Any) -> dict[str, Any]:
    """Check the settings of a named variant of a parameter, and return them."""
    if not isinstance(label, str):
        raise UsageError(f"parameter {name!r}: variant {shown(label)}: expected text as its name")
    if not isinstance(settings, Mapping):
        raise UsageError(f"parameter {name!r}: variant {shown(label)}: expected a mapping from fields to values")
    return {key: as_python(value) for key, value in settings.items()}


def _subject(method: str) -> str:
    """Return a method as the subject of a sentence."""
    return f"OptunaSearch: method {method!r}"


def _method(where: str, name: str, settings: Mapping[str, Any], others: Mapping[str, Method]) -> Method:
    if name not in STRATEGIES and not settings.keys() & {"strategy", _LIKE}:
        raise UsageError(
            f"{where}: no strategy has this name{nearest(name, STRATEGIES)}; expected a setting 'strategy' or 'like'"
        )
    for parameter, variants in settings.items():
        if isinstance(variants, Mapping):
            with prefixed(where):
                for label, of_variant in variants.items():
                    variant(parameter, label, of_variant)
    fixed = {} if name not in STRATEGIES or "strategy" in settings else {"strategy": name}
    tuned = {key: value for key, value in settings.items() if key != _LIKE and _is_tuned(key, value)}
    fixed |= {key: as_python(value) for key, value in settings.items() if key != _LIKE and key not in tuned}
    if _LIKE not in settings:
        return Method(name, fixed, tuned)
    like = settings[_LIKE]
    known = {other: method for other, method in others.items() if not method.like}
    if like not in known:
        raise UsageError(f"{where}: like = {shown(like)}: no method before it{nearest_or_all(str(like), known)}")
    if tuned:
        raise UsageError(
            f"{where}: it is like {like!r}, whose choice it takes; expected no list for {sorted(tuned)[0]!r}"
        )
    if chosen := [key for key in fixed if key in known[like].tuned_fields]:
        raise UsageError(
            f"{where}: it is like {like!r}, which tunes {chosen[0]!r}, and takes its choice; expected no {chosen[0]!r}"
        )
    return Method(name, {**known[like].fixed, **fixed}, {}, like)


def _is_tuned(key: str, value: Any) -> bool:
    return key in OPTIONS if value is None else not isinstance(as_python(value), bool | int | float | str)


def setting_while_tuning(
    tune_on: TuningSet, base: RunConfig, axes: Axes, seeds: Sequence[int]
) -> tuple[RunConfig, dict[str, Any], Sequence[int]]:
    """Return the base config, the axes over patient splits and the seeds of the tuning runs.

    Args:
        tune_on: the tuning data.
        base: base config of the reported runs.
        axes: axes of the reported runs.
        seeds: seeds of the reported runs.

    Raises:
        UsageError: the tasks, a split, a seed or the data set of the tuning runs are also reported, or
            variants set both fields of splits.
    """
    splits = _split_axes(base, axes)
    if isinstance(tune_on, str):
        return base, splits, seeds
    tuned_seeds = seeds if tune_on.seeds is None else tune_on.seeds
    if tune_on.tasks is not None:
        for tasks in _reported("first_tasks", base, axes):
            if is_whole(tasks) and tasks <= tune_on.tasks:
                raise UsageError(f"{tune_on}: first_tasks = {tasks} is reported; expected fewer tasks to tune on")
        return base.replace(first_tasks=tune_on.tasks), splits, tuned_seeds
    if tune_on.dataset is not None:
        if tune_on.dataset in _reported("dataset", base, axes):
            raise UsageError(f"{tune_on}: {tune_on.dataset!r} is reported too; expected another data set")
        return base.replace(dataset=tune_on.dataset), {}, tuned_seeds
    if tune_on.splits is not None:
        reported = _reported("split_seed", base, axes)
        if both := [split for split in tune_on.splits if split in reported]:
            raise UsageError(f"{tune_on}: split seed {both[0]} is reported too; expected other split seeds")
        return base.replace(split=None), {"split_seed": tune_on.splits}, tuned_seeds
    if both := [seed for seed in tuned_seeds if seed in seeds]:
        raise UsageError(f"{tune_on}: seed {both[0]} is reported too; expected other seeds")
    return base, splits, tuned_seeds


def _split_axes(base: RunConfig, axes: Axes) -> dict[str, list[Any]]:
    """Return axes over the patient splits that are reported, also those that named variants set.

    Raises:
        UsageError: variants set both fields of splits, which no two axes can do.
    """
    splits: dict[str, list[Any]] = {}
    for axis, values in axes.items():
        names = [name for name in SPLIT_AXES if name in fields_of({axis: values})]
        if len(names) > 1:
            raise UsageError(f"axis {axis!r} sets {listed(names)}; expected one of them, so that tuning has its splits")
        for name in names:
            splits[name] = _reported(name, base, {axis: values})
    return splits


def _reported(name: str, base: RunConfig, axes: Axes) -> list[Any]:
    """Return the values of a field in the reported runs, each once; `where` may leave some out."""
    of_base = getattr(base, name)
    reported: list[Any] = []
    for axis, values in axes.items():
        if name not in fields_of({axis: values}):
            continue
        given = [settings.get(name, of_base) for settings in values.values()] if isinstance(values, Mapping) else values
        for value in given:
            if value not in reported:
                reported.append(value)
    return reported or [of_base]


def fields_set(methods: Sequence[Method]) -> Iterator[str]:
    """Yield the config fields that methods set or tune."""
    for method in methods:
        yield from method.fixed
        for name, parameter in method.parameters.items():
            if not isinstance(parameter, Mapping):
                yield name
                continue
            for settings in parameter.values():
                yield from settings


def _seeds(name: str, values: Any) -> tuple[int, ...]:
    with prefixed(f"TuneOn: {name} = {shown(values)}"):
        seeds = tuple(checked(SEED, seed, "seed = ") for seed in as_list(values))
    if not seeds or has_twice(seeds):
        raise UsageError(f"TuneOn: {name} = {shown(values)}: expected at least one, and none twice")
    return seeds
