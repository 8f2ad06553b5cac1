"""Selection of the finished runs that a claim compares: equal patient split, seed and other settings."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import REPLICATES
from clops_sweep.experiment.spaces.claims import Claim, Contrast, Settings, has
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..selection import fields_unlike_paper
from ..statistics import (
    Partitions,
    Replicate,
    Units,
    check_alike,
    ordered,
    partitions,
    splits_of,
    units_of,
)
from .run_measures import column_like

Pair = tuple[str | None, str | None]
"""Run ids of both sides; None for the number 0."""

Ids = Mapping[Replicate, str | None]
"""Run ids of a side by replicate; None for the number 0."""

Runs = tuple[RunConfig, Ids]
"""A configuration and its finished runs."""

_OF_PARTITIONS = ("split_within",)
"""Fields besides the patient split that decide which people are evaluated."""


@dataclass(frozen=True)
class ContrastRuns:
    """The runs of a contrast: the same pairs in every complete replicate, one per pair of configurations.

    `missing` is the reason why there are no pairs; `configs` are their configurations.
    """

    contrast: Contrast
    pairs: Mapping[Replicate, tuple[Pair, ...]] = field(hash=False)
    missing: str = ""
    partitions: Partitions = field(default_factory=dict, hash=False)
    configs: tuple[RunConfig, ...] = ()

    @property
    def units(self) -> Units:
        """The units of the differences."""
        return units_of(list(self.pairs), self.partitions, column_like(self.contrast.measure))


@dataclass(frozen=True)
class ClaimRuns:
    """The runs of a claim on one data set; `of_paper` says whether it is a claim of the paper."""

    claim: Claim
    dataset: str
    contrasts: tuple[ContrastRuns, ...]
    of_paper: bool = False

    @property
    def run_ids(self) -> tuple[str, ...]:
        """All runs, without duplicates."""
        pairs = (pair for found in self.contrasts for of_replicate in found.pairs.values() for pair in of_replicate)
        return tuple(dict.fromkeys(run_id for pair in pairs for run_id in pair if run_id is not None))

    @property
    def departures(self) -> dict[str, Any]:
        """The settings that no side names and that differ from the paper, with their values; of its claims alone."""
        configs = [config for found in self.contrasts for config in found.configs] if self.of_paper else []
        named = set().union(*(_named(found.contrast) for found in self.contrasts))
        names = dict.fromkeys(name for config in configs for name in fields_unlike_paper(config) if name not in named)
        values = {name: tuple(dict.fromkeys(config.get(name) for config in configs)) for name in names}
        return {name: of_it[0] if len(of_it) == 1 else of_it for name, of_it in values.items()}

    @property
    def condition(self) -> str:
        """The condition that selects the runs, as `--where` takes it."""
        sides = [
            _condition([{**side.settings, **place} for place in found.contrast.places])
            for found in self.contrasts
            for side in found.contrast.sides
            if side is not None
        ]
        data = f"scenario == {json.dumps(self.claim.scenario)} and dataset == {json.dumps(self.dataset)}"
        return f"{data} and ({' or '.join(f'({side})' for side in dict.fromkeys(sides))})"


class FinishedRuns:
    """The finished runs of some experiments, looked up by their settings.

    Args:
        experiments: experiments of search spaces without searches: the trials of a search are chosen by the compared
            metric.
        store: the store with the runs.
    """

    def __init__(self, experiments: Sequence[Experiment], store: RunStore) -> None:
        self.store = store
        finished = [it.runs[it.runs["status"] == "finished"] for it in experiments]
        self.runs = pd.concat(finished) if finished else pd.DataFrame({"run_id": []})
        self.runs = self.runs.drop_duplicates("run_id").set_index("run_id", drop=False)
        self._partitions: dict[tuple[str, ...], Partitions] = {}
        self._cells: dict[tuple[str, str], dict[Hashable, tuple[RunConfig, dict[Replicate, str]]]] = {}
        for experiment, runs in zip(experiments, finished, strict=True):
            ids = []
            for config in (cell.written for cell in experiment.cells):
                of_data = self._cells.setdefault((config.dataset, config.scenario), {})
                ids.append(of_data.setdefault(_fields(config, (*config.options,)), (config, {}))[1])
            columns = (runs["cell"].tolist(), splits_of(runs), runs["seed"].tolist(), runs["run_id"].tolist())
            for cell, split, seed, run_id in zip(*columns, strict=True):
                ids[cell][split, seed] = run_id
        for of_data in self._cells.values():
            for config, known in of_data.values():
                default = config.model_copy(update={"weight_seed": None})
                if config != default and (same := of_data.get(_fields(default, (*config.options,)))):
                    same[1].update({it: run_id for it, run_id in known.items() if it[1] == config.weight_seed})

    def about(self, claims: Sequence[Claim], *, of_paper: bool = False) -> dict[str, list[ClaimRuns]]:
        """Return the runs of each claim, by data set, for every scenario of the runs."""
        found: dict[str, list[ClaimRuns]] = {}
        for claim in claims:
            for dataset, scenario in sorted(self._cells):
                if claim.scenario in ("", scenario) and claim.dataset in (None, dataset):
                    contrasts = tuple(self._contrast(it, dataset, scenario) for it in claim.contrasts)
                    runs = ClaimRuns(replace(claim, scenario=scenario), dataset, contrasts, of_paper)
                    found.setdefault(dataset, []).append(runs)
        return dict(sorted(found.items()))

    def _contrast(self, contrast: Contrast, dataset: str, scenario: str) -> ContrastRuns:
        """Pair the runs of both sides by replicate; replicates with the most pairs count."""
        cells = list(self._cells[dataset, scenario].values())
        found = [
            tuple(None if side is None else _having(cells, {**side.settings, **place}) for side in contrast.sides)
            for place in contrast.places
        ]
        pairs = [pair for ours, theirs in found for pair in _pairs(ours, theirs, _named(contrast))]
        had: dict[Replicate, dict[int, Pair]] = {}
        for number, ((_, ours), (_, theirs)) in enumerate(pairs):
            for replicate in ours.keys() & theirs.keys():
                if ours[replicate] != theirs[replicate]:  # a run shared by both sides carries no information
                    had.setdefault(replicate, {})[number] = ours[replicate], theirs[replicate]
        if not had:
            return ContrastRuns(contrast, {}, _missing(contrast, list(zip(*found, strict=True)), pairs))
        most = max((frozenset(of_it) for of_it in had.values()), key=lambda numbers: (len(numbers), sorted(numbers)))
        kept = ordered(it for it, of_it in had.items() if most <= of_it.keys())
        try:
            check_alike([split for split, _ in kept])
        except UsageError as error:
            return ContrastRuns(contrast, {}, str(error))
        paired = {it: tuple(had[it][number] for number in sorted(most)) for it in kept}
        first = next(run_id for pair in paired[kept[0]] for run_id in pair if run_id is not None)
        configs = tuple(dict.fromkeys(config for number in sorted(most) for config, _ in pairs[number]))
        return ContrastRuns(contrast, paired, "", self._partitions_like(first, dataset, scenario), configs)

    def _partitions_like(self, run_id: str, *data: str) -> Partitions:
        """Return the partitions of the data of a run."""
        alike: dict[str, Any] = {name: self.runs.loc[run_id, name] for name in _OF_PARTITIONS if name in self.runs}
        key = (*data, *map(str, alike.values()))
        if key not in self._partitions:
            dataset, scenario = data
            of_data = (self.runs["dataset"] == dataset) & (self.runs["scenario"] == scenario)
            for name, value in alike.items():
                of_data &= self.runs[name].isna() if pd.isna(value) else self.runs[name] == value
            self._partitions[key] = partitions(self.runs[of_data])
        return self._partitions[key]


def _having(cells: Iterable[Runs], settings: Settings) -> list[Runs]:
    return [it for it in cells if has(it[0], settings)]


def _pairs(ours: list[Runs] | None, theirs: list[Runs] | None, named: set[str]) -> Iterator[tuple[Runs, Runs]]:
    """Yield the configurations that agree in every field that no side names and both use; None is the number 0."""
    if ours is None or theirs is None:
        for config, ids in ours or theirs or ():
            nothing = config, dict.fromkeys(ids)
            yield ((config, ids), nothing) if theirs is None else (nothing, (config, ids))
        return
    alike: dict[Hashable, list[Runs]] = {}
    for runs in theirs:
        alike.setdefault(_fields(runs[0], (), named), []).append(runs)
    for one in ours:
        for other in alike.get(_fields(one[0], (), named), ()):
            both = (one[0].options.keys() & other[0].options.keys()) - named
            if all(one[0].options[name] == other[0].options[name] for name in both):
                yield one, other


def _fields(config: RunConfig, options: Iterable[str], named: Collection[str] = ()) -> Hashable:
    """Return the config fields and some options, without those that are named and those that replicates differ in."""
    names = (name for name in (*RunConfig.model_fields, *options) if name not in named and name not in REPLICATES)
    return tuple((name, repr(config.get(name))) for name in names)


def _named(contrast: Contrast) -> set[str]:
    """Return the settings that a side or a place names."""
    sides = [side.settings for side in contrast.sides if side is not None]
    return {name for settings in (*sides, *contrast.places) for name in settings}


def _missing(
    contrast: Contrast, found: Sequence[Sequence[list[Runs] | None]], pairs: Sequence[tuple[Runs, Runs]]
) -> str:
    """Return why no runs are paired."""
    of_sides = zip(contrast.sides, found, strict=True)
    lacking = [side.name for side, cells in of_sides if side and not any(ids for of in cells for _, ids in of or ())]
    if lacking:
        return f"no finished run of {' and '.join(lacking)}{_places(contrast)}"
    if not pairs:
        return "the runs of the two sides differ in other fields too"
    same = any(ours.keys() & theirs.keys() for (_, ours), (_, theirs) in pairs)
    return "both sides are the same runs" if same else "no finished runs of the same patient split and seed"


def _places(contrast: Contrast) -> str:
    symbols = {"storage_fraction": "b", "acquisition_fraction": "a"}
    values = {name: sorted({place[name] for place in contrast.places}) for name in contrast.places[0]}
    texts = (f"{symbols.get(name, name)} = {' or '.join(f'{x:g}' for x in of_it)}" for name, of_it in values.items())
    return f" at {', '.join(texts)}" if values else ""


def _condition(settings: Sequence[Settings]) -> str:
    """Return the condition that fields have one of the values in some settings; None cannot be asked for."""
    parts = []
    for name in settings[0]:
        values = dict.fromkeys(
            json.dumps(it[name]) if isinstance(it[name], str | tuple) else repr(it[name]) for it in settings
        )
        known = [it for it in values if it != "None"]
        if len(known) == 1:
            parts.append(f"{name} == {known[0]}")
        elif known:
            parts.append(f"{name} in [{', '.join(known)}]")
    return " and ".join(parts)
