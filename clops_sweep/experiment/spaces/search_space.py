"""SearchSpace: the runs that an experiment requests. Imports neither torch nor Ray."""

from __future__ import annotations

import itertools
import math
import os
import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from clops_sweep.arguments import arguments_of_class
from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError, calling, nearest_or_all, one_line, option, prefixed, several, shown
from clops_sweep.experiment.config import SEED, RunConfig, any_combination, known_key, owners
from clops_sweep.experiment.fields import SPLIT_AXES
from clops_sweep.experiment.html_table import html_table
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.experiment.plugins.options import OPTIONS, checked
from clops_sweep.experiment.plugins.registry import REGISTRIES, has_metric, headline, may_use, used_options
from clops_sweep.experiment.plugins.values import as_list, as_python, has_twice, is_whole, kind_in_words, length
from clops_sweep.experiment.spaces.claims import Claim, check_claims
from clops_sweep.experiment.spaces.gc_paused import gc_paused
from clops_sweep.experiment.spaces.local_modules import importable
from clops_sweep.experiment.spaces.optuna_search import Direction, OptunaSearch
from clops_sweep.experiment.spaces.tuning import (
    METHOD,
    OF_A_PHASE,
    Method,
    TuneOn,
    fields_set,
    methods_of,
    setting_while_tuning,
)

_LONGEST_NAME = 100  # file names, limited to 255 bytes, consist of it and of names of figures and tables
_LONGEST_SAID = 200

SELECTION = "_selection"
"""End of the name of a tuned space in the names of the searches that choose its configurations."""

MOST_RUNS = 250_000
"""Most runs of one search space: every config is validated before anything starts."""

