"""Selection of runs and searches from search spaces, by options. Reads no results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import UsageError, option, shown
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.limits import OF_SELECTION, check_limits
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK, SCENARIOS
from clops_sweep.experiment.spaces.claims import Claim, FileClaims
from clops_sweep.experiment.spaces.grid import RunRequest, subject_of
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch
from clops_sweep.experiment.spaces.search_space import SearchSpace, TunedSpace
from clops_sweep.experiment.spaces.space_files import load_file
from clops_sweep.experiment.spaces.where import Where


@dataclass(frozen=True)
class Selection:
    """Search spaces with options applied.

    Attributes:
        given: the search spaces as their files declare them.
        settings: overrides of the base configs, by field.
        seeds: seeds 0 .. seeds - 1 instead of the spaces' seeds.
        limit: maximum number of runs, or of trials of a search.
        where: a condition on config fields (see `Where`); not for searches.
        files: their files, if any.
        titles: a name for each file: that of its search space or, if it has several, that of the file.
        claims: claims of these files.
        reported: the spaces of the configurations that tuned spaces chose (see `planning.state.State`).
        declared: the claims and search spaces of each file.

    Raises:
        UsageError: a number is out of bounds, `settings` is not a mapping, `where` is not text, or a name is invalid
            (see `check_names`).
    """

    given: tuple[SearchSpace, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: int | None = None
    limit: int | None = None
    where: str | None = None
    files: tuple[Path, ...] = ()
    titles: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    reported: tuple[SearchSpace, ...] = ()
    declared: tuple[FileClaims, ...] = ()

    def __post_init__(self) -> None:
        check_limits(self, OF_SELECTION)
        if not isinstance(self.settings, Mapping) or not all(isinstance(name, str) for name in self.settings):
            raise UsageError(f"settings = {shown(self.settings)}: expected a mapping from field names to values")
        if self.where is not None and not (isinstance(self.where, str) and self.where.strip()):
            raise UsageError(f"where = {shown(self.where)}: expected a condition such as 'storage_fraction == 0.5'")
        phases = [phase for space in self.given if space.tuned is not None for phase in space.tuned.phases]
        check_names((*self.given, *phases))

    @classmethod
    def of_files(cls, files: Sequence[Path], **options: Any) -> Selection:
        """Return a selection from search-space files.

        Raises:
            UsageError: see `load_file`.
        """
        loaded = [load_file(file) for file in files]
        spaces = tuple(space for of_file, _ in loaded for space in of_file)
        claims = tuple(claim for _, of_file in loaded for claim in of_file)
        of_files = zip(files, (of_file for of_file, _ in loaded), strict=True)
        titles = tuple(given[0].name if len(given) == 1 else file.stem for file, given in of_files)
        by_file = []
        for given, of_file in loaded:
            by_file.append(FileClaims(of_file, frozenset(space.name for space in given)))
        return cls(spaces, files=tuple(files), titles=titles, claims=claims, declared=tuple(by_file), **options)

    @classmethod
    def of(cls, space: SearchSpace | Sequence[SearchSpace] | str | PathLike[str], **options: Any) -> Selection:
        """Return a selection from a search space, several, or the path of a file.

        Raises:
            UsageError: anything else.
        """
        if isinstance(space, str | PathLike):
            return cls.of_files([Path(space)], **options)
        spaces = (space,) if isinstance(space, SearchSpace) else space
        if not isinstance(spaces, Sequence) or not spaces or not all(isinstance(item, SearchSpace) for item in spaces):
            raise UsageError("expected a SearchSpace, a list of them, or the path of a search-space file")
        return cls(tuple(spaces), **options)

    @property
    def claims_by_file(self) -> tuple[FileClaims, ...]:
        """The claims of each file that has any, with its search spaces; without files, those that were given."""
        if len(self.declared) > 1:
            return tuple(of_file for of_file in self.declared if of_file.claims)
        names = frozenset(space.name for space in self.given)
        return (FileClaims(self.claims, names),) if self.claims else ()

    @property
    def of_each_file(self) -> list[Selection]:
        """A selection for each file, with its search spaces and claims and the same options."""
        selections = []
        for file, title, of_file in zip(self.files, self.titles, self.declared, strict=True):
            of_this_file = replace(
                self,
                given=tuple(space for space in self.given if space.name in of_file.spaces),
                reported=tuple(space for space in self.reported if space.name in of_file.spaces),
                files=(file,),
                titles=(title,),
                claims=of_file.claims,
                declared=(of_file,),
            )
            selections.append(of_this_file)
        return selections

    @property
    def is_as_declared(self) -> bool:
        """Whether it has all runs of its files, with their settings: verdicts on claims are recorded."""
        return bool(self.files) and not (self.settings or self.limit or self.where)

    @cached_property
    def spaces(self) -> list[SearchSpace]:
        """The search spaces with options applied, without those that are left out.

        A tuned space is replaced by its phases, the searches that choose, and after the choice by the reported grid.
        """
        spaces: list[SearchSpace] = []
        for space in self.undivided:
            spaces += [space] if space.tuned is None else space.tuned.phases
        return [*spaces, *self.reported]

    @cached_property
    def tuned(self) -> list[TunedSpace]:
        """The tuned spaces, with options applied."""
        return [space.tuned for space in self.undivided if space.tuned is not None]

    @cached_property
    def undivided(self) -> list[SearchSpace]:
        """The search spaces with options applied, not yet divided into phases."""
        kept = [space for space in self.given if space not in self.left_out]
        spaces = [space.overridden(self._settings_of(space, kept)) for space in kept]
        return [replace(space, seeds=range(self.seeds)) for space in spaces] if self.seeds is not None else spaces

    def _settings_of(self, space: SearchSpace, spaces: Sequence[SearchSpace]) -> Mapping[str, Any]:
        """Return the settings for a space, without options that only other spaces use."""
        if len(spaces) == 1 or not self.settings:
            return self.settings
        used = {}
        for other in spaces:
            used[other.name] = other.used_options({**other.base.explicit, **self.settings})
        of_others = set().union(*used.values()) - used[space.name]
        return {name: value for name, value in self.settings.items() if name not in of_others}

    @cached_property
    def left_out(self) -> list[SearchSpace]:
        """The search spaces whose scenario the overriding data set does not support."""
        dataset = self.settings.get("dataset")
        if not isinstance(dataset, str) or dataset not in DATASETS or "scenario" in self.settings:
            return []
        info = DATASETS[dataset]
        unfit = [
            space
            for space in self.given
            if not (info.has(space.base.scenario) or space.base.scenario in SCENARIOS.added)
        ]
        return unfit if len(unfit) < len(self.given) else []

    @cached_property
    def requests(self) -> list[RunRequest]:
        """The requested runs, in order.

        Raises:
            UsageError: no run and no search is left; or the spaces or options are invalid.
        """
        for tuned in self.tuned:
            for config in tuned.reported_at_bounds:
                _check_declared(tuned.undivided.subject, config)
        requests = all_requests(self.spaces)
        if self.where is not None and requests:
            holds = Where(self.where)
            requests = [request for request in requests if holds(request.config)]
        for request in requests:
            _check_declared(subject_of(request.space), request.config)
        if self.given and not (requests or self.searches or self.tuned):
            raise UsageError(f"{' '.join(map(str, self.files)) or 'SPACE'}: no run is left to ask for")
        return requests[: self.limit]

    @cached_property
    def searches(self) -> list[SearchSpace]:
        """The search spaces with a search instead of axes."""
        searches = [(space, space.search) for space in self.spaces if isinstance(space.search, OptunaSearch)]
        if searches and self.where:
            raise UsageError(
                f"{option('where')} keeps some of a list of runs, and {searches[0][0].subject} has none "
                "before it is run; bound its distributions, or shorten the lists of its axes and methods, instead"
            )
        for space, _ in searches:
            for config in configs_at_bounds(space):
                _check_declared(space.subject, config)
        limited = []
        for space, search in searches:
            n_trials = search.n_trials if self.limit is None else min(self.limit, search.n_trials)
            limited.append(replace(space, search=replace(search, n_trials=n_trials)))
        return limited

    @cached_property
    def encoders(self) -> list[RunConfig]:
        """The configs that are encoders of requested ones, each once: they run first, and keep their models."""
        configs = self.configs if self.given else []
        return list(dict.fromkeys(config.encoder for config in configs if isinstance(config.encoder, RunConfig)))

    @property
    def pretrained(self) -> list[tuple[RunConfig, RunConfig]]:
        """A config with its encoder, a run to come, for each choice of signals, tasks and encoder."""
        distinct: dict[tuple[Any, ...], tuple[RunConfig, RunConfig]] = {}
        for config in self.configs:
            encoder = config.encoder
            if isinstance(encoder, RunConfig):
                distinct[config.data_key.signals, config.task_order, config.tasks_key, encoder] = config, encoder
        return list(distinct.values())

    @cached_property
    def configs(self) -> list[RunConfig]:
        """The requested configs; for a search, and for what tuning may choose, those at its bounds."""
        searched = [config for space in self.searches for config in configs_at_bounds(space)]
        may_be_reported = [config for tuned in self.tuned for config in tuned.reported_at_bounds]
        return [request.config for request in self.requests] + searched + may_be_reported

    def base_of(self, config: RunConfig, fields: Sequence[str]) -> RunConfig | None:
        """Return the base config of the search space that asks for a config.

        None if several spaces may, or if its runs differ from the base in one of some fields.
        """
        spaces = self.undivided
        if len(spaces) > 1:
            names = {request.space for request in self.requests if request.config == config}
            spaces = [space for space in spaces if space.name in names]
        if len(spaces) != 1:
            return None
        (space,) = spaces
        runs = [request.config for request in self.requests if request.space == space.name]
        for name in fields:
            if any(getattr(run, name) != getattr(space.base, name) for run in [*runs, config]):
                return None
        return space.base


def all_requests(spaces: Iterable[SearchSpace]) -> list[RunRequest]:
    """Return the runs of several spaces as one list: the first seed of every space before the second of any."""
    by_rank: dict[int, list[RunRequest]] = {}
    for space in spaces:
        rank_of = {seed: rank for rank, seed in enumerate(space.seeds)}
        for request in space.requests():
            by_rank.setdefault(rank_of[request.config.seed], []).append(request)
    return [request for rank in sorted(by_rank) for request in by_rank[rank]]


def configs_at_bounds(space: SearchSpace) -> list[RunConfig]:
    """Return the configs at the bounds of a search, which cover all data of its trials; none without a search."""
    if not isinstance(space.search, OptunaSearch):
        return []
    settings = [space.search.settings(corner) for corner in space.search.corners()]
    splits = [replicate for replicate in space.replicates() if replicate["seed"] == space.seeds[0]]
    return [space.base.replace(**setting, **split) for setting in settings for split in splits]


def configs_of(space: SearchSpace) -> list[RunConfig]:
    """Return the configs of a space; for a search, those at its bounds."""
    return configs_at_bounds(space) or [request.config for request in space.requests()]


def file_name(name: str) -> str:
    """Convert a search space's name to a prefix of file names and anchors."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "space"


