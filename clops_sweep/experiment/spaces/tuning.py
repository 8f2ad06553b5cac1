"""What a configuration is tuned on, and the methods that are tuned alike. Plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from clops_sweep.errors import UsageError, listed, nearest_or_all, shown
from clops_sweep.experiment.config import SEED, RunConfig
from clops_sweep.experiment.limits import check_limits
from clops_sweep.experiment.plugins.options import OPTIONS, IntOption
from clops_sweep.experiment.plugins.registry import STRATEGIES
from clops_sweep.experiment.plugins.values import as_list, as_python, has_twice, length

SPLIT_AXES = ("split_seed", "split")
"""Axes over patient splits."""

METHOD, CANDIDATE = "method", "candidate"
"""The axis that a tuned space has for its methods, and for the combinations of a grid that has none."""

LIKE = "like"
"""The key that names another method, whose settings and choice a method takes over."""

NOT_COMPARABLE = {
    "seed": "give seeds as seeds=...; a trial is their mean",
    "weight_seed": "a search over it would find the luckiest initial weights",
    "split_seed": "a search over it would find the luckiest split of the patients",
    "split": "a search over it would find the luckiest fold of the patients",
    "validation": "a search over it would find the luckiest validation set",
    "dataset": "results on different data cannot be compared",
    "scenario": "results of different scenarios cannot be compared",
    "task_classes": "results on different tasks cannot be compared",
    **dict.fromkeys(
        ("domain", "split_within", "people_per_task", "people_order", "first_tasks"),
        "results on different tasks cannot be compared",
    ),
}
"""Config fields that no search varies, and why."""


@dataclass(frozen=True)
class TuneOn:
    """What a configuration is chosen on, where that differs from what is reported.

    Give exactly one of `tasks`, `splits` and `dataset`; `seeds` goes with each of them, or alone.

    Args:
        tasks: the first tasks of the order alone, on the reported splits.
        splits: other split seeds, that is other partitions of the same people.
        dataset: another data set, with the split of the base config.
        seeds: the seeds while tuning; by default those of the search space. Alone: the reported splits, other seeds.

    Raises:
        UsageError: none or several are given, or a value is invalid.
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


def check_tune_on(where: str, tune_on: object) -> None:
    """Raise UsageError for anything that is neither "same" nor a TuneOn."""
    if tune_on != "same" and not isinstance(tune_on, TuneOn):
        raise UsageError(f"{where}: tune_on = {shown(tune_on)}: expected 'same' or TuneOn(...)")


@dataclass(frozen=True)
class Method:
    """A method that is tuned.

    Attributes:
        name: its label; empty for the only one.
        fixed: config fields that it sets.
        parameters: what is tuned, from names to lists, variants or distributions.
        like: the method whose choice it takes over; empty for its own.
    """

    name: str
    fixed: Mapping[str, Any] = field(hash=False)
    parameters: Mapping[str, Any] = field(hash=False)
    like: str = ""


def methods_of(where: str, methods: Mapping[str, Mapping[str, Any]], parameters: Mapping[str, Any]) -> list[Method]:
    """Return the methods of a search; one without a name if it has parameters instead.

    Of a method's settings, lists, mappings and distributions are tuned, and anything else is fixed. A method that is
    called like a strategy and does not set `strategy` is that strategy.

    Raises:
        UsageError: both or neither are given, or a method is invalid.
    """
    if bool(methods) == bool(parameters):
        what = "has parameters and methods; expected one of them" if methods else "parameters is empty"
        raise UsageError(f"{where}{' ' if methods else ': '}{what}{'' if methods else '; expected at least one'}")
    if not methods:
        return [Method("", {}, parameters)]
    if not isinstance(methods, Mapping) or not all(isinstance(it, Mapping) for it in methods.values()):
        raise UsageError(f"{where}: methods = {shown(methods)}: expected a mapping from names to settings")
    found: dict[str, Method] = {}
    for name, settings in methods.items():
        if not isinstance(name, str) or not name.strip():
            raise UsageError(f"{where}: method {shown(name)}: expected text as its name")
        found[name] = _method(f"{where}: method {name!r}", name, settings, found)
        check_comparable(f"{where}: method {name!r}", found[name])
    return list(found.values())


