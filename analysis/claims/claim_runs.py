"""Selection of the finished runs that a claim compares: equal patient split, seed and other settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig, names_of
from clops_sweep.experiment.spaces.claims import Claim, Contrast, Settings, Side
from clops_sweep.experiment.spaces.grid import OfAnySeed
from clops_sweep.planning.curriculum import BY_DIFFICULTY, orders_by_difficulty
from clops_sweep.store.run_store import RunStore

from ..collect import FAMILY, Edition, Experiment, Family, family_of, family_of_config
from ..selection import departures
from ..statistics import (
    MIN_UNITS,
    Fold,
    Partitions,
    Replicate,
    Split,
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

_OF_PARTITIONS = ("split_within",)
"""Fields besides the patient split that decide which people are evaluated."""

_SET_BY_CLAIMS = (
    *("strategy", "storage_order", "storage_function", "acquisition", "weight_replay", "task_order", "replay_ratio"),
    *("seed", "split_seed", "split", "weight_seed"),
)
_SHOWN = (*_SET_BY_CLAIMS[:7], "storage_fraction", "acquisition_fraction", "mc_samples", "beta_penalty")
_OF_MEMORY = ("storage_fraction", "acquisition_fraction")


@dataclass(frozen=True)
class ContrastRuns:
    """The runs of a contrast: the same pairs in every complete replicate, one per grid position.

    `missing` says why both sides are empty, and `lacking` counts the sides without runs.
    """

    contrast: Contrast
    pairs: Mapping[Replicate, tuple[Pair, ...]] = field(hash=False)
    missing: str = ""
    lacking: int = 0
    partitions: Partitions = field(default_factory=dict, hash=False)

    @property
    def units(self) -> Units:
        """The units of the differences."""
        return units_of(list(self.pairs), self.partitions, column_like(self.contrast.measure))


@dataclass(frozen=True)
class ClaimRuns:
    """The runs of a claim on one data set.

    `condition` selects them, as `--where` takes it; `departures` are the settings that differ from the paper, with
    their values.
    """

    claim: Claim
    dataset: str
    contrasts: tuple[ContrastRuns, ...]
    condition: str
    departures: Mapping[str, Any] = field(hash=False)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """All runs, without duplicates."""
        pairs = (pair for found in self.contrasts for of_replicate in found.pairs.values() for pair in of_replicate)
        return tuple(dict.fromkeys(run_id for pair in pairs for run_id in pair if run_id is not None))

    @property
    def units(self) -> int:
        """The patient splits common to all contrasts, or the seeds of a single split."""
        return min(len(found.units.members) for found in self.contrasts)


class FinishedRuns:
    """The finished runs of some experiments, looked up by config.

    Args:
        experiments: experiments of search spaces without searches: the trials of a search are chosen by the compared
            metric.
        store: the store with the runs.
    """

    def __init__(self, experiments: Sequence[Experiment], store: RunStore) -> None:
        self.store = store
        finished = [it.runs[it.runs["status"] == "finished"] for it in experiments if len(it.runs)]
        self.runs = pd.concat(finished) if finished else pd.DataFrame({"run_id": []})
        self.runs = self.runs.drop_duplicates("run_id").set_index("run_id", drop=False)
        self._editions: dict[Family, Edition] = {}
        for edition in (edition for it in experiments for edition in it.shown):
            known = self._editions.setdefault(_family(edition), edition)
            if (edition.semantics_version, edition.runs) > (known.semantics_version, known.runs):
                self._editions[_family(edition)] = edition
        kinds: dict[str, RunConfig] = {}
        for cell in (cell for it in experiments for cell in it.cells):
            kinds.setdefault(_what_makes_a_background(cell.config), cell.config)
        self._backgrounds: dict[tuple[str, str], dict[RunConfig, list[str]]] = {}
        for config in kinds.values():
            background = _background(config)
            self._backgrounds.setdefault((config.dataset, config.scenario), {})[background] = departures(background)
        self._varying = {data: _varying(list(of_data)) for data, of_data in self._backgrounds.items()}
        self._seen: dict[tuple[str, str, str], dict[str, set[Any]]] = {}
        for experiment in experiments:
            for place in np.flatnonzero(experiment.counts("finished")).tolist():
                self._see(experiment.cells[place].config)
        self._known: dict[RunConfig, Ids] = {}
        self._partitions: dict[tuple[str, ...], Partitions] = {}
        self._configs: dict[tuple[Any, ...], RunConfig] = {}
        self._replicates: dict[tuple[str, str], list[Replicate]] = {}
        for data, rows in self.runs.groupby(["dataset", "scenario"]) if len(self.runs) else ():
            found = ordered(zip(splits_of(rows), rows["seed"].tolist(), strict=True))
            self._replicates[data] = found  # type: ignore[index]

    @property
    def data(self) -> list[tuple[str, str]]:
        """Data sets and scenarios with finished runs."""
        return sorted(self._replicates)

    def of(self, claim: Claim, dataset: str) -> ClaimRuns:
        """Return the runs that decide a claim on a data set.

        If runs with several training settings or memory sizes qualify, the settings closest to the paper's with three
        units are used; never those with the clearest result.
        """
        candidates = self._candidates(claim, dataset)
        if not candidates:
            missing = f"no finished run of {claim.scenario}"
            return ClaimRuns(claim, dataset, tuple(ContrastRuns(it, {}, missing) for it in claim.contrasts), "", {})
        best, preferred = None, (-1, 0, 0, 0)
        for background, unlike in candidates:  # closest to the paper first
            if best is not None and preferred[:2] == (MIN_UNITS, 0) and -len(unlike) < preferred[2]:
                break  # the others are less preferred
            contrasts = tuple(self._contrast(contrast, background) for contrast in claim.contrasts)
            units, lacking = min(len(it.units.members) for it in contrasts), sum(it.lacking for it in contrasts)
            preference = min(units, MIN_UNITS), -lacking, -len(unlike), units
            if best is None or preference > preferred:
                best, preferred = (background, unlike, contrasts), preference
        assert best is not None
        background, unlike, contrasts = best
        values = {name: background.get(name) for name in unlike}
        return ClaimRuns(claim, dataset, contrasts, self._condition(claim, background, unlike), values)

    def _candidates(self, claim: Claim, dataset: str) -> list[tuple[RunConfig, list[str]]]:
        """Return the backgrounds that differ for a claim, with the settings in which they differ from the paper's.

        Fields that every side sets at every position, such as b and a over a grid, do not distinguish backgrounds.
        """
        data = dataset, claim.scenario
        settings = [settings for contrast in claim.contrasts for _, settings in _settings(contrast)]
        named, by_all = set().union(*settings), set(settings[0]).intersection(*settings)
        matters = [name for name in self._varying.get(data, ()) if name not in by_all]
        found: dict[tuple[Any, ...], tuple[RunConfig, list[str]]] = {}
        for background, unlike in self._backgrounds.get(data, {}).items():
            key = tuple(background.get(name) for name in matters)
            found.setdefault(key, (background, [name for name in unlike if name not in named]))
        return sorted(found.values(), key=lambda it: len(it[1]))

    def _see(self, config: RunConfig) -> None:
        """Record the field values of finished runs of a strategy; None for fields that it does not use."""
        seen = json.loads(config.identity)
        values = self._seen.setdefault((config.dataset, config.scenario, config.strategy), {})
        for name in _SET_BY_CLAIMS:
            value = seen.get(name)
            values.setdefault(name, set()).add(tuple(value) if isinstance(value, list) else value)

    def _may_be(self, background: RunConfig, settings: Settings) -> bool:
        """Return False if no finished run has the settings of a side."""
        strategy = settings.get("strategy", background.strategy)
        seen = self._seen.get((background.dataset, background.scenario, strategy))
        if seen is None:
            return False
        for name, value in settings.items():
            if name == "task_order" and value in BY_DIFFICULTY:
                if seen[name] <= {"sequential", None}:  # without requested orders, there is no order by difficulty
                    return False
            elif name in seen and value not in seen[name] and None not in seen[name]:
                return False
        return True

    def _condition(self, claim: Claim, background: RunConfig, unlike: Sequence[str]) -> str:
        """Return the condition on config fields that selects a claim's runs; empty if no side can have runs."""
        common = ["scenario", "dataset", *(name for name in unlike if name not in (*_OF_MEMORY, "mc_samples"))]
        sides: dict[str, None] = {}
        for contrast in claim.contrasts:
            of_side: dict[str, list[RunConfig]] = {}
            for side, settings in _settings(contrast):
                with suppress(UsageError):  # settings that are invalid together
                    config = self._config(background, settings)
                    of_side.setdefault(side.name, []).append(config)
            sides |= dict.fromkeys(map(_that_are, of_side.values()))
        if not sides:
            return ""
        whole = " or ".join(f"({each})" for each in sides) if len(sides) > 1 else next(iter(sides))
        parts = [*(equals(name, [background.get(name)]) for name in common), f"({whole})" if len(sides) > 1 else whole]
        return " and ".join(parts)

    def _contrast(self, contrast: Contrast, background: RunConfig) -> ContrastRuns:
        by_place = [self._sides(contrast, place, background) for place in contrast.places]
        return self.paired(contrast, by_place, background.dataset, background.scenario)

    def paired(self, contrast: Contrast, by_place: Sequence[tuple[Ids, Ids]], *data: str) -> ContrastRuns:
        """Pair the runs of both sides of a contrast by replicate, at every grid position.

        Args:
            contrast: the contrast.
            by_place: ids of ours and theirs by position; replicates with the most positions count.
            data: data set and scenario.
        """
        had: dict[Replicate, dict[int, Pair]] = {}
        for number, (ours, theirs) in enumerate(by_place):
            for replicate in ours.keys() & theirs.keys():
                if ours[replicate] != theirs[replicate]:  # a run shared by both sides carries no information
                    had.setdefault(replicate, {})[number] = ours[replicate], theirs[replicate]
        if not had:
            return _no_runs(contrast, by_place)
        most = max((frozenset(of_it) for of_it in had.values()), key=lambda places: (len(places), sorted(places)))
        kept = ordered(it for it, of_it in had.items() if most <= of_it.keys())
        try:
            check_alike([split for split, _ in kept])
        except UsageError as error:
            return ContrastRuns(contrast, {}, str(error))
        pairs = {it: tuple(had[it][n] for n in sorted(most)) for it in kept}
        first = next(run_id for pair in pairs[kept[0]] for run_id in pair if run_id is not None)
        alike: dict[str, Any] = {name: self.runs.loc[first, name] for name in _OF_PARTITIONS if name in self.runs}
        key = (*data, *map(str, alike.values()))
        if key not in self._partitions:
            of_data = (self.runs[["dataset", "scenario"]] == list(data)).all(axis=1)
            for name, value in alike.items():
                of_data &= self.runs[name].isna() if pd.isna(value) else self.runs[name] == value
            self._partitions[key] = partitions(self.runs[of_data])
        return ContrastRuns(contrast, pairs, partitions=self._partitions[key])

    def _sides(self, contrast: Contrast, place: Settings, background: RunConfig) -> tuple[Ids, Ids]:
        found = [None if it is None else self._side(it, place, background) for it in (contrast.ours, contrast.theirs)]
        nothing = dict.fromkeys(next(it for it in found if it is not None))
        ours, theirs = (nothing if it is None else it for it in found)
        return ours, theirs

    def _side(self, side: Side, place: Settings, background: RunConfig) -> Ids:
        settings = {**place, **side.settings}
        if not self._may_be(background, settings):
            return {}
        try:
            config = self._config(background, settings)
        except UsageError:  # settings that are invalid together
            return {}
        if config not in self._known:
            self._known[config] = dict(self._ids(config))
        return self._known[config]

    def _config(self, background: RunConfig, settings: Settings) -> RunConfig:
        """Return a background with the settings of a side, cached because many claims share it."""
        key = (background, *settings.items())
        if key not in self._configs:
            self._configs[key] = background.replace(**settings)
        return self._configs[key]

    def _ids(self, config: RunConfig) -> Iterator[tuple[Replicate, str]]:
        """Return the finished runs of a config, over its seeds."""
        by_split: dict[Split, OfAnySeed | None] = {}
        family = family_of_config(config)
        for split, seed in self._replicates.get((config.dataset, config.scenario), ()):
            update = _fields_of(split)
            edition = self._editions.get((*family[:4], update["split_seed"], update["split"] or "", *family[6:]))
            if edition is None:
                continue
            if split not in by_split:
                in_order = self._ordered(config.model_copy(update=update), edition)
                by_split[split] = None if in_order is None else OfAnySeed(in_order)
            of_split = by_split[split]
            if of_split is None:
                continue
            of_seed = of_split.with_seed(seed)
            run_id = of_seed.run_id(edition.data_hash, edition.semantics_version + of_seed.revision)
            if run_id in self.runs.index:
                yield (split, seed), run_id

    def _ordered(self, config: RunConfig, edition: Edition) -> RunConfig | None:
        """Return the config with its task order resolved, if it depends on an earlier run."""
        if config.task_order not in BY_DIFFICULTY:
            return config
        try:
            return orders_by_difficulty([config], self.store, lambda _: edition.data_hash)[config]
        except ValueError:  # the source run recorded no instances
            return None


