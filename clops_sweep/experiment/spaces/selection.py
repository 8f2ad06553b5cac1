"""What is selected of search spaces: their runs and searches, as options change them. Plain data; reads no results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError, one_line, shown
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.limits import LIMIT, SEEDS, check_limits
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK, SCENARIOS
from clops_sweep.experiment.spaces.claims import Claim
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch
from clops_sweep.experiment.spaces.search_space import (
    RunRequest,
    SearchSpace,
    all_requests,
    load_file,
    load_spaces,
    names_in,
)
from clops_sweep.experiment.spaces.where import Where

_Loaded = TypeVar("_Loaded")


@dataclass(frozen=True)
class Selection:
    """Search spaces, and what options make of them.

    Attributes:
        given: the search spaces as they are written.
        settings: overrides the base configs, by field.
        seeds: seeds 0 .. seeds - 1 instead of the spaces'.
        limit: only so many runs; of a search, only so many trials.
        where: a condition on config fields (see `Where`); not for searches.
        files: where they come from, if from files.
        claims: what these files claim of their runs.
        reported: the spaces of the configurations that tuned spaces have chosen (`search.choosing.with_reported`).

    Raises:
        UsageError: a number is out of bounds, `settings` is no mapping, `where` is no text; a name or label cannot be
            printed, or names of search spaces cannot be those of files beside each other (see `check_names`).
    """

    given: tuple[SearchSpace, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    limit: int | None = None
    where: str | None = None
    files: tuple[Path, ...] = ()
    claims: tuple[Claim, ...] = ()
    reported: tuple[SearchSpace, ...] = ()

    def __post_init__(self) -> None:
        check_limits(self, {"seeds": SEEDS, "limit": LIMIT})
        if not isinstance(self.settings, Mapping) or not all(isinstance(name, str) for name in self.settings):
            raise UsageError(f"settings = {shown(self.settings)}: expected a mapping from field names to values")
        if self.where is not None and not (isinstance(self.where, str) and self.where.strip()):
            raise UsageError(f"where = {shown(self.where)}: expected a condition such as 'storage_fraction == 0.5'")
        phases = [phase for space in self.given if space.is_tuned for phase in space.phases()]
        check_names((*self.given, *phases))

    @classmethod
    def of_files(cls, files: Sequence[Path], **options: Any) -> Selection:
        """What search-space files define.

        Raises:
            UsageError: see `load_spaces`.
        """
        loaded = [_executed(file, load_file) for file in files]
        spaces = tuple(space for of_file, _ in loaded for space in of_file)
        claims = tuple(claim for _, of_file in loaded for claim in of_file)
        return cls(spaces, files=tuple(files), claims=claims, **options)

    @classmethod
    def of(cls, space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str], **options: Any) -> Selection:
        """A search space, several, or what the file of that path defines.

        Raises:
            UsageError: it is not one of them.
        """
        if isinstance(space, str | PathLike):
            return cls.of_files([Path(space)], **options)
        spaces = (space,) if isinstance(space, SearchSpace) else space
        if not isinstance(spaces, Sequence) or not spaces or not all(isinstance(it, SearchSpace) for it in spaces):
            raise UsageError("expected a SearchSpace, a list of them, or the path of a search-space file")
        return cls(tuple(spaces), **options)

    @cached_property
    def spaces(self) -> list[SearchSpace]:
        """The search spaces, as the options change them, but for those that are left out.

        Of a space that is tuned, these are its phases: those that choose, and, once they have, what is reported.
        """
        return [*(phase for space in self.written for phase in space.phases()), *self.reported]

    @cached_property
    def tuned(self) -> list[SearchSpace]:
        """The spaces that choose a configuration, as the options change them."""
        return [space for space in self.written if space.is_tuned]

    @cached_property
    def written(self) -> list[SearchSpace]:
        """The search spaces, as the options change them, before they are divided into phases."""
        kept = [space for space in self.given if space not in self.left_out]
        spaces = [space.overridden(self._settings_of(space, kept)) for space in kept]
        return [space.with_seeds(self.seeds) for space in spaces] if self.seeds is not None else spaces

    def _settings_of(self, space: SearchSpace, spaces: Sequence[SearchSpace]) -> Mapping[str, Any]:
        """The settings without the options that other spaces use and this one does not."""
        if len(spaces) == 1:
            return self.settings
        used = {it.name: it.used_options({**it.base.explicit, **self.settings}) for it in spaces}
        of_others = set().union(*used.values()) - used[space.name]
        return {name: value for name, value in self.settings.items() if name not in of_others}

    @cached_property
    def left_out(self) -> list[SearchSpace]:
        """The search spaces whose scenario the data set given for all of them does not have."""
        dataset = self.settings.get("dataset")
        if not isinstance(dataset, str) or dataset not in DATASETS or "scenario" in self.settings:
            return []
        info = DATASETS[dataset]
        fits = [info.has(space.base.scenario) or space.base.scenario in SCENARIOS.added for space in self.given]
        unfit = [space for space, fit in zip(self.given, fits, strict=True) if not fit]
        return unfit if len(unfit) < len(self.given) else []

    @cached_property
    def requests(self) -> list[RunRequest]:
        """The runs asked for, in order.

        Raises:
            UsageError: no run and no search is left; or the spaces or options are invalid.
        """
        for space in self.tuned:
            for config in space.reported_at_bounds():
                _check_declared(space.name, config)
        requests = all_requests(self.spaces)
        if self.where is not None and requests:
            holds = Where(self.where)
            requests = [request for request in requests if holds(request.config)]
        fields = ("dataset", "scenario", "task_order", "task_classes", "network", "leads")
        different = {(it.space, *(getattr(it.config, name) for name in fields)): it for it in requests}
        for request in different.values():
            _check_declared(request.space, request.config)
        if not requests and not self.searches and not self.tuned:
            raise UsageError(f"{' '.join(map(str, self.files)) or 'SPACE'}: no run is left to ask for")
        return requests[: self.limit]

    @cached_property
    def searches(self) -> list[SearchSpace]:
        """The search spaces with a search instead of axes."""
        found = [(space, space.search) for space in self.spaces if isinstance(space.search, OptunaSearch)]
        if found and self.where:
            raise UsageError(
                f"--where keeps some of a list of runs, and search space {found[0][0].name!r} has none before it is "
                "run; bound its distributions instead"
            )
        for space, _ in found:
            for config in configs_at_bounds(space):
                _check_declared(space.name, config)
        trials = [search.n_trials if self.limit is None else min(self.limit, search.n_trials) for _, search in found]
        return [
            replace(space, search=replace(search, n_trials=n)) for (space, search), n in zip(found, trials, strict=True)
        ]

    @cached_property
    def configs(self) -> list[RunConfig]:
        """The configs asked for; of a search, and of what it may choose, those at its bounds."""
        searched = [config for space in self.searches for config in configs_at_bounds(space)]
        may_be_reported = [config for space in self.tuned for config in space.reported_at_bounds()]
        return [request.config for request in self.requests] + searched + may_be_reported


def configs_at_bounds(space: SearchSpace) -> list[RunConfig]:
    """The configs at the bounds of a search, which need all the data that its trials may need; none without one."""
    if not isinstance(space.search, OptunaSearch):
        return []
    settings = [space.search.settings(corner) for corner in space.search.corners()]
    splits = [it for it in space.replicates() if it["seed"] == space.seeds[0]]
    return [space.base.replace(**setting, **split) for setting in settings for split in splits]


def spaces_of(file: Path) -> list[SearchSpace]:
    """What a search-space file defines, see `load_spaces`.

    Raises:
        UsageError: it defines none, or ends in any other way than by an interrupt.
    """
    return _executed(file, load_spaces)


def load_plugins(file: Path) -> None:
    """Executes a file for the data sets and plug-ins that it declares; it need not define a search space.

    Raises:
        UsageError: there is no such file, or it ends in any other way than by an interrupt.
    """
    _executed(file, names_in)


def _executed(file: Path, load: Callable[[Path], _Loaded]) -> _Loaded:
    try:
        return load(file)
    except OSError as error:  # a name that no file can have, or a file that may not be read
        raise UsageError(f"{shorten(file)}: cannot be read ({error.strerror or one_line(error)})") from None
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:  # one that the file has made up, which is no Exception
        raise UsageError(f"{file} raises {type(error).__name__}: {one_line(error)}") from None


def file_name(name: str) -> str:
    """A search space's name as the beginning of file names and anchors."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "space"


