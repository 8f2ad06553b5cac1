"""Selection of the finished runs that a claim compares: equal patient split, seed and other settings."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from clops_sweep.errors import UsageError, several
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.fields import REPLICATES
from clops_sweep.experiment.spaces.claims import Claim, Contrast, Settings, Side, as_tuples
from clops_sweep.store.run_store import RunStore

from ..as_tuned import Tuned, fields_as_tuned
from ..collect import FAMILY, Experiment, Family, editions, family_of, label_text, shared_versions
from ..editions import Preparations
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
from .conditions import CodedRuns, columns_of_conditions, condition_of, condition_of_ids, exact_condition
from .run_measures import column_like

Pair = tuple[str | None, str | None]
"""Run ids of both sides; None for the number 0."""

Ids = Mapping[Replicate, str | None]
"""Run ids of a side by replicate; None for the number 0."""

_Edition = tuple[str, int]
"""Content hash of the data, and semantics version."""

_SYMBOLS = {"storage_fraction": "b", "acquisition_fraction": "a"}

_MOST_PLACES = 3
"""Most places named in a sentence."""

_MOST_FIELDS = 3
"""Most unequal fields named in a sentence."""

_OTHER_EDITIONS = "the runs of the two sides are of other prepared data or another semantics version"

_OF_OTHER_EDITIONS = "runs of other prepared data or another semantics version"

_LACKS = {"failed": "failed", "missing": "is not finished", "absent": "has no run"}
"""What a side lacks, by the reason of `Runs.lacks`."""

_OF_PARTITIONS = ("split_within",)
"""Fields besides the patient split that decide which people are evaluated."""


@dataclass(frozen=True, eq=False)
class Runs:
    """A configuration, its finished runs, the fields that tuning chose, and the status of its other requested runs."""

    config: RunConfig
    ids: Ids
    tuned: Tuned = field(default_factory=dict)
    unfinished: Mapping[Replicate, str] = field(default_factory=dict)

    def lacks(self, replicate: Replicate) -> str:
        """Return why there is no finished run of a replicate: "failed", "missing" or, if not requested, "absent"."""
        return "" if replicate in self.ids else self.unfinished.get(replicate, "absent")


@dataclass(frozen=True)
class ContrastRuns:
    """The runs of a contrast: the same pairs in every complete replicate, one per pair of configurations.

    `missing` is the reason why there are no pairs; `configs` are their configurations. `left_out` says in words at
    which places nothing is compared, and how many replicates do not count because they lack pairs. `as_tuned` names the
    fields in which methods differ as tuned, with their values.
    """

    contrast: Contrast
    pairs: Mapping[Replicate, tuple[Pair, ...]] = field(hash=False)
    missing: str = ""
    partitions: Partitions = field(default_factory=dict, hash=False)
    configs: tuple[RunConfig, ...] = ()
    left_out: str = ""
    as_tuned: str = ""

    @property
    def units(self) -> Units:
        """The units of the differences."""
        return units_of(list(self.pairs), self.partitions, column_like(self.contrast.measure))


@dataclass(frozen=True)
class ClaimRuns:
    """The runs of a claim on one data set; `of_paper` says whether it is a claim of the paper.

    `stored` are all runs on this data set and scenario, with their config fields and options; None without any.
    """

    claim: Claim
    dataset: str
    contrasts: tuple[ContrastRuns, ...]
    of_paper: bool = False
    stored: CodedRuns | None = field(default=None, hash=False, repr=False, compare=False)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """All runs, without duplicates."""
        run_ids: dict[str, None] = {}
        for runs in self.contrasts:
            of_replicates = chain.from_iterable(runs.pairs.values())
            for run_id in chain.from_iterable(of_replicates):
                if run_id is not None:
                    run_ids[run_id] = None
        return tuple(run_ids)

    @property
    def departures(self) -> dict[str, Any]:
        """The settings that no side names and that differ from the paper, with their values; of its claims alone."""
        if not self.of_paper:
            return {}
        configs = list(chain.from_iterable(runs.configs for runs in self.contrasts))
        named = set().union(*(_named(runs.contrast) for runs in self.contrasts))
        unlike = dict.fromkeys(chain.from_iterable(map(fields_unlike_paper, configs)))
        settings: dict[str, Any] = {}
        for name in unlike:
            if name not in named:
                values = tuple(dict.fromkeys(config.get(name) for config in configs))
                settings[name] = values[0] if len(values) == 1 else values
        return settings

    @cached_property
    def condition(self) -> str:
        """The condition that selects these runs and no others of the store, as `--where` takes it.

        Without runs, it is the condition that runs of the claim would meet.
        """
        run_ids = self.run_ids
        of_sides: dict[str, None] = {}
        for runs in self.contrasts:
            for number, side in enumerate(runs.contrast.sides):
                if side is None:
                    continue
                places = list(runs.contrast.places[0])
                condition = condition_of([{**side.settings, **place} for place in runs.contrast.places])
                if run_ids:
                    of_side = {pair[number] for pairs in runs.pairs.values() for pair in pairs}
                    ids = [run_id for run_id in of_side if run_id is not None]
                    condition = ""
                    if self.stored is not None:
                        condition = exact_condition(ids, self.stored, list(side.settings), places)
                    if ids and not condition:
                        return condition_of_ids(run_ids)
                if condition:
                    of_sides[f"({condition})"] = None
        conditions = [f"({' or '.join(of_sides)})"]
        if self.dataset:  # empty without runs
            conditions.insert(0, f"dataset == {json.dumps(self.dataset)}")
        if self.claim.scenario:
            conditions.insert(0, f"scenario == {json.dumps(self.claim.scenario)}")
        return " and ".join(conditions)


@dataclass(frozen=True, eq=False)
class _Cell:
    """A configuration while its runs are collected: their ids, the fields that tuning chose, and unfinished runs."""

    config: RunConfig
    ids: dict[Replicate, str] = field(default_factory=dict)
    tuned: dict[str, frozenset[str]] = field(default_factory=dict)
    unfinished: dict[Replicate, str] = field(default_factory=dict)


class FinishedRuns:
    """The finished runs of some experiments, looked up by their settings.

    Args:
        experiments: experiments of search spaces without searches: the trials of a search are chosen by the compared
            metric.
        store: the store with the runs.
    """

    def __init__(self, experiments: Sequence[Experiment], store: RunStore) -> None:
        self.store = store
        finished = [experiment.runs[experiment.runs["status"] == "finished"] for experiment in experiments]
        self.runs = pd.concat(finished) if finished else pd.DataFrame({"run_id": []})
        self.runs = self.runs.drop_duplicates("run_id").set_index("run_id", drop=False)
        self._newest_first = editions(self.runs) if len(self.runs) else {}
        self._preparations = Preparations(self.runs)
        self._editions: dict[str | None, _Edition] = {}
        self._families: dict[str | None, Family] = {}
        if len(self.runs):
            versions = shared_versions(self.runs)
            rows = self.runs[["run_id", "data_hash", *FAMILY]].to_dict("records")
            for row, version in zip(rows, versions, strict=True):
                run_id = str(row["run_id"])
                self._editions[run_id] = str(row["data_hash"]), int(version)
                self._families[run_id] = family_of({str(name): value for name, value in row.items()})
        self._partitions: dict[tuple[str, ...], Partitions] = {}
        self._by_value: dict[tuple[str, str, str], dict[Any, set[int]]] = {}
        self._cells: dict[tuple[str, str], dict[Hashable, _Cell]] = {}
        for experiment, runs in zip(experiments, finished, strict=True):
            of_cells = []
            for cell in experiment.cells:
                config = cell.asked
                of_data = self._cells.setdefault((config.dataset, config.scenario), {})
                of_config = of_data.setdefault(_fields(config, config.options), _Cell(config))
                known = of_config.tuned.get(experiment.name, frozenset())
                of_config.tuned[experiment.name] = known | cell.tuned
                of_cells.append(of_config)
            columns = (runs["cell"].tolist(), splits_of(runs), runs["seed"].tolist(), runs["run_id"].tolist())
            for number, split, seed, run_id in zip(*columns, strict=True):
                of_cells[number].ids[split, seed] = run_id
            others = experiment.runs[experiment.runs["status"] != "finished"]
            columns = (others["cell"].tolist(), splits_of(others), others["seed"].tolist(), others["status"].tolist())
            for number, split, seed, status in zip(*columns, strict=True):
                of_cells[number].unfinished[split, seed] = status
        for of_data in self._cells.values():
            self._add_stated_weight_seeds(of_data)

    @staticmethod
    def _add_stated_weight_seeds(of_data: Mapping[Hashable, _Cell]) -> None:
        """Count runs whose `weight_seed` equals their seed, the default, as runs of the config without it."""
        for cell in of_data.values():
            default = cell.config.model_copy(update={"weight_seed": None})
            if cell.config == default:
                continue
            without = of_data.get(_fields(default, cell.config.options))
            if without is not None:
                for (split, seed), run_id in cell.ids.items():
                    if seed == cell.config.weight_seed:
                        without.ids[split, seed] = run_id

    def about(self, claims: Sequence[Claim], *, of_paper: bool = False) -> dict[str, list[ClaimRuns]]:
        """Return the runs of each claim, by data set, for every scenario of the runs.

        Args:
            claims: the claims.
            of_paper: whether they are those of the paper, which are about equal settings; claims of a file compare its
                methods as tuned (`..as_tuned`).
        """
        by_dataset: dict[str, list[ClaimRuns]] = {}
        for claim in claims:
            data = [
                (dataset, scenario)
                for dataset, scenario in sorted(self._cells)
                if claim.scenario in ("", scenario) and claim.dataset in (None, dataset)
            ]
            named = [pair for pair in data if _may_name(claim, *pair)]
            for dataset, scenario in named or data:  # without its data, a claim is listed as one without runs
                contrasts = tuple(
                    self._contrast(contrast, dataset, scenario, as_tuned=not of_paper) for contrast in claim.contrasts
                )
                stored = self._stored.get((dataset, scenario))
                runs = ClaimRuns(replace(claim, scenario=scenario), dataset, contrasts, of_paper, stored)
                by_dataset.setdefault(dataset, []).append(runs)
        return dict(sorted(by_dataset.items()))

    @cached_property
    def _stored(self) -> Mapping[tuple[str, str], CodedRuns]:
        """All runs of the store by data set and scenario, also those that are not compared."""
        there = set(self.store.columns())
        names = [name for name in columns_of_conditions() if name in there]
        table = self.store.table("runs", columns=names)
        if not len(table):
            present = [name for name in columns_of_conditions() if name in self.runs]
            table = pa.Table.from_pandas(self.runs[present], preserve_index=False)
        if not len(table):
            return {}
        coded = {}
        for dataset, scenario in self._cells:
            is_here = pc.and_(pc.equal(table["dataset"], dataset), pc.equal(table["scenario"], scenario))
            of_data = table.filter(is_here)
            coded[dataset, scenario] = CodedRuns(dict(zip(of_data.column_names, of_data.columns, strict=True)))
        return coded

    def _having(
        self, dataset: str, scenario: str, cells: Sequence[Runs], side: Side | None, place: Settings
    ) -> list[Runs] | None:
        """Return the configurations of a side at a place; None for the number 0.

        An option that a configuration does not use counts as another value.
        """
        if side is None:
            return None
        chosen = set(range(len(cells)))
        for name, value in {**side.settings, **place}.items():
            key = (dataset, scenario, name)
            if key not in self._by_value:
                self._by_value[key] = _positions_by_value(cells, name)
            chosen &= self._by_value[key].get(as_tuples(value), set())
        return [cells[position] for position in sorted(chosen)]

    def _contrast(self, contrast: Contrast, dataset: str, scenario: str, *, as_tuned: bool) -> ContrastRuns:
        """Pair the runs of both sides by replicate; replicates with the most pairs count."""
        cells = []
        for cell in self._cells[dataset, scenario].values():
            cells.append(Runs(cell.config, cell.ids, cell.tuned if as_tuned else {}, cell.unfinished))
        named = _named(contrast)
        sides_at_places = []
        pairs: list[tuple[Runs, Runs]] = []
        place_of_pair: list[int] = []
        for position, place in enumerate(contrast.places):
            ours, theirs = (self._having(dataset, scenario, cells, side, place) for side in contrast.sides)
            sides_at_places.append((ours, theirs))
            pairs += _pairs(ours, theirs, named)
            place_of_pair += [position] * (len(pairs) - len(place_of_pair))
        by_replicate: dict[Replicate, dict[int, Pair]] = {}
        others = set[Replicate]()  # of pairs of runs on data of other content, or of another semantics version
        for number, (one, other) in enumerate(pairs):
            for replicate in one.ids.keys() & other.ids.keys():
                pair = one.ids[replicate], other.ids[replicate]
                if len({self._editions[run_id] for run_id in pair if run_id is not None}) > 1:
                    others.add(replicate)
                elif pair[0] != pair[1]:  # a run shared by both sides carries no information
                    by_replicate.setdefault(replicate, {})[number] = pair
        others |= by_replicate.keys()
        by_replicate = self._of_one_edition(by_replicate)
        others -= by_replicate.keys()
        if not by_replicate and others:
            return ContrastRuns(contrast, {}, _OTHER_EDITIONS)
        if not by_replicate:
            return ContrastRuns(contrast, {}, _missing(contrast, list(zip(*sides_at_places, strict=True)), pairs))
        numbers = max((sorted(numbered) for numbered in by_replicate.values()), key=lambda some: (len(some), some))
        complete = [replicate for replicate, numbered in by_replicate.items() if numbered.keys() >= set(numbers)]
        kept = ordered(complete)
        try:
            check_alike([split for split, _ in kept])
        except UsageError as error:
            return ContrastRuns(contrast, {}, str(error))
        paired: dict[Replicate, tuple[Pair, ...]] = {}
        for replicate in kept:
            paired[replicate] = tuple(by_replicate[replicate][number] for number in numbers)
        in_first = chain.from_iterable(paired[kept[0]])
        a_run = next(run_id for run_id in in_first if run_id is not None)
        compared_pairs = [pairs[number] for number in numbers]
        configs = dict.fromkeys(runs.config for runs in chain.from_iterable(compared_pairs))
        compared = {place_of_pair[number] for number in numbers}
        absent = [place for position, place in enumerate(contrast.places) if position not in compared]
        unlike = 0  # configurations without a pair of finished runs, at places where others have one
        for number, (one, other) in enumerate(pairs):
            has_pair = number in numbers or bool(one.ids.keys() & other.ids.keys())
            unlike += not has_pair and place_of_pair[number] in compared
        left_out = [
            _left_out(contrast, absent, len(by_replicate) - len(kept), len(by_replicate), len(others)),
            f"{unlike} of {several(len(pairs), 'configuration')} left out, without a pair of finished runs"
            * bool(unlike),
            _without_counterpart(contrast, compared_pairs, by_replicate),
            self._other_people(paired),
        ]
        return ContrastRuns(
            contrast,
            paired,
            "",
            self._partitions_like(a_run, dataset, scenario),
            tuple(configs),
            "; ".join(filter(None, left_out)),
            _as_tuned(contrast, compared_pairs),
        )

    def _of_one_edition(self, by_replicate: Mapping[Replicate, dict[int, Pair]]) -> dict[Replicate, dict[int, Pair]]:
        """Return the pairs on one edition of the data: the newest one with a pair, of the newest semantics version.

        All patient splits are of one preparation of the data set.
        Search spaces may show different editions, each with the seeds that it requests. A mean must not mix them.
        """
        with_pairs: dict[Family, set[_Edition]] = {}
        for pairs in by_replicate.values():
            for run_id in chain.from_iterable(pairs.values()):
                if run_id is not None:
                    with_pairs.setdefault(self._families[run_id], set()).add(self._editions[run_id])
        hashes = [data_hash for of_family in with_pairs.values() for data_hash, _ in of_family]
        dataset = next((family.data.dataset for family in with_pairs), "")
        prepared = self._preparations.choose(dataset, hashes)
        for family, of_family in with_pairs.items():
            with_pairs[family] = {edition for edition in of_family if self._preparations.fits(edition[0], prepared)}
        versions = [version for of_family in with_pairs.values() for _, version in of_family]
        shown: set[tuple[Family, _Edition]] = set()
        for family, of_family in with_pairs.items():
            for edition in self._newest_first[family]:
                if edition in of_family and edition[1] == max(versions):
                    shown.add((family, edition))
                    break
        kept: dict[Replicate, dict[int, Pair]] = {}
        for replicate, pairs in by_replicate.items():
            for number, pair in pairs.items():
                of_runs = {(self._families[run_id], self._editions[run_id]) for run_id in pair if run_id is not None}
                if of_runs <= shown:
                    kept.setdefault(replicate, {})[number] = pair
        return kept

    @cached_property
    def _people(self) -> Mapping[str | None, str]:
        """The hash of the people in training, validation and test of each run that records it."""
        if "split_hash" not in self.runs:
            return {}
        recorded = self.runs["split_hash"].dropna()
        return dict(zip(recorded.index.tolist(), recorded.tolist(), strict=True))

    def _other_people(self, paired: Mapping[Replicate, Sequence[Pair]]) -> str:
        """Return in words in how many pairs the sides have different people, as with another `stratify`."""
        unlike = 0
        for pairs in paired.values():
            are_unlike = False
            for ours, theirs in pairs:
                people = self._people.get(ours), self._people.get(theirs)
                are_unlike |= None not in people and people[0] != people[1]
            unlike += are_unlike
        if not unlike:
            return ""
        return (
            f"in {unlike} of {several(len(paired), 'pair')} of split and seed, the sides have different people in "
            "training, validation or test"
        )

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


def _may_name(claim: Claim, dataset: str, scenario: str) -> bool:
    """Return whether no side of a claim names another data set or scenario."""
    for contrast in claim.contrasts:
        for side in contrast.sides:
            settings = side.settings if side is not None else {}
            names_other_data = settings.get("dataset", dataset) != dataset
            names_other_scenario = settings.get("scenario", scenario) != scenario
            if names_other_data or names_other_scenario:
                return False
    return True


def _positions_by_value(cells: Sequence[Runs], name: str) -> dict[Any, set[int]]:
    """Return the positions of the configurations that have each value of a field or option."""
    positions: dict[Any, set[int]] = {}
    for position, runs in enumerate(cells):
        positions.setdefault(as_tuples(runs.config.get(name)), set()).add(position)
    return positions


def _pairs(ours: list[Runs] | None, theirs: list[Runs] | None, named: set[str]) -> Iterator[tuple[Runs, Runs]]:
    """Yield the configurations that agree in every field that no side names and both use; None is the number 0.

    Methods of a tuned space may also differ in the fields that the search of either chose (`..as_tuned`).
    """
    if ours is None or theirs is None:
        for runs in ours or theirs or ():
            nothing = Runs(runs.config, dict.fromkeys(runs.ids))
            yield (runs, nothing) if theirs is None else (nothing, runs)
        return
    of_theirs = _by_tuned(theirs)
    for one_tuned, some in _by_tuned(ours).items():
        for other_tuned, others in of_theirs.items():
            free = named | fields_as_tuned(dict(one_tuned), dict(other_tuned))
            yield from _alike(some, others, free)


def _by_tuned(runs: Sequence[Runs]) -> dict[frozenset[tuple[str, frozenset[str]]], list[Runs]]:
    """Return configurations by the fields that tuning chose."""
    groups: dict[frozenset[tuple[str, frozenset[str]]], list[Runs]] = {}
    for of_config in runs:
        groups.setdefault(frozenset(of_config.tuned.items()), []).append(of_config)
    return groups


def _alike(ours: Sequence[Runs], theirs: Sequence[Runs], free: Collection[str]) -> Iterator[tuple[Runs, Runs]]:
    """Yield the configurations that agree in every field that both use, except those that are free."""
    alike: dict[Hashable, list[Runs]] = {}
    for other in theirs:
        alike.setdefault(_fields(other.config, (), free), []).append(other)
    for one in ours:
        for other in alike.get(_fields(one.config, (), free), ()):
            both_use = (one.config.options.keys() & other.config.options.keys()) - set(free)
            if all(one.config.options[name] == other.config.options[name] for name in both_use):
                yield one, other


def _fields(config: RunConfig, options: Iterable[str], named: Collection[str] = ()) -> Hashable:
    """Return the config fields and some options, without those that are named and those that replicates differ in."""
    names = (name for name in (*RunConfig.model_fields, *options) if name not in named and name not in REPLICATES)
    return tuple((name, repr(config.get(name))) for name in names)


def _named(contrast: Contrast) -> set[str]:
    """Return the settings that a side or a place names."""
    sides = [side.settings for side in contrast.sides if side is not None]
    return set(chain.from_iterable((*sides, *contrast.places)))


def _missing(
    contrast: Contrast, of_sides: Sequence[Sequence[list[Runs] | None]], pairs: Sequence[tuple[Runs, Runs]]
) -> str:
    """Return why no runs are paired."""
    lacking = []
    for side, at_places in zip(contrast.sides, of_sides, strict=True):
        runs = chain.from_iterable(at_place or () for at_place in at_places)
        if side is not None and not any(of_config.ids for of_config in runs):
            lacking.append(side.name)
    if lacking:
        return f"no finished run of {' and '.join(lacking)}{_places(contrast)}"
    if not pairs:
        return _difference_in_words(contrast, of_sides)
    same = any(one.ids.keys() & other.ids.keys() for one, other in pairs)
    return "both sides are the same runs" if same else "no finished runs of the same patient split and seed"


def _difference_in_words(contrast: Contrast, of_sides: Sequence[Sequence[list[Runs] | None]]) -> str:
    """Name the fields in which the most similar finished runs of the two sides differ, with their values."""
    named = _named(contrast)
    unlike: list[dict[str, tuple[Any, Any]]] = []
    for ours, theirs in zip(*of_sides, strict=True):
        for one in ours or ():
            for other in theirs or ():
                if one.ids and other.ids:
                    free = named | fields_as_tuned(one.tuned, other.tuned)
                    unlike.append(_unlike(one.config, other.config, free))
    fields = min(unlike, key=len, default={})
    our_name, their_name = (side.name if side is not None else "0" for side in contrast.sides)
    said = []
    for name, (ours, theirs) in list(fields.items())[:_MOST_FIELDS]:
        said.append(f"{our_name} has {name} {label_text(ours)}, {their_name} {label_text(theirs)}")
    if len(fields) > _MOST_FIELDS:
        said.append(several(len(fields) - _MOST_FIELDS, "further field"))
    sentence = "the runs of the two sides differ in fields that neither names"
    return f"{sentence}: {'; '.join(said)}" if said else sentence


def _as_tuned(contrast: Contrast, pairs: Iterable[tuple[Runs, Runs]]) -> str:
    """Name the fields in which compared configurations differ as tuned, with the values of each side.

    A tuned option of one method alone has the value of its side.
    """
    named = _named(contrast)
    values: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for one, other in pairs:
        for name, both in _unlike(one.config, other.config, named).items():
            of_field = values.setdefault(name, ({}, {}))
            for of_side, value in zip(of_field, both, strict=True):
                of_side[label_text(value)] = None
        for name in sorted(fields_as_tuned(one.tuned, other.tuned) - named):
            using = [name in runs.config.options for runs in (one, other)]
            if sum(using) == 1:
                side = using.index(True)
                values.setdefault(name, ({}, {}))[side][label_text((one, other)[side].config.options[name])] = None
    names = [side.name if side is not None else "0" for side in contrast.sides]
    said = []
    for field_name, of_field in values.items():
        texts = [f"{' or '.join(texts)} of {side}" for texts, side in zip(of_field, names, strict=True) if texts]
        said.append(f"{field_name} {', '.join(texts)}")
    return "; ".join(said)


def _unlike(ours: RunConfig, theirs: RunConfig, named: Collection[str]) -> dict[str, tuple[Any, Any]]:
    """Return the values of the fields that keep two configurations from being a pair; see `_pairs`."""
    names = [name for name in RunConfig.model_fields if name not in REPLICATES]
    names += sorted(ours.options.keys() & theirs.options.keys())
    values: dict[str, tuple[Any, Any]] = {}
    for name in names:
        both = ours.get(name), theirs.get(name)
        if name not in named and repr(both[0]) != repr(both[1]):
            values[name] = both
    return values


def _left_out(
    contrast: Contrast, absent: Sequence[Settings], incomplete: int, replicates: int, other_editions: int
) -> str:
    """Return in words what a contrast does not compare; empty if it compares all.

    Args:
        contrast: the contrast.
        absent: its places without a pair.
        incomplete: number of replicates that lack pairs that others have.
        replicates: number of replicates with a pair.
        other_editions: number of replicates whose pairs are all of editions that are not compared.
    """
    said = []
    if len(absent) > _MOST_PLACES:
        count = len(contrast.places)
        said.append(f"compared at {count - len(absent)} of {count} places")
    elif absent:
        places = []
        for place in absent:
            settings = [f"{_SYMBOLS.get(name, name)} = {label_text(value)}" for name, value in place.items()]
            places.append(", ".join(settings))
        said.append(f"no runs to compare at {' or '.join(places)}")
    if incomplete:
        lack = "it lacks" if incomplete == 1 else "they lack"
        said.append(f"{incomplete} of {replicates} pairs of split and seed left out: {lack} runs that others have")
    if other_editions:
        said.append(f"{several(other_editions, 'pair')} of split and seed left out: {_OF_OTHER_EDITIONS}")
    return "; ".join(said)


def _without_counterpart(contrast: Contrast, pairs: Iterable[tuple[Runs, Runs]], paired: Collection[Replicate]) -> str:
    """Return in words how many pairs of split and seed do not count, since a side has no finished run there.

    The runs that fail may be those on difficult splits, so a mean over the others is no mean over all.

    Args:
        contrast: the contrast.
        pairs: its configurations.
        paired: the replicates with a pair of finished runs, which are counted elsewhere.
    """
    every = set[Replicate]()
    reasons: dict[tuple[str, str], set[Replicate]] = {}
    for of_sides in pairs:
        for runs in of_sides:
            every |= {*runs.ids, *runs.unfinished}
    for side_number, side in enumerate(contrast.sides):
        if side is None:
            continue
        for of_sides in pairs:
            for replicate in every.difference(paired):
                if reason := of_sides[side_number].lacks(replicate):
                    reasons.setdefault((side.name, reason), set()).add(replicate)
    if not reasons:
        return ""
    said = []
    for (name, reason), replicates in reasons.items():
        said.append(f"{name} {_LACKS[reason]} in {len(replicates)}")
    left_out = set().union(*reasons.values())
    return f"{len(left_out)} of {len(every)} pairs of split and seed left out: {', '.join(said)}"


def _places(contrast: Contrast) -> str:
    texts = []
    for name in contrast.places[0]:
        values = sorted({place[name] for place in contrast.places})
        texts.append(f"{_SYMBOLS.get(name, name)} = {' or '.join(f'{value:g}' for value in values)}")
    return f" at {', '.join(texts)}" if texts else ""