def _fields_of(split: Split) -> dict[str, Any]:
    """Return the config fields of a patient split."""
    if isinstance(split, Fold):
        return {"split_seed": split.repeat, "split": f"fold:{split.part}/{split.of}"}
    return {"split_seed": split, "split": None}


def _family(edition: Edition) -> Family:
    return family_of(getattr(edition, name) for name in FAMILY)


_BACKGROUND = tuple(
    name for name in (*RunConfig.model_fields, *RunConfig(acquisition="bald_mcp").options) if name not in _SET_BY_CLAIMS
)


def _background(config: RunConfig) -> RunConfig:
    """Return a config with the paper's values in all fields of claims, except the memory size and T."""
    return RunConfig.of({name: getattr(config, name) for name in _BACKGROUND} | config.options_of("network"))


def _what_makes_a_background(config: RunConfig) -> str:
    return repr(([getattr(config, name) for name in _BACKGROUND], config.options_of("network")))


def _varying(backgrounds: Sequence[RunConfig]) -> list[str]:
    """Return the fields and options in which backgrounds differ."""
    names = names_of(backgrounds)
    return [name for name in names if len({repr(background.get(name)) for background in backgrounds}) > 1]


def _settings(contrast: Contrast) -> Iterator[tuple[Side, Settings]]:
    """Return the settings of each side at every grid position."""
    for side in (contrast.ours, contrast.theirs):
        if side is not None:
            yield from ((side, {**place, **side.settings}) for place in contrast.places)