def check_names(spaces: Sequence[SearchSpace]) -> None:
    """Check that names and labels of search spaces can be printed and used as distinct file names.

    Raises:
        UsageError: a name or label with characters that cannot be printed, or two names for the same file.
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
    """Return the names of a search space, its axes and their labels, each with a description."""
    yield "search space name", space.name
    parameters = space.search.parameters if space.search is not None else {}
    for axis, values in (*space.axes.items(), *parameters.items()):
        yield f"{space.subject}: axis", str(axis)
        for label in values if isinstance(values, Mapping) else ():
            yield f"{space.subject}, axis {axis!r}: label", str(label)


def _check_declared(subject: str, config: RunConfig) -> None:
    """Check a config against the declaration of its data set: number of tasks, classes and leads.

    Args:
        subject: its search space as the subject of a sentence.
        config: the config.

    Raises:
        UsageError: the task order is not a permutation of the tasks, a class does not exist, or the paper's network
            would take several leads at once.
    """
    info = DATASETS[config.dataset]
    numbers = [label for group in config.task_classes or () for label in group if isinstance(label, int)]
    wrong = [number for number in numbers if info.classes is not None and not 0 <= number < info.classes]
    if wrong and config.scenario in ("class_il", "class_il_union"):
        raise UsageError(
            f"{subject}: task_classes: {config.dataset} has {info.classes} classes and no class "
            f"{shown(wrong[0])}; expected numbers from 0 to {(info.classes or 0) - 1}"
        )
    if config.network == PAPER_NETWORK and config.leads == "all" and info.simultaneous_leads > 1:
        raise UsageError(
            f"{subject}: network {PAPER_NETWORK!r} takes one lead, and instances of {config.dataset} have "
            f"{info.simultaneous_leads}; set leads = 'single', or network = 'small_cnn'"
        )
    tasks = info.task_count(config.scenario, config.task_classes, config.domain)
    if tasks is not None and isinstance(config.task_order, tuple) and len(config.task_order) != tasks:
        raise UsageError(
            f"{subject}: task_order {shown(list(config.task_order))}: {config.scenario} of "
            f"{config.dataset} has {tasks} tasks; expected a permutation of 0..{tasks - 1}"
        )
