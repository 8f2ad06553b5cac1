"""SearchSpace: the runs that an experiment requests. Imports neither torch nor Ray."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from clops_sweep.arguments import arguments_of_class
from clops_sweep.errors import UsageError, option, prefixed, several, shown
from clops_sweep.experiment.config import SEED, RunConfig, known_key, owners
from clops_sweep.experiment.html_table import html_table
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.experiment.plugins.options import OPTIONS, checked
from clops_sweep.experiment.plugins.registry import has_metric, headline, may_use
from clops_sweep.experiment.plugins.values import as_list, is_whole, length
from clops_sweep.experiment.spaces.axes import (
    Axis,
    check_axis,
    check_twice,
    fields_of,
    in_positions,
    plain_axis,
    settings_with,
    with_values,
)
from clops_sweep.experiment.spaces.executed_file import names_in as names_in  # scripts of 0.3 import it from here
from clops_sweep.experiment.spaces.gc_paused import gc_paused
from clops_sweep.experiment.spaces.grid import Grid, RunRequest, check_count, subject_of
from clops_sweep.experiment.spaces.optuna_search import Direction, OptunaSearch
from clops_sweep.experiment.spaces.trials import Trials
from clops_sweep.experiment.spaces.tuning import METHOD, Method, methods_of, setting_while_tuning, splits_are_fixed

_LONGEST_NAME = 100  # file names, limited to 255 bytes, consist of it and of names of figures and tables

SELECTION = "_selection"
"""End of the name of a tuned space in the names of its phases."""


class _Seeds:
    """The field `seeds`, to which a number n gives the seeds 0 .. n - 1."""

    def __get__(self, space: SearchSpace | None, of: type | None = None) -> Sequence[int]:
        seeds: Sequence[int] = range(5) if space is None else space.__dict__["seeds"]
        return seeds

    def __set__(self, space: SearchSpace, seeds: Sequence[int] | int) -> None:
        is_number = not isinstance(seeds, Sequence) and is_whole(seeds)
        space.__dict__["seeds"] = range(int(seeds)) if is_number else seeds  # type: ignore[arg-type]


@arguments_of_class
@dataclass(frozen=True)
class SearchSpace:
    """A base configuration, axes or a search that vary it, and seeds.

    An axis is either a config field with its values, or a free name with named variants, each of which sets any number
    of fields::

        SearchSpace(
            name="ablation",
            base=RunConfig(dataset="mitbih"),
            axes={
                "storage_fraction": [0.1, 0.25],
                "variant": {"CLOPS": {}, "Random storage": {"storage_order": "random"}},
            },
            seeds=range(5),
            where=lambda config: config.storage_fraction < 0.5 or config.seed == 0,
        )

    Example:
        >>> space = SearchSpace("methods", RunConfig(), {"strategy": ["finetune", "er"]}, seeds=3)
        >>> len(list(space.requests()))
        6

    Order of the runs: seeds vary slowest (seed 0 of every cell before seed 1 of any), then the axes in their order, the
    last one fastest. A search determines its runs while it proceeds (see `OptunaSearch`).

    A search that chooses configurations (an `OptunaSearch` with `tune_on` or `methods`) makes it a tuned space, of
    which the axes and seeds are reported; see `tuned`.

    Args:
        name: name of the experiment in reports and logs.
        base: values common to all runs.
        axes: name of a field to its values, or a free name to named variants. Beside a search that chooses nothing,
            only `split_seed` and `split`: a trial is the mean over them.
        seeds: the seeds of every cell, or of every trial of a search; a number n means 0 .. n - 1.
        where: keeps only the configs for which it returns True.
        resolve: maps a config to one with a resolved task order (see `curriculum`).
        search: a search over config fields.

    Raises:
        UsageError: an unknown field, an axis or a seed list without values, a value twice or out of bounds, or a search
            together with axes.
    """

    name: str
    base: RunConfig
    axes: Mapping[str, Axis] = field(default_factory=dict)
    seeds: _Seeds = _Seeds()
    where: Callable[[RunConfig], bool] | None = None
    resolve: Callable[[RunConfig], RunConfig] | None = None
    search: OptunaSearch | None = None

    def __post_init__(self) -> None:
        self._check_types()
        self._check_size()
        self._set_plain_values()
        self._check_name()
        self._check_seeds()
        for what, function in (("where", self.where), ("resolve", self.resolve)):
            if function is not None and not callable(function):
                raise UsageError(f"{self.subject}: {what}: expected a function of a config, not {shown(function)}")
        if self.search is not None:
            self._check_search(self.search)
        for axis, values in self.axes.items():
            check_axis(self.subject, axis, values)
        with gc_paused():
            _ = self._requests  # all are checked now, not one by one later
        if self.tuned is None:  # its phases, and the grids that it may report, check this themselves
            self._check_all_used()

    def _set_plain_values(self) -> None:
        """Replace seeds and axes by plain Python values."""
        with prefixed(f"{self.subject}: seeds"):
            seeds = as_list(self.seeds)
        object.__setattr__(self, "seeds", tuple(seeds))
        axes = {axis: plain_axis(self.subject, axis, values) for axis, values in self.axes.items()}
        object.__setattr__(self, "axes", axes)

    def _check_name(self) -> None:
        if not self.name or any(character in self.name for character in "/\\\0") or self.name.startswith("."):
            raise UsageError(f"search space name {self.name!r}: expected a name that can stand in a file name")
        if len(self.name.encode("utf-8", "replace")) > _LONGEST_NAME:
            raise UsageError(f"search space name {self.name[:20]!r}...: expected {_LONGEST_NAME} bytes at most")

    def _check_seeds(self) -> None:
        if not len(self.seeds):
            raise UsageError(
                f"{self.subject}: seeds has no values; a number n means the seeds 0 .. n - 1, such as seeds=5"
            )
        check_twice(f"{self.subject}: seeds", self.seeds)
        seeds = (checked(SEED, seed, f"{self.subject}: seed = ") for seed in self.seeds)
        object.__setattr__(self, "seeds", tuple(seeds))

    def _check_all_used(self) -> None:
        """Check that some run uses each option that base, axes and search set."""
        given = self.base.explicit
        of_base = (name for name in given if may_use(name, given))  # others are copied by `replace`
        of_search = () if self.search is None else self.search.fields
        self._check_used([*of_base, *fields_of(self.axes), *of_search], given)

    def _check_types(self) -> None:
        if not isinstance(self.name, str):
            raise UsageError(f"search space name {shown(self.name)}: expected text")
        for what, value, expected, kind in (
            ("base", self.base, "a RunConfig", RunConfig),
            ("axes", self.axes, "a mapping from axes to their values", Mapping),
        ):
            if not isinstance(value, kind):
                raise UsageError(f"{self.subject}: {what}: expected {expected}, not {type(value).__name__}")

    def _check_size(self) -> None:
        sizes = [length(values) or 1 for values in (*self.axes.values(), self.seeds)]  # invalid ones: refused later
        check_count(self.subject, "its axes and seeds make", math.prod(sizes), ", or a search")

    def _check_search(self, search: OptunaSearch) -> None:
        where = self.subject
        if not isinstance(search, OptunaSearch):
            raise UsageError(f"{where}: search: expected an OptunaSearch")
        scenario = self.base.scenario
        for name in search.objectives:
            if not has_metric(scenario, name):
                known = ", ".join(measure for measure in MEASURES if has_metric(scenario, measure))
                raise UsageError(f"{where}: objective {name!r}: {scenario} has no such metric; it has those of {known}")

    def _check_used(self, names: Iterable[str], base: Mapping[str, Any]) -> None:
        """Check that each given option is used by some run."""
        options = [name for name in dict.fromkeys(names) if name in OPTIONS]
        used = self.used_options(base) if options else set()
        unused = [name for name in options if name not in used]
        if unused:
            raise UsageError(f"{self.subject}: no run of it uses {unused[0]!r}, an option of {owners(unused[0])}")

    @cached_property
    def tuned(self) -> TunedSpace | None:
        """The space as a tuned one, if its search chooses configurations; else None."""
        if self.search is None or not self.search.chooses:
            return None
        return TunedSpace(self, self.search)

    @cached_property
    def _content(self) -> Grid | Trials | TunedSpace:
        """What the space consists of."""
        if self.tuned is not None:
            return self.tuned
        return self._grid if self.search is None else Trials(self._grid, self.search)

    @cached_property
    def _grid(self) -> Grid:
        return Grid(self.name, self.base, self.axes, self.seeds, self.where, self.resolve, self.subject)

    @property
    def subject(self) -> str:
        """The space as the subject of a sentence."""
        return subject_of(self.name)

    @property
    def size(self) -> str:
        """Number of its runs or trials in words; equal configurations are one run."""
        return self._content.size

    @property
    def objectives(self) -> Mapping[str, Direction]:
        """Objectives of its search, by default the first headline metric of the scenario."""
        given = self.search.objectives if self.search is not None else {}
        return given or {headline(self.base.scenario)[0]: "maximize"}

    def used_options(self, base: Mapping[str, Any]) -> set[str]:
        """Return the options that some run uses.

        Args:
            base: values given to the base config, by name.
        """
        return self._content.used_options(base)

    def tuned_fields_at(self, labels: Mapping[str, Any]) -> frozenset[str]:
        """Return the fields of a cell that tuning chose: none, but for a `ReportedGrid`.

        Args:
            labels: the labels of the cell, by axis.
        """
        return frozenset()

    def replicates(self) -> list[dict[str, Any]]:
        """Return the patient splits and seeds of each trial of a search, as config fields."""
        return self._grid.replicates()

    def requests(self) -> Iterator[RunRequest]:
        """Return all requested runs in the documented order; none for a search, whose study determines them."""
        return iter(self._requests)

    @cached_property
    def _requests(self) -> list[RunRequest]:
        return self._content.checked()

    def overridden(self, settings: Mapping[str, Any]) -> SearchSpace:
        """Return the space with other values in the base config.

        Raises:
            UsageError: an unknown key, a key that an axis of this space sets, or a value out of bounds.
        """
        if not settings:
            return self
        for key in settings:
            known_key(key)
            if self.search is not None and key in self.search.fields:
                raise UsageError(f"{self.subject} searches over {key!r} itself; change its distribution instead")
            if key in fields_of(self.axes):
                if self.search is None:
                    instead = f"keep some of its values with {option('where')} instead"
                else:
                    instead = (
                        "write the values to keep in its axes, and give it another name or other "
                        f"{option('results')}, since a study keeps its definition"
                    )
                raise UsageError(f"{self.subject} varies {key!r} itself; {instead}")
            if key == "seed":
                raise UsageError(
                    f"seeds are set by the search space and by {option('seeds')}, not by {option('settings')}"
                )
        base = self.base.replace(**settings)
        self._check_used(settings, base.explicit)
        return replace(self, base=base)

    def with_encoders(self, stored: Mapping[RunConfig, str]) -> SearchSpace:
        """Return the space with stored runs in place of the configs that are encoders."""

        def settled(value: Any) -> Any:
            return stored.get(value, value) if isinstance(value, RunConfig) else value

        base = self.base.replace(**settings_with(self.base.explicit, settled))
        return replace(self, base=base, axes=with_values(self.axes, settled))

    def with_task_orders(self, positions: Mapping[tuple[str, ...], tuple[int, ...]]) -> SearchSpace:
        """Return the space with positions in place of task orders by name, where these are known."""

        def settled(value: Any) -> Any:
            return in_positions(value, positions)

        base = self.base.replace(**settings_with(self.base.explicit, settled, "task_order"))
        return replace(self, base=base, axes=with_values(self.axes, settled, "task_order"))

    def __repr__(self) -> str:
        """The call that makes it, and the number of its runs."""
        given = (f"{name}={value!r}" if name == "base" else f"{name}={shown(value)}" for name, value in self._given())
        return f"{type(self).__name__}({', '.join(given)})  # {self.size}"

    def _repr_html_(self) -> str:
        axes = ((f"axis {axis}", ", ".join(map(str, values))) for axis, values in self.axes.items())
        given = ((name, value) for name, value in self._given()[2:] if name != "axes")
        rows = [*((name, repr(value)) for name, value in self.base.changed.items()), *axes, *given]
        return html_table(f"{self.name}: {self.size}", rows)

    def _given(self) -> list[tuple[str, Any]]:
        given = []
        for name in (attribute.name for attribute in fields(self)):
            value = getattr(self, name)
            is_left_out = value is None or (name == "axes" and not value)
            if not is_left_out:
                given.append((name, value))
        return given


@dataclass(frozen=True, repr=False)
class Phase(SearchSpace):
    """A search whose trials choose the configuration of one method of a tuned space; they are no results themselves.

    Args:
        chooses_for: name of the tuned space.
        method: name of the method; empty if the tuned space has a single one.
    """

    chooses_for: str = ""
    method: str = ""

    @property
    def tuned(self) -> None:
        """Nothing: it is a part of a tuned space."""

    @property
    def subject(self) -> str:
        """The tuned space, with the method, as the subject of a sentence."""
        return method_as_subject(self.chooses_for, self.method)


@dataclass(frozen=True, repr=False)
class ReportedGrid(SearchSpace):
    """The grid that a tuned space reports: the chosen configuration of each method over the axes and seeds.

    Args:
        tuned_fields: by method, the fields that its search chose; "" is a single method.
    """

    tuned_fields: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def tuned_fields_at(self, labels: Mapping[str, Any]) -> frozenset[str]:
        """Return the fields of a cell that tuning chose.

        Args:
            labels: the labels of the cell, by axis.
        """
        method = labels.get(METHOD, "")
        return frozenset(self.tuned_fields.get(method, ()))


@dataclass(frozen=True)
class TunedSpace:
    """A search space whose search chooses configurations: one with `tune_on` or `methods`.

    It is made of spaces of two kinds. Each of its `phases` is a search that chooses the configuration of one method.
    `reported` is the grid of the chosen configurations over the axes and seeds of the space.

    Attributes:
        undivided: the search space, not divided into phases.
        search: its search.
    """

    undivided: SearchSpace
    search: OptunaSearch

    @property
    def name(self) -> str:
        """Name of the search space, and of the grid that is reported."""
        return self.undivided.name

    @property
    def _subject(self) -> str:
        """The space as the subject of a sentence."""
        return subject_of(self.name)

    @property
    def splits_fixed(self) -> str:
        """A sentence if no patient splits can be added once the space is tuned; empty if they can."""
        return splits_are_fixed(self.name, self.search.tune_on)

    @cached_property
    def methods(self) -> list[Method]:
        """The tuned methods; a single one without a name if the search has parameters."""
        return methods_of(self.search.methods, self.search.parameters)

    @cached_property
    def phases(self) -> list[Phase]:
        """The searches that choose, one for each method that is tuned itself."""
        space = self.undivided
        with prefixed(self._subject):
            base, axes, seeds = setting_while_tuning(self.search.tune_on, space.base, space.axes, space.seeds)
        phases = []
        for method in self.methods:
            with prefixed(method_as_subject(self.name, method.name)):
                for fixed_field in method.fixed:
                    known_key(fixed_field)
            if not method.parameters:
                continue
            name = f"{self.name}{SELECTION}"
            with prefixed(method_as_subject(self.name, method.name)):
                base_of_method, search = base.replace(**method.fixed), self.search.of(method)
                for tuned_field in method.tuned_fields:
                    known_key(tuned_field)
            phase = Phase(
                name=f"{name}_{method.name}" if method.name else name,
                base=base_of_method,
                axes=axes,
                seeds=seeds,
                search=search,
                chooses_for=self.name,
                method=method.name,
            )
            phases.append(phase)
        return phases

    def reported(self, chosen: Mapping[str, Mapping[str, Any]], seeds: Sequence[int] | None = None) -> ReportedGrid:
        """Return the grid of the chosen configurations, whose runs are ordinary runs.

        Args:
            chosen: the chosen config fields by method; "" is a single method. Other methods, and those like them, are
                left out.
            seeds: seeds of its runs; by default those of the space.
        """
        space = self.undivided
        methods = [method for method in self.methods if (method.like or method.name) in chosen]
        settings = {method.name: {**method.fixed, **chosen[method.like or method.name]} for method in methods}
        fields_of_method = {method.name: method.tuned_fields for method in self.methods}
        base = space.base
        axes: Mapping[str, Axis] = {METHOD: settings, **space.axes}
        if "" in settings:
            axes = space.axes
            with prefixed(self._subject):
                base = space.base.replace(**settings[""])
        return ReportedGrid(
            name=self.name,
            base=base,
            axes=axes,
            seeds=space.seeds if seeds is None else seeds,
            where=space.where,
            resolve=space.resolve,
            tuned_fields={method.name: fields_of_method[method.like or method.name] for method in methods},
        )

    def at_bounds(self) -> Iterator[ReportedGrid]:
        """Yield grids of the first seed that may be reported; together they cover all data and tasks of a choice."""
        for chosen in self.bounds([method.name for method in self.methods if not method.like]):
            yield self.reported(chosen, self.undivided.seeds[:1])

    def bounds(self, methods: Collection[str]) -> Iterator[dict[str, Mapping[str, Any]]]:
        """Yield choices of some methods at the bounds of their search, as `reported` takes them."""
        bounds: dict[str, list[Mapping[str, Any]]] = {}
        for method in self.methods:
            if method.name not in methods:
                continue
            if method.parameters:
                with prefixed(self._subject):
                    search = self.search.of(method)
                    bounds[method.name] = [search.settings(corner) for corner in search.corners()]
            elif not method.like:
                bounds[method.name] = [{}]
        most = max(len(settings) for settings in bounds.values())
        for position in range(most):
            yield {name: settings[min(position, len(settings) - 1)] for name, settings in bounds.items()}

    @cached_property
    def reported_at_bounds(self) -> list[RunConfig]:
        """The configs of `at_bounds`, each once."""
        configs: dict[RunConfig, None] = {}
        for space in self.at_bounds():
            for request in space.requests():
                configs[request.config] = None
        return list(configs)

    @property
    def size(self) -> str:
        """Number of its trials and reported runs in words."""
        trials = sum(phase.search.n_trials for phase in self.phases if phase.search is not None)
        runs = len(self.methods) * len(self.undivided.replicates())
        return f"{several(trials, 'trial')} of {several(len(self.phases), 'method')}, then {several(runs, 'run')}"

    def requests(self) -> Iterator[RunRequest]:
        """Return nothing: the runs depend on the choices."""
        return iter(())

    def used_options(self, base: Mapping[str, Any]) -> set[str]:
        """Return the options that some trial or reported run uses, for values given to the base config."""
        used: set[str] = set()
        for space in (*self.phases, *self.at_bounds()):
            used |= space.used_options(base)
        return used

    def checked(self) -> list[RunRequest]:
        """Check the spaces that it is made of, and return its runs as `requests` does.

        Raises:
            UsageError: several objectives, an axis with the name of the axis over methods, tuning data that are
                reported, or an invalid space.
        """
        where = self._subject
        if len(self.undivided.objectives) != 1:
            raise UsageError(f"{where}: tune_on and methods choose one configuration; expected one objective")
        if self.methods[0].name and METHOD in self.undivided.axes:
            raise UsageError(f"{where}: axis {METHOD!r} is that of the search's methods; expected another name")
        _ = self.phases, self.reported_at_bounds
        return []


def search_of(space: SearchSpace) -> OptunaSearch:
    """Return the search of a space.

    Raises:
        UsageError: it has none.
    """
    if space.search is None:
        raise UsageError(f"{space.subject} has no search")
    return space.search


def method_as_subject(space: str, method: str) -> str:
    """Return a method of a tuned space as the subject of a sentence; the space if the method has no name."""
    return f"{subject_of(space)}: method {method!r}" if method else subject_of(space)