def _no_runs(contrast: Contrast, by_place: Sequence[tuple[Ids, Ids]]) -> ContrastRuns:
    """Return a contrast without runs, with the reason."""
    sides = zip((contrast.ours, contrast.theirs), zip(*by_place, strict=True), strict=True)
    lacking = [side.name for side, of_places in sides if side is not None and not any(of_places)]
    if lacking:
        where = f" at {_places(contrast)}" if contrast.places[0] else ""
        return ContrastRuns(contrast, {}, f"no finished run of {' and '.join(lacking)}{where}", len(lacking))
    same = any(ours.keys() & theirs.keys() for ours, theirs in by_place)
    missing = "both sides are the same runs" if same else "no finished runs of the same patient split and seed"
    return ContrastRuns(contrast, {}, missing)


def _places(contrast: Contrast) -> str:
    symbols = {"storage_fraction": "b", "acquisition_fraction": "a"}
    values = {name: sorted({place[name] for place in contrast.places}) for name in contrast.places[0]}
    return ", ".join(f"{symbols[name]} = {' or '.join(f'{x:g}' for x in found)}" for name, found in values.items())


def _that_are(configs: Sequence[RunConfig]) -> str:
    """Return the condition that the configs of one side share, over the fields that the first of them uses."""
    seen = json.loads(configs[0].identity)
    names = [name for name in _SHOWN if name in seen]
    return " and ".join(equals(name, list(dict.fromkeys(config.get(name) for config in configs))) for name in names)


def equals(name: str, values: Sequence[Any]) -> str:
    """Return the condition that a field has one of some values, as `--where` takes it."""
    texts = [json.dumps(value) if isinstance(value, str | tuple) else repr(value) for value in values]
    return f"{name} == {texts[0]}" if len(texts) == 1 else f"{name} in [{', '.join(texts)}]"