def check_names(spaces: Sequence[SearchSpace]) -> None:
    """Sees to it that search spaces can be written about: on a terminal, in a database, and in files beside each other.

    Raises:
        UsageError: a name or label with characters that cannot be printed, or two names that would be one file.
    """
    names: dict[str, str] = {}
    for space in spaces:
        for what, text in _texts(space):
            if not text.isprintable():
                raise UsageError(f"{what} {shown(text)}: expected characters that can be printed")
        key = file_name(space.name).casefold()
        if key in names:
            raise UsageError(
                f"search spaces {shown(names[key])} and {shown(space.name)}: their files would have one name; expected "
                "names that differ in letters or digits, and not in case alone"
            )
        names[key] = space.name


def _texts(space: SearchSpace) -> Iterator[tuple[str, str]]:
    """What a search space calls itself, its axes and the labels on them, each with what it is."""
    yield "search space name", space.name
    parameters = space.search.parameters if space.search is not None else {}
    for axis, values in (*space.axes.items(), *parameters.items()):
        yield f"search space {space.name!r}: axis", str(axis)
        for label in values if isinstance(values, Mapping) else ():
            yield f"search space {space.name!r}, axis {axis!r}: label", str(label)


def _check_declared(space: str, config: RunConfig) -> None:
    """Check what is known of a data set before it is prepared: how many tasks, classes and leads it has.

    Raises:
        UsageError: the task order is no permutation of the tasks, there is no such class, or the paper's network is to
            take several leads at once.
    """
    info = DATASETS[config.dataset]
    numbers = [it for group in config.task_classes or () for it in group if isinstance(it, int)]
    wrong = [it for it in numbers if info.classes is not None and not 0 <= it < info.classes]
    if wrong and config.scenario in ("class_il", "class_il_union"):
        raise UsageError(
            f"search space {space!r}: task_classes: {config.dataset} has {info.classes} classes and no class "
            f"{shown(wrong[0])}; expected numbers from 0 to {(info.classes or 0) - 1}"
        )
    if config.network == PAPER_NETWORK and config.leads == "all" and info.simultaneous_leads > 1:
        raise UsageError(
            f"search space {space!r}: network {PAPER_NETWORK!r} takes one lead, and instances of {config.dataset} have "
            f"{info.simultaneous_leads}; set leads = 'single', or network = 'resnet1d_wang'"
        )
    tasks = info.task_count(config.scenario, config.task_classes, config.domain)
    if tasks is not None and isinstance(config.task_order, tuple) and len(config.task_order) != tasks:
        raise UsageError(
            f"search space {space!r}: task_order {shown(list(config.task_order))}: {config.scenario} of "
            f"{config.dataset} has {tasks} tasks; expected a permutation of 0..{tasks - 1}"
        )