Axis = Sequence[Any] | Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class RunRequest:
    """A requested run, with its label on each axis of its search space.

    `written` is the config as in the search space; its task order may be a curriculum that `config` resolves.
    """

    config: RunConfig
    space: str
    labels: Mapping[str, Any] = field(hash=False)
    written: RunConfig


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

    A search that chooses a configuration (an `OptunaSearch` with `tune_on` or `methods`) goes through two phases.
    `phases` are the spaces that choose; `reported` is the space of the chosen configuration, over the axes and seeds.

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
        object.__setattr__(self, "seeds", tuple(_plain(f"search space {self.name!r}: seeds", self.seeds)))
        axes = {axis: self._plain_axis(axis, values) for axis, values in self.axes.items()}
        object.__setattr__(self, "axes", axes)
        if not self.name or any(character in self.name for character in "/\\\0") or self.name.startswith("."):
            raise UsageError(f"search space name {self.name!r}: expected a name that can stand in a file name")
        if len(self.name.encode("utf-8", "replace")) > _LONGEST_NAME:
            raise UsageError(f"search space name {self.name[:20]!r}...: expected {_LONGEST_NAME} bytes at most")
        if not len(self.seeds):
            raise UsageError(f"search space {self.name!r}: seeds has no values")
        _check_twice(f"search space {self.name!r}: seeds", self.seeds)
        seeds = (checked(SEED, seed, f"search space {self.name!r}: seed = ") for seed in self.seeds)
        object.__setattr__(self, "seeds", tuple(seeds))
        for what, function in (("where", self.where), ("resolve", self.resolve)):
            if function is not None and not callable(function):
                raise UsageError(
                    f"search space {self.name!r}: {what}: expected a function of a config, not {shown(function)}"
                )
        if self.search is not None:
            self._check_search(self.search)
        for axis, values in self.axes.items():
            self._check_axis(axis, values)
        with gc_paused():
            self.__dict__["_validated"] = list(self._requests())  # validate all now, not one by one later
        if self.is_tuned:
            self._check_tuned()
            return
        of_search = fields_set(self.methods) if self.search is not None else ()
        of_axes = self._keys_of_axes()
        given = self.base.explicit
        of_base = (name for name in given if may_use(name, given))  # others are copied by `replace`
        self._check_used([*of_base, *of_axes, *of_search], given)

    def __repr__(self) -> str:
        """The call that makes it, and the number of its runs."""
        given = (f"{name}={value!r}" if name == "base" else f"{name}={shown(value)}" for name, value in self._given())
        return f"SearchSpace({', '.join(given)})  # {self.size}"

    def _repr_html_(self) -> str:
        axes = ((f"axis {axis}", ", ".join(map(str, values))) for axis, values in self.axes.items())
        given = ((name, value) for name, value in self._given()[2:] if name != "axes")
        rows = [*((name, repr(value)) for name, value in self.base.changed.items()), *axes, *given]
        return html_table(f"{self.name}: {self.size}", rows)

    def _given(self) -> list[tuple[str, Any]]:
        given = []
        for name in (attribute.name for attribute in fields(self)):
            value = getattr(self, name)
            if value is not None and (name != "axes" or value):
                given.append((name, value))
        return given

    @property
    def size(self) -> str:
        """Number of its runs or trials in words; equal configurations are one run."""
        if self.is_tuned:
            trials = sum(phase.search.n_trials for phase in self.phases if phase.search is not None)
            runs = len(self.methods) * len(self.replicates())
            return f"{several(trials, 'trial')} of {several(len(self.phases), 'method')}, then {several(runs, 'run')}"
        if self.search is not None:
            return f"{several(self.search.n_trials, 'trial')} of {several(len(self.replicates()), 'run')}"
        return several(len({run.config.identity for run in self._requests()}), "run")

    def _check_types(self) -> None:
        if not isinstance(self.name, str):
            raise UsageError(f"search space name {shown(self.name)}: expected text")
        for what, value, expected, kind in (
            ("base", self.base, "a RunConfig", RunConfig),
            ("axes", self.axes, "a mapping from axes to their values", Mapping),
        ):
            if not isinstance(value, kind):
                raise UsageError(f"search space {self.name!r}: {what}: expected {expected}, not {type(value).__name__}")

    def _check_size(self) -> None:
        sizes = [length(values) or 1 for values in (*self.axes.values(), self.seeds)]  # invalid ones: refused later
        self._check_count("its axes and seeds make", math.prod(sizes), ", or a search")

    def _check_count(self, what: str, runs: int, hint: str = "") -> None:
        if runs > MOST_RUNS:
            raise UsageError(f"search space {self.name!r}: {what} {runs:,} runs; expected {MOST_RUNS:,} at most{hint}")

    def _plain_axis(self, axis: Any, values: Any) -> Axis:
        """Return an axis with plain Python values, so that labels, ids and JSON are identical for equal values."""
        if not isinstance(axis, str) or not axis.strip():
            raise UsageError(f"search space {self.name!r}: axis {shown(axis)}: expected text")
        if not isinstance(values, Mapping):
            return _plain(f"search space {self.name!r}, axis {axis!r}", values)
        variants = {}
        for name, settings in values.items():
            if not isinstance(settings, Mapping):
                raise UsageError(
                    f"search space {self.name!r}, axis {axis!r}: variant {shown(name)}: expected a mapping from fields "
                    f"to values, not {kind_in_words(settings)}"
                )
            variants[name] = {key: as_python(value) for key, value in settings.items()}
        return variants

    def _check_search(self, search: OptunaSearch) -> None:
        where = f"search space {self.name!r}"
        if not isinstance(search, OptunaSearch):
            raise UsageError(f"{where}: search: expected an OptunaSearch")
        if not self.is_tuned:
            self._check_trials(search)
        scenario = self.base.scenario
        for name in search.objectives:
            if not has_metric(scenario, name):
                known = ", ".join(measure for measure in MEASURES if has_metric(scenario, measure))
                raise UsageError(f"{where}: objective {name!r}: {scenario} has no such metric; it has those of {known}")

    def _check_trials(self, search: OptunaSearch) -> None:
        """Check a search that chooses nothing."""
        where = f"search space {self.name!r}"
        if not set(self.axes) <= set(SPLIT_AXES):
            raise UsageError(
                f"{where} has axes and a search; expected one of them, axes over patient splits alone, or tune_on"
            )
        replicates = len(self.seeds) * math.prod(map(len, self.axes.values()))
        self._check_count(
            f"{search.n_trials:,} trials of {several(replicates, 'split and seed' if self.axes else 'seed')} make",
            search.n_trials * replicates,
        )
        if self.where is not None:
            raise UsageError(f"{where}: where goes with axes; bound the distributions of a search instead")
        with prefixed(where):
            search.check(self.base)

    def _check_tuned(self) -> None:
        """Check a search that chooses a configuration."""
        where = f"search space {self.name!r}"
        if len(self.objectives) != 1:
            raise UsageError(f"{where}: tune_on and methods choose one configuration; expected one objective")
        methods = self.methods
        if methods[0].name and METHOD in self.axes:
            raise UsageError(f"{where}: axis {METHOD!r} is that of the search's methods; expected another name")
        try:
            _ = self.phases, self.reported_at_bounds
        except UsageError as error:
            if str(error).startswith("search space "):  # of a phase
                raise
            raise UsageError(f"{where}: {error}") from None

    def _check_axis(self, axis: str, values: Axis) -> None:
        where = f"search space {self.name!r}, axis {axis!r}"
        if not len(values):
            raise UsageError(f"{where} has no values")
        if isinstance(values, Mapping):
            if is_field(axis):
                raise UsageError(f"{where}: named variants need a name that is not a config field")
            keys = {known_key(key) for settings in values.values() for key in settings}
        else:
            known_key(axis)
            _check_twice(where, values)
            keys = {axis}
        if "seed" in keys:
            raise UsageError(f"{where}: give seeds as seeds=..., not as an axis")

    def _check_used(self, names: Iterable[str], base: Mapping[str, Any]) -> None:
        """Check that each given option is used by some run."""
        options = [name for name in dict.fromkeys(names) if name in OPTIONS]
        used = self.used_options(base) if options else set()
        unused = [name for name in options if name not in used]
        if unused:
            raise UsageError(
                f"search space {self.name!r}: no run of it uses {unused[0]!r}, an option of {owners(unused[0])}"
            )

    def used_options(self, base: Mapping[str, Any]) -> set[str]:
        """Return the options that some run uses.

        Args:
            base: values given to the base config, by name.
        """
        if self.is_tuned:
            return set().union(*(space.used_options(base) for space in (*self.phases, *self.at_bounds())))
        if self.search is None:
            changes = [settings for _, settings in self._cells()]
        else:
            changes = [self.search.settings(corner) for corner in self.search.corners()]
        usual = RunConfig()
        of_base = {kind: base.get(kind, getattr(usual, kind)) for kind in REGISTRIES}
        plugins: set[tuple[Any, ...]] = set()
        for settings in changes:
            plugins.add(tuple(settings.get(kind, name) for kind, name in of_base.items()))
        used: set[str] = set()
        for names in plugins:
            of_kind = dict(zip(REGISTRIES, names, strict=True))
            used |= used_options(of_kind.__getitem__).keys()
        return used

    @property
    def objectives(self) -> Mapping[str, Direction]:
        """Objectives of its search, by default the first headline metric of the scenario."""
        given = self.search.objectives if self.search is not None else {}
        return given or {headline(self.base.scenario)[0]: "maximize"}

    @property
    def is_tuned(self) -> bool:
        """Whether the search chooses a configuration, which is then reported."""
        search = self.search
        return search is not None and (bool(search.methods) or isinstance(search.tune_on, TuneOn))

    @property
    def is_phase(self) -> bool:
        """Whether its trials only choose a configuration, which another space reports."""
        return self.search is not None and self.search.tune_on == OF_A_PHASE

    @cached_property
    def methods(self) -> list[Method]:
        """The tuned methods; a single one without a name if the search has parameters."""
        search = search_of(self)
        return methods_of(search.methods, search.parameters)

    @cached_property
    def phases(self) -> list[SearchSpace]:
        """The spaces that choose, a study for each method; the space itself if nothing is chosen."""
        if self.search is None or not self.is_tuned:
            return [self]
        base, axes, seeds = setting_while_tuning(self.search.tune_on, self.base, self.axes, self.seeds)
        phases = []
        for method in self.methods:
            if not method.parameters:
                continue
            name = f"{self.name}{SELECTION}"
            phase = SearchSpace(
                name=f"{name}_{method.name}" if method.name else name,
                base=base.replace(**method.fixed),
                axes=axes,
                seeds=seeds,
                search=self.search.of(method),
            )
            phases.append(phase)
        return phases

    def reported(self, chosen: Mapping[str, Mapping[str, Any]], seeds: Sequence[int] | None = None) -> SearchSpace:
        """Return the space of the chosen configurations, whose runs are ordinary runs.

        Args:
            chosen: the chosen config fields by method; "" is a single method.
            seeds: seeds of its runs; by default those of this space.
        """
        seeds = self.seeds if seeds is None else seeds
        settings = {method.name: {**method.fixed, **chosen[method.like or method.name]} for method in self.methods}
        if "" in settings:
            return replace(self, base=self.base.replace(**settings[""]), search=None, seeds=seeds)
        return replace(self, axes={METHOD: settings, **self.axes}, search=None, seeds=seeds)

    def at_bounds(self) -> Iterator[SearchSpace]:
        """Yield spaces of the first seed that may be reported; together they cover all data and tasks of a choice."""
        bounds: dict[str, list[Mapping[str, Any]]] = {}
        for method in self.methods:
            if method.parameters:
                search = search_of(self).of(method)
                bounds[method.name] = [search.settings(corner) for corner in search.corners()]
            elif not method.like:
                bounds[method.name] = [{}]
        most = max(len(settings) for settings in bounds.values())
        for position in range(most):
            chosen = {name: settings[min(position, len(settings) - 1)] for name, settings in bounds.items()}
            yield self.reported(chosen, self.seeds[:1])

    @cached_property
    def reported_at_bounds(self) -> list[RunConfig]:
        """The configs of `at_bounds`, each once; none if nothing is chosen."""
        if not self.is_tuned:
            return []
        return list(dict.fromkeys(request.config for space in self.at_bounds() for request in space.requests()))

    def replicates(self) -> list[dict[str, Any]]:
        """Return the patient splits and seeds of each trial of a search, as config fields."""
        return [{**settings, "seed": seed} for seed in self.seeds for _, settings in self._cells()]

    def requests(self) -> Iterator[RunRequest]:
        """Return all requested runs in the documented order; none for a search, whose study determines them."""
        validated = self.__dict__.pop("_validated", None)  # the first caller gets the validated configs
        return self._requests() if validated is None else iter(validated)

    def _requests(self) -> Iterator[RunRequest]:
        if self.search is not None:
            return
        checked: dict[int, RunConfig] = {}  # by cell: no check of several fields depends on the seed
        for seed, (cell, (labels, settings)) in itertools.product(self.seeds, enumerate(self._cells())):
            if cell in checked:
                config: RunConfig | None = checked[cell].with_seed(seed)
            elif (config := self._config(labels, {**settings, "seed": seed})) is not None:
                checked[cell] = config
            if config is not None and (self.where is None or self._keeps(self.where, config)):
                yield RunRequest(self._resolved(config), self.name, labels, config)

    def _config(self, labels: Mapping[str, Any], settings: Mapping[str, Any]) -> RunConfig | None:
        """Return the config of a cell and seed; None if it is invalid and `where` excludes it."""
        try:
            return self.base.replace(**settings)
        except UsageError as error:
            unchecked = any_combination(self.base, settings)
            if self.where is not None and unchecked is not None and not self._keeps(self.where, unchecked):
                return None
            hint = "; where= may leave it out" if unchecked is not None else ""
            cell = f", cell {in_words(labels)[:_LONGEST_SAID]}" if labels else ""
            raise UsageError(f"search space {self.name!r}{cell}: {error}{hint}") from None

    def _keeps(self, where: Callable[[RunConfig], bool], config: RunConfig) -> bool:
        with calling(f"search space {self.name!r}: where"):
            kept = where(config)
        if type(kept).__name__ not in ("bool", "bool_"):  # Python's own and NumPy's
            raise UsageError(f"search space {self.name!r}: where returns {shown(kept)}: expected True or False")
        return bool(kept)

    def _resolved(self, config: RunConfig) -> RunConfig:
        if self.resolve is None:
            return config
        with calling(f"search space {self.name!r}: resolve"):
            resolved = self.resolve(config)
        if not isinstance(resolved, RunConfig):
            raise UsageError(f"search space {self.name!r}: resolve returns {shown(resolved)}: expected a RunConfig")
        if resolved.seed != config.seed:
            raise UsageError(
                f"search space {self.name!r}: resolve returns a config with seed {resolved.seed}; expected that of the "
                f"config it was given, {config.seed}"
            )
        return resolved

    def _keys_of_axes(self) -> list[str]:
        """Return the fields and options that the axes set."""
        keys: list[str] = []
        for axis, values in self.axes.items():
            if not isinstance(values, Mapping):
                keys.append(axis)
                continue
            for settings in values.values():
                keys.extend(settings)
        return keys

    def _cells(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        choices = []
        for axis, values in self.axes.items():
            variants = values.items() if isinstance(values, Mapping) else ((value, {axis: value}) for value in values)
            choices.append([(axis, label, settings) for label, settings in variants])
        cells = []
        for combination in itertools.product(*choices):
            labels: dict[str, Any] = {}
            settings: dict[str, Any] = {}
            for axis, label, change in combination:
                if not settings.keys().isdisjoint(change):
                    twice = sorted(settings.keys() & change.keys())
                    raise UsageError(f"search space {self.name!r}: two axes set {twice[0]!r}")
                labels[axis] = label
                settings |= change
            cells.append((labels, settings))
        return cells

    def overridden(self, settings: Mapping[str, Any]) -> SearchSpace:
        """Return the space with other values in the base config.

        Raises:
            UsageError: an unknown key, a key that an axis of this space sets, or a value out of bounds.
        """
        if not settings:
            return self
        for key in settings:
            known_key(key)
            if self.search is not None and key in fields_set(self.methods):
                raise UsageError(
                    f"search space {self.name!r} searches over {key!r} itself; change its distribution instead"
                )
            if key in self._keys_of_axes():
                raise UsageError(
                    f"search space {self.name!r} varies {key!r} itself; keep some of its values with {option('where')} "
                    "instead"
                )
            if key == "seed":
                raise UsageError(
                    f"seeds are set by the search space and by {option('seeds')}, not by {option('settings')}"
                )
        base = self.base.replace(**settings)
        self._check_used(settings, base.explicit)
        self.__dict__.pop("_validated", None)  # frees memory
        return replace(self, base=base)

    def with_encoders(self, stored: Mapping[RunConfig, str]) -> SearchSpace:
        """Return the space with stored runs in place of the configs that are encoders."""

        def settled(value: Any) -> Any:
            return stored.get(value, value) if isinstance(value, RunConfig) else value

        def all_settled(settings: Mapping[str, Any]) -> dict[str, Any]:
            return {name: settled(value) for name, value in settings.items()}

        axes: dict[str, Axis] = {}
        for axis, values in self.axes.items():
            if isinstance(values, Mapping):
                axes[axis] = {label: all_settled(settings) for label, settings in values.items()}
            else:
                axes[axis] = [settled(value) for value in values]
        return replace(self, base=self.base.replace(**all_settled(self.base.explicit)), axes=axes)


def _plain(where: str, values: Any) -> list[Any]:
    with prefixed(where):
        return as_list(values)


def _check_twice(where: str, values: Sequence[Any]) -> None:
    with prefixed(where):
        twice = has_twice(values)
    if twice:
        raise UsageError(f"{where} holds a value twice")


def search_of(space: SearchSpace) -> OptunaSearch:
    """Return the search of a space.

    Raises:
        UsageError: it has none.
    """
    if space.search is None:
        raise UsageError(f"search space {space.name!r} has no search")
    return space.search


def all_requests(spaces: Iterable[SearchSpace]) -> list[RunRequest]:
    """Return the runs of several spaces as one list: the first seed of every space before the second of any."""
    by_rank: dict[int, list[RunRequest]] = {}
    for space in spaces:
        rank_of = {seed: rank for rank, seed in enumerate(space.seeds)}
        for request in space.requests():
            by_rank.setdefault(rank_of[request.config.seed], []).append(request)
    return [request for rank in sorted(by_rank) for request in by_rank[rank]]


def load_spaces(path: Path) -> list[SearchSpace]:
    """Return the `SPACE` of a search-space file, always as a list; see `load_file`."""
    return load_file(path)[0]


def load_file(path: Path) -> tuple[list[SearchSpace], tuple[Claim, ...]]:
    """Return the `SPACE` of a search-space file, always as a list, and its `CLAIMS`, if any.

    The file is Python and is executed: run only files that you trust. It may import modules in its own folder; workers
    need not find them (see `importable`).

    Raises:
        UsageError: the file does not exist, raises, defines no SPACE, or imports a compiled module in its folder; a
            claim is invalid (see `check_claims`).
    """
    names = names_in(path)
    space = names.get("SPACE")
    spaces = [space] if isinstance(space, SearchSpace) else space
    if not isinstance(spaces, list | tuple) or not spaces or not all(isinstance(s, SearchSpace) for s in spaces):
        raise UsageError(f"{path} defines no SPACE; expected SPACE = SearchSpace(...) or a list of them")
    names_of_spaces = [space.name for space in spaces]
    twice = sorted(name for name in names_of_spaces if names_of_spaces.count(name) > 1)
    if twice:
        raise UsageError(f"{path} has two search spaces of the name {twice[0]!r}")
    if "CLAIMS" not in names:
        return list(spaces), ()
    configs = set()
    for space in spaces:
        requested = [request.config for request in space.requests()]
        for config in (*requested, *space.reported_at_bounds):
            configs.add(config.replace(seed=0))
    with prefixed(path):
        return list(spaces), check_claims(names["CLAIMS"], configs)


def names_in(path: Path) -> dict[str, Any]:
    """Execute a file of search spaces or plug-ins, with modules in its folder importable, and return its names.

    Raises:
        UsageError: the file does not exist, raises, or imports a compiled module in its folder.
    """
    try:
        is_there = path.is_file()
    except OSError as error:  # an invalid file name, or a folder without read permission
        raise UsageError(f"{shorten(path)}: cannot be read ({error.strerror or one_line(error)})") from None
    if not is_there:
        raise UsageError(f"{path}: no such search-space file")
    try:
        with importable(path.resolve().parent):
            # absolute: a worker, which runs in another folder, shows the lines of this file in tracebacks
            return runpy.run_path(os.path.abspath(path), run_name="clops_sweep_search_space")
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # user code may raise anything
        kind = f"{type(error).__name__}{_line_in(path, error)}"
        raise UsageError(f"{path} raises {kind}: {_said(error)}") from None


def shipped_spaces() -> Mapping[str, Path]:
    """Return the search-space files of the package: name without extension to path."""
    folder = Path(str(files("clops_sweep.search_spaces")))
    return {path.stem: path for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}


def shipped_space(name: str) -> Path:
    """Return the path of a search-space file of the package, as in `shipped_space("class_il_grid")`.

    Raises:
        UsageError: no search space has that name.
    """
    shipped = shipped_spaces()
    if name not in shipped:
        raise UsageError(
            f"{name!r}: no search-space file of that name comes with the package{nearest_or_all(name, shipped)}"
        )
    return shipped[name]


def _said(error: BaseException) -> str:
    """Return the message of an exception of user code on one line, shortened."""
    said = one_line(error).encode("utf-8", "backslashreplace").decode("utf-8")
    return said if len(said) <= _LONGEST_SAID else f"{said[:_LONGEST_SAID]}..."


def _line_in(path: Path, error: BaseException) -> str:
    """Return the line in the user's file, if the traceback has it."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f" in line {error.lineno}"
    lines = []
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == os.path.abspath(path):
            lines.append(traceback.tb_lineno)
        traceback = traceback.tb_next
    return f" in line {lines[-1]}" if lines else ""


def is_field(axis: str) -> bool:
    """Return whether an axis is a config field or option with values, rather than a free name with variants."""
    return axis in RunConfig.model_fields or axis in OPTIONS


def in_words(labels: Mapping[str, Any]) -> str:
    """Format labels on axes or parameters of a trial: "learning_rate 0.00012, acquisition entropy"."""
    return ", ".join(f"{name} {value_in_words(label)}" for name, label in labels.items())


def value_in_words(label: Any) -> str:
    """Format a label on an axis or a parameter of a trial."""
    return f"{label:.3g}" if isinstance(label, float) else one_line(label)