def check_comparable(where: str, method: Method) -> None:
    """Raise UsageError for a config field that no search varies."""
    for key in fields_set([method]):
        if key in NOT_COMPARABLE:
            raise UsageError(f"{where}: {key!r} is nothing to search over: {NOT_COMPARABLE[key]}")


def _method(where: str, name: str, settings: Mapping[str, Any], others: Mapping[str, Method]) -> Method:
    fixed = {} if name not in STRATEGIES or "strategy" in settings else {"strategy": name}
    tuned = {key: value for key, value in settings.items() if key != LIKE and _is_tuned(key, value)}
    fixed |= {key: as_python(value) for key, value in settings.items() if key != LIKE and key not in tuned}
    if LIKE not in settings:
        return Method(name, fixed, tuned)
    like = settings[LIKE]
    known = {other: it for other, it in others.items() if not it.like}
    if like not in known:
        raise UsageError(f"{where}: like = {shown(like)}: no method before it{nearest_or_all(str(like), known)}")
    if tuned:
        raise UsageError(
            f"{where}: it is like {like!r}, whose choice it takes; expected no list for {sorted(tuned)[0]!r}"
        )
    return Method(name, {**known[like].fixed, **fixed}, {}, like)


def _is_tuned(key: str, value: Any) -> bool:
    return key in OPTIONS if value is None else not isinstance(as_python(value), bool | int | float | str)


def setting_while_tuning(
    tune_on: TuningSet, base: RunConfig, axes: Mapping[str, Any], seeds: Sequence[int]
) -> tuple[RunConfig, dict[str, Any], Sequence[int]]:
    """Return base config, axes over patient splits and seeds while tuning.

    Args:
        tune_on: what is tuned on.
        base: the base config of the reported runs.
        axes: their axes.
        seeds: their seeds.

    Raises:
        UsageError: a split or data set that is tuned on is reported too.
    """
    splits = {axis: values for axis, values in axes.items() if axis in SPLIT_AXES}
    if isinstance(tune_on, str):
        return base, splits, seeds
    tuned_seeds = seeds if tune_on.seeds is None else tune_on.seeds
    if tune_on.tasks is not None:
        return base.replace(first_tasks=tune_on.tasks), splits, tuned_seeds
    if tune_on.dataset is not None:
        if tune_on.dataset in (base.dataset, *axes.get("dataset", ())):
            raise UsageError(f"{tune_on}: {tune_on.dataset!r} is reported too; expected another data set")
        return base.replace(dataset=tune_on.dataset), {}, tuned_seeds
    if tune_on.splits is not None:
        reported = axes.get("split_seed", [base.split_seed])
        if both := [split for split in tune_on.splits if split in reported]:
            raise UsageError(f"{tune_on}: split seed {both[0]} is reported too; expected other split seeds")
        return base.replace(split=None), {"split_seed": tune_on.splits}, tuned_seeds
    if both := [seed for seed in tuned_seeds if seed in seeds]:
        raise UsageError(f"{tune_on}: seed {both[0]} is reported too; expected other seeds")
    return base, splits, tuned_seeds


def label_of(method: str, words: str) -> str:
    """Return the label of a combination on the axis of a grid that chooses: "er, replay_ratio 0.5"."""
    return ", ".join(filter(None, (method, words)))


def settings_of(parameters: Mapping[str, Any], labels: Mapping[str, Any]) -> dict[str, Any]:
    """Return a choice of parameters as config fields; the label of named variants is a name."""
    found: dict[str, Any] = {}
    for name, label in labels.items():
        of = parameters[name]
        found |= of[label] if isinstance(of, Mapping) else {name: label}
    return found


def fields_set(methods: Sequence[Method]) -> Iterator[str]:
    """Yield the config fields that methods set or tune."""
    for method in methods:
        yield from method.fixed
        for name, of in method.parameters.items():
            yield from (key for it in of.values() for key in it) if isinstance(of, Mapping) else (name,)


def _seeds(name: str, values: Any) -> tuple[int, ...]:
    try:
        found = tuple(SEED.checked(it) for it in as_list(values))
    except ValueError as error:
        raise UsageError(f"TuneOn: {name} = {shown(values)}: {error}") from None
    if not length(found) or has_twice(found):
        raise UsageError(f"TuneOn: {name} = {shown(values)}: expected at least one, and none twice")
    return found
