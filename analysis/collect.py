"""Match the runs that search spaces request with the store's results."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from clops_sweep.data.catalog import DataKey
from clops_sweep.errors import UsageError, nearest, shown
from clops_sweep.experiment.columns import CONFIG, FIELDS, RECORDED
from clops_sweep.experiment.config import FACTS, RunConfig
from clops_sweep.experiment.fields import OF_DATA, REPLICATES, SEEDS, SPLIT_AXES, data_key_of_row, is_missing
from clops_sweep.experiment.identity import REVISED_BY, network_revision_of
from clops_sweep.experiment.metrics import MEASURES, METRICS, PAPER, metric_named
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import STRATEGIES, has_metric, headline
from clops_sweep.experiment.spaces.axes import number_in_words
from clops_sweep.experiment.spaces.grid import RunRequest
from clops_sweep.experiment.spaces.search_space import SELECTION, SearchSpace

from .editions import Edition, Preparations, Present
from .statistics import Counted, Fold, Partitions, Replicate, Split, ordered, partitions, splits_of

_PLACES = {"cell", *REPLICATES}


@dataclass(frozen=True)
class Cell:
    """One configuration of an experiment, without its seed: a cell of a heatmap, a row of a table.

    `asked` is the config as the search space has it: its task order may be a curriculum that `config` resolves.
    `tuned` are the fields that tuning chose, if a tuned space reports the configuration.
    """

    labels: Mapping[str, Any] = field(hash=False)
    config: RunConfig
    asked: RunConfig
    tuned: frozenset[str] = frozenset()

    def label(self, axis: str) -> str:
        """Return the cell's label on an axis as text."""
        return label_text(self.labels[axis])


@dataclass(frozen=True)
class Experiment:
    """One search space and its runs.

    Args:
        name: name of the search space.
        axes: labels of each axis, in the order of the file; without axes that repeat cells.
        cells: every requested configuration.
        runs: one row per requested run: `cell` (position in `cells`), `split_seed`, `seed`, `run_id`, `status`
            (finished, failed or missing) and, if it exists, the columns of its row in the store.
        shown: the editions that the runs were taken from, one per data set and scenario.
        left_aside: editions with runs of this space that are not shown.
        replaced: number of missing runs that exist on another edition of the data.
        chosen: metrics to use instead of the headline metrics of its scenarios.
        is_tuning: whether its runs only chose configurations, which other runs report; it competes with no other.
        is_search: whether its cells are the trials of a search.
    """

    name: str
    axes: Mapping[str, tuple[Any, ...]] = field(hash=False)
    cells: tuple[Cell, ...]
    runs: pd.DataFrame = field(hash=False)
    shown: tuple[Edition, ...] = ()
    left_aside: tuple[Edition, ...] = ()
    replaced: int = 0
    chosen: tuple[str, ...] = ()
    is_tuning: bool = False
    is_search: bool = False

    @cached_property
    def headline(self) -> tuple[str, ...]:
        """The headline metrics; the first one ranks the runs.

        They are those that its scenarios declare, unless others are chosen. Runs of earlier versions may lack them; the
        paper's metrics are used then.
        """
        if self.chosen:
            return self.chosen
        scenarios = dict.fromkeys(cell.config.scenario for cell in self.cells)
        declared = tuple(dict.fromkeys(name for scenario in scenarios for name in headline(scenario)))
        known = any(np.isfinite(self.by_replicate(name)).any() for name in declared)
        return declared if known or not self.counts("finished").any() else PAPER

    @property
    def measure(self) -> str:
        """The measure of curves and R: that of the first headline metric computed from R, else AUC."""
        for name in self.headline:
            measure = metric_named(name).measure
            if measure is not None:
                return measure
        return "auc"

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """The numeric columns of `runs` that are measured and not all missing, headline metrics first."""
        given = {*CONFIG, *OPTIONS, *RECORDED}
        there = [column for column in self.numeric_columns if column not in given and self.runs[column].notna().any()]
        first = [f"test_{column}" for column in self.headline] if self.on_test else self.headline
        return tuple(sorted(there, key=lambda column: first.index(column) if column in first else len(there)))

    def judged_by(self, metrics: Sequence[str]) -> Experiment:
        """Return the experiment with other headline metrics; unchanged if none is given.

        Raises:
            UsageError: no run has one of the metrics.
        """
        for name in metrics:
            there = self.measured if self.counts("finished").any() else self._possible
            if name not in there and not (self.on_test and f"test_{name}" in there):
                scenarios = " and ".join(sorted({cell.config.scenario for cell in self.cells}))
                longer = (*MEASURES, "average", "test_")
                short = [column for column in there if column in MEASURES or not column.startswith(longer)]
                tuned = self.name.rpartition(SELECTION)[0] if self.is_tuning else ""
                runs = f"tuning runs of {tuned!r}" if tuned else f"runs of {self.name!r}"
                raise UsageError(
                    f"metric {shown(name)}: not known{nearest(name, dict.fromkeys(there))}; the {runs} "
                    f"({scenarios}) have {', '.join(short)}; of other measures as in accuracy_bwt, on the test split "
                    "as in test_accuracy"
                )
        return replace(self, chosen=tuple(dict.fromkeys(metrics)))

    @property
    def _possible(self) -> tuple[str, ...]:
        """Return the metrics that runs of its scenarios may have."""
        scenarios = {cell.config.scenario for cell in self.cells}
        possible = []
        for column in METRICS:
            if any(has_metric(scenario, column) for scenario in scenarios):
                possible.append(column)
        return (*possible, *(f"test_{column}" for column in possible))

    @property
    def number_axes(self) -> tuple[str, ...]:
        """The numeric axes: at least two labels, all of them numbers."""
        names = {*SEEDS, *SPLIT_AXES}
        return tuple(axis for axis, labels in self.axes.items() if axis not in names and _is_scale(labels))

    @cached_property
    def replicates(self) -> tuple[Replicate, ...]:
        """The pairs (patient split, seed) that repeat the cells, ascending."""
        return tuple(ordered(self.replicates_of(self.runs)))

    @cached_property
    def data_hashes(self) -> Mapping[int, Sequence[str]]:
        """The content hashes of the data of each cell's runs, each once; without cells whose runs record none."""
        hashes: dict[int, list[str]] = {}
        if "data_hash" in self.runs:
            recorded = self.runs[["cell", "data_hash"]].dropna().drop_duplicates()
            for cell, content in zip(recorded["cell"], recorded["data_hash"], strict=True):
                hashes.setdefault(int(cell), []).append(str(content))
        return hashes

    @cached_property
    def distinct(self) -> Mapping[Split, Split]:
        """The first patient split with the same people in each part, for each patient split.

        Split seeds of data whose split is given have the same people. A split that no run records is its own.
        """
        people: dict[Split, set[tuple[str, str, str]]] = {}
        if "split_hash" in self.runs:
            recorded = self.runs.dropna(subset=["split_hash"])
            columns = splits_of(recorded), recorded["cell"], recorded["split_hash"]
            for split, cell, content in zip(*columns, strict=True):
                config = self.cells[cell].config
                people.setdefault(split, set()).add((config.dataset, config.scenario, content))
        first: dict[frozenset[tuple[str, str, str]], Split] = {}
        same: dict[Split, Split] = {}
        for split in dict.fromkeys(split for split, _ in self.replicates):
            same[split] = first.setdefault(frozenset(people[split]), split) if split in people else split
        return same

    @property
    def repetitions(self) -> tuple[Replicate, ...]:
        """The replicates with splits of the same people as one split: what means and deviations are over."""
        return tuple(dict.fromkeys((self.distinct[split], seed) for split, seed in self.replicates))

    @staticmethod
    def replicates_of(runs: pd.DataFrame) -> list[Replicate]:
        """Return the pair (patient split, seed) of each row of `runs`."""
        return list(zip(splits_of(runs), runs["seed"].tolist(), strict=True))

    def partitions(self, cell: int) -> Partitions:
        """Return the partition of the patients of each patient split of a cell's data, where the runs record it."""
        config = self.cells[cell].config
        key = config.dataset, config.scenario
        if key not in self._partitions:
            alike = [(cell.config.dataset, cell.config.scenario) == key for cell in self.cells]
            self._partitions[key] = partitions(self.runs[np.array(alike)[self.runs["cell"].to_numpy(dtype=int)]])
        return self._partitions[key]

    def by_replicate(self, column: str) -> npt.NDArray[np.float64]:
        """Return a column of the finished runs as an array (cells, replicates); NaN if missing or not finite.

        Where `on_test`, "auc" is the column `test_auc`, and so on for other metrics: the data have no validation set.
        The array is shared between calls and read-only.
        """
        if column not in self._matrices:
            self._matrices[column] = self._matrix(self.stored_column(column))
        return self._matrices[column]

    def stored_column(self, column: str) -> str:
        """Return the column of `runs` that has the values of `by_replicate`: "test_auc" for "auc" where `on_test`."""
        of_test = self.on_test and f"test_{column}" in self.runs
        return f"test_{column}" if of_test else column

    def by_split(self, column: str) -> npt.NDArray[np.float64]:
        """Return `by_replicate` as (cells, patient splits), each the mean over its seeds; with one split, its seeds.

        So a mean over the splits gives each split one weight, however many seeds it has. Splits of the same people are
        one split (`distinct`).
        """
        values = self.by_replicate(column)
        if len(self.distinct) < 2:
            return values
        units = self._units(self.replicates)
        columns = {unit: position for position, unit in enumerate(dict.fromkeys(units))}
        is_of_unit = np.zeros((len(units), len(columns)))
        for replicate, unit in enumerate(units):
            is_of_unit[replicate, columns[unit]] = 1
        is_finite = np.isfinite(values)
        sums = np.where(is_finite, values, 0) @ is_of_unit
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / (is_finite @ is_of_unit))

    def _units(self, replicates: Iterable[Replicate]) -> list[str]:
        """Return the unit of each replicate: its patient split; the seed, if all splits have the same people."""
        if len(set(self.distinct.values())) > 1:
            return [str(self.distinct[split]) for split, _ in replicates]
        return [f"seed {seed}" for _, seed in replicates]

    def in_units(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Add the column `unit` to rows of a table: the patient split of the run; with one split, the run.

        Figures average over the runs of a unit first, so that each split has one weight. If all splits have the same
        people, the unit is the seed.
        """
        if len(self.distinct) < 2:
            return rows.assign(unit=rows["run_id"])
        units = dict(zip(self.runs["run_id"].tolist(), self._units(self.replicates_of(self.runs)), strict=True))
        return rows.assign(unit=rows["run_id"].map(units))

    @property
    def counted(self) -> Counted:
        """What `in_units` and `by_split` average first and count as n: patient splits, folds, or seeds of one split."""
        if len(set(self.distinct.values())) < 2:
            return "seeds"
        return "folds" if all(isinstance(split, Fold) for split in self.distinct) else "patient splits"

    @cached_property
    def on_test(self) -> bool:
        """Whether metrics are those of the test set: some runs are finished, and none has a validation set."""
        finished = self.runs[self.runs["status"] == "finished"]
        return {"auc", "test_auc"} <= {*finished} and bool(
            finished["auc"].isna().all() & finished["test_auc"].notna().any()
        )

    @property
    def numeric_columns(self) -> tuple[str, ...]:
        """The numeric columns of `runs`, such as metrics, seconds and counters of a strategy."""
        return tuple(
            str(name)
            for name, kind in self.runs.dtypes.items()
            if is_numeric_dtype(kind) and not is_bool_dtype(kind) and name not in _PLACES
        )

    def run_ids(self, cell: int, status: str = "finished") -> tuple[str, ...]:
        """Return the ids of a cell's runs with one status, by split seed and seed."""
        return self._run_ids.get((cell, status), ())

    def runs_of(self, cell: int, status: str = "finished") -> pd.DataFrame:
        """Return the rows of `runs` of one cell and status."""
        return self.runs.iloc[self._positions.get((cell, status), [])]

    def counts(self, status: str | None = None) -> npt.NDArray[np.int64]:
        """Return the number of runs of each cell, requested or with a status."""
        cells = self.runs["cell"].to_numpy(dtype=int)
        if status is not None:
            cells = cells[(self.runs["status"] == status).to_numpy(dtype=bool)]
        return np.bincount(cells, minlength=len(self.cells)).astype(np.int64)

    def _matrix(self, column: str) -> npt.NDArray[np.float64]:
        values = np.full((len(self.cells), len(self.replicates)), np.nan)
        if column in self.runs:
            finished, places = self._finished
            values[places] = self.runs.iloc[finished][column].to_numpy(dtype=float)
            values[~np.isfinite(values)] = np.nan
        values.flags.writeable = False
        return values

    @cached_property
    def _finished(self) -> tuple[npt.NDArray[np.intp], tuple[npt.NDArray[np.int64], list[int]]]:
        """Rows of the finished runs, and their indices among cells and replicates."""
        rows = np.flatnonzero(self.runs["status"] == "finished")
        runs, position = self.runs.iloc[rows], {replicate: index for index, replicate in enumerate(self.replicates)}
        columns = [position[replicate] for replicate in self.replicates_of(runs)]
        return rows, (runs["cell"].to_numpy(dtype=np.int64), columns)

    @cached_property
    def _matrices(self) -> dict[str, npt.NDArray[np.float64]]:
        return {}

    @cached_property
    def _partitions(self) -> dict[tuple[str, str], Partitions]:
        return {}

    @cached_property
    def _positions(self) -> dict[tuple[int, str], list[int]]:
        positions: dict[tuple[int, str], list[int]] = {}
        for position, key in enumerate(zip(self.runs["cell"].tolist(), self.runs["status"].tolist(), strict=True)):
            positions.setdefault(key, []).append(position)
        return positions

    @cached_property
    def _run_ids(self) -> dict[tuple[int, str], tuple[str, ...]]:
        ids: dict[tuple[int, str], list[str]] = {}
        ordered = self.runs.sort_values(list(REPLICATES))
        columns = [ordered[name].tolist() for name in ("cell", "status", "run_id")]
        for cell, status, run_id in zip(*columns, strict=True):
            ids.setdefault((cell, status), []).append(run_id)
        return {key: tuple(value) for key, value in ids.items()}


def collect(
    spaces: Sequence[SearchSpace],
    runs: pd.DataFrame,
    data_hashes: Collection[str] = (),
    keep_axes: Iterable[str] = (),
    present: Present = lambda dataset: None,
) -> list[Experiment]:
    """Match the runs that search spaces request with the rows of the store's `runs` table, by run id.

    A run id depends on the data's hash and the semantics version, so every edition in the store is tried. If there are
    several, a search space shows one: of each data set the preparation on this machine, or else that of the latest run,
    and of this the highest semantics version. Other runs count as missing: editions are never mixed.

    Args:
        spaces: the search spaces.
        runs: the store's table `runs`.
        data_hashes: data hashes or prepared hashes, or prefixes of them, of the editions to show instead.
        keep_axes: axes to keep that would otherwise count as replicates.
        present: see `Preparations`.

    Raises:
        UsageError: a hash matches no edition in the store, or several.
    """
    wanted = whole_hashes(runs, data_hashes)
    rows = runs.set_index("run_id", drop=False) if len(runs) else runs
    there = frozenset(rows.index.tolist())  # iterating over an index of texts takes nine times as long
    known, preparations = editions(rows), Preparations(rows, present)
    kept = set(keep_axes)
    experiments = []
    for space in spaces:
        axes = {axis: tuple(values) for axis, values in space.axes.items() if axis not in SPLIT_AXES or axis in kept}
        requests = list(space.requests())
        run_ids, shown, left_aside, replaced = _choose_editions(requests, there, known, wanted, preparations)
        cells, frame = frame_of_runs(axes, requests, run_ids, rows)
        cells = tuple(replace(cell, tuned=space.tuned_fields_at(cell.labels)) for cell in cells)
        experiments.append(Experiment(space.name, axes, cells, frame, tuple(shown), tuple(left_aside), replaced))
    return experiments


def requested_ids(spaces: Iterable[SearchSpace], runs: pd.DataFrame) -> set[str]:
    """Return the ids of the runs that search spaces request, in every edition that the table `runs` holds."""
    known = editions(runs)
    configs = [request.config for space in spaces for request in space.requests()]
    run_ids: set[str] = set()
    for config in configs:
        for data_hash, version in known.get(family_of_config(config), ()):
            run_ids.add(config.run_id(data_hash, version + config.revisions))
    return run_ids


def headline_of(experiments: Iterable[Experiment]) -> tuple[str, ...]:
    """Return the headline metrics of experiments that are shown together."""
    return tuple(dict.fromkeys(name for experiment in experiments for name in experiment.headline))


def label_text(label: Any) -> str:
    """Return an axis label for display: short numbers, text unchanged, anything else as JSON."""
    if isinstance(label, str):
        return label
    if isinstance(label, bool) or label is None:
        return str(label)
    if isinstance(label, int | float):
        return number_in_words(label, 6)
    return json.dumps(label)


def frame_of_runs(
    axes: Mapping[str, tuple[Any, ...]], requests: list[RunRequest], run_ids: list[str], rows: pd.DataFrame
) -> tuple[tuple[Cell, ...], pd.DataFrame]:
    """Return the cells of requested runs, and the `runs` of an `Experiment`.

    Args:
        axes: the axes that distinguish cells.
        requests: the requested runs.
        run_ids: their ids.
        rows: the store's table `runs`, by run id.
    """
    cells: dict[tuple[str, ...], tuple[int, Cell]] = {}
    positions = []
    for request in requests:
        labels = {axis: request.labels[axis] for axis in axes}
        key = tuple(map(repr, labels.values()))
        position, _ = cells.setdefault(key, (len(cells), Cell(labels, request.config, request.asked)))
        positions.append(position)
    replicates = {}
    for name in REPLICATES:
        values = [getattr(request.config, name) for request in requests]
        replicates[name] = pd.Series(values, dtype=np.int64 if FIELDS[name] is int else object)
    asked = pd.DataFrame({"cell": np.array(positions, dtype=np.int64), **replicates, "run_id": run_ids})
    results = rows.drop(columns=[*REPLICATES, "run_id"], errors="ignore")
    frame = asked.join(results, on="run_id") if len(rows) else asked.assign(status=None)
    frame["status"] = frame["status"].astype(object).where(frame["status"].notna(), "missing")
    return tuple(cell for _, cell in cells.values()), frame


class Family(NamedTuple):
    """Runs that share prepared data: those with one semantics version share a data hash."""

    scenario: str
    data: DataKey

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """Return a key to sort families by: data set and scenario first, and None before values."""
        values = tuple((False, 0) if value is None else (True, value) for value in self.data)
        return self.data.dataset, self.scenario, values


FAMILY = ("scenario", *OF_DATA)
"""The columns that `family_of` reads."""


def family_of(row: Mapping[str, Any]) -> Family:
    """Return the family of a row of `runs`."""
    return Family(str(row["scenario"]), data_key_of_row(row))


def family_of_config(config: RunConfig) -> Family:
    """Return the family of the runs of a config."""
    return Family(config.scenario, config.data_key)


def _choose_editions(
    requests: Sequence[RunRequest],
    there: Collection[str],
    known: Mapping[Family, Sequence[tuple[str, int]]],
    wanted: Collection[str],
    preparations: Preparations,
) -> tuple[list[str], list[Edition], list[Edition], int]:
    """Return the run ids in the chosen editions, these editions, other editions with requested runs, and `replaced`.

    Args:
        requests: the requested runs.
        there: ids of the runs in the store.
        known: the `editions` in the store.
        wanted: data hashes of editions to show instead of the newest.
        preparations: the preparations in the store.
    """
    members: dict[Family, list[int]] = {}
    for position, request in enumerate(requests):
        members.setdefault(family_of_config(request.config), []).append(position)
    by_family: dict[Family, list[tuple[Edition, list[str]]]] = {}
    for family in sorted(members, key=lambda family: family.sort_key):
        by_family[family] = []
        for data_hash, version in known.get(family, ()):
            configs = [requests[i].config for i in members[family]]
            ids = []
            for config in configs:
                ids.append(config.run_id(data_hash, version + config.revisions))
            present = sum(run_id in there for run_id in ids)
            # Skip editions without a run of this space.
            if present:
                edition = Edition(*family, data_hash, version, present, preparations.of(data_hash))
                by_family[family].append((edition, ids))
    is_shown = _is_of_shown_preparation(by_family, wanted, preparations)
    newest: defaultdict[tuple[str, str], int] = defaultdict(int)
    for family, present_editions in by_family.items():
        study = family.data.dataset, family.scenario
        versions = [edition.semantics_version for edition, _ in present_editions if is_shown(edition)]
        newest[study] = max([newest[study], *versions])
    run_ids = [""] * len(requests)
    shown: list[Edition] = []
    left_aside: list[Edition] = []
    replaced = 0
    for family, present_editions in by_family.items():
        study = family.data.dataset, family.scenario
        fitting = [item for item in present_editions if is_shown(item[0])]
        asked_for = [item for item in fitting if item[0].data_hash in wanted]
        # One semantics version for all patient splits: a mean must not mix two versions.
        eligible = asked_for or [item for item in fitting if item[0].semantics_version == newest[study]]
        for edition, ids in eligible[:1]:
            shown.append(edition)
            for i, run_id in zip(members[family], ids, strict=True):
                run_ids[i] = run_id
        left_aside += [edition for edition, _ in present_editions if edition not in shown]
        of_other_data = []
        for edition, ids in present_editions:
            same_data = [chosen for chosen, _ in eligible[:1] if chosen.data_hash == edition.data_hash]
            if not same_data and (eligible or not is_shown(edition)):
                of_other_data.append(ids)
        for i, elsewhere in zip(members[family], zip(*of_other_data, strict=True), strict=False):
            replaced += run_ids[i] not in there and any(run_id in there for run_id in elsewhere)
    return run_ids, shown, left_aside, replaced


def _is_of_shown_preparation(
    by_family: Mapping[Family, Sequence[tuple[Edition, list[str]]]],
    wanted: Collection[str],
    preparations: Preparations,
) -> Callable[[Edition], bool]:
    """Return what tells whether an edition is of the preparation to show of its data set; `wanted` ones come first."""
    hashes: dict[str, list[str]] = {}
    for family, present_editions in by_family.items():
        of_dataset = hashes.setdefault(family.data.dataset, [])
        of_dataset += [edition.data_hash for edition, _ in present_editions]
    chosen = {}
    for dataset, of_dataset in hashes.items():
        asked_for = [data_hash for data_hash in of_dataset if data_hash in wanted]
        chosen[dataset] = preparations.choose(dataset, asked_for or of_dataset)
    return lambda edition: preparations.fits(edition.data_hash, chosen[edition.data.dataset])


def editions(rows: pd.DataFrame) -> dict[Family, list[tuple[str, int]]]:
    """Return the data hashes and semantics versions in the store by `family_of`.

    The newest semantics version comes first, then the edition with the latest run.

    Returns:
        Editions by family.
    """
    by_family_of_runs: dict[Family, list[tuple[str, int]]] = {}
    if rows.empty:
        return by_family_of_runs
    versioned = rows[[*FAMILY, "data_hash"]].assign(semantics_version=shared_versions(rows))
    groups, first = _groups(versioned, versioned)
    moments = rows["started_at"].rank(method="dense").fillna(0).to_numpy()
    latest = np.zeros(len(first))
    np.maximum.at(latest, groups, moments)
    known = versioned.iloc[first].assign(latest=latest).dropna(subset=["data_hash", "semantics_version"])
    known = known.sort_values(["semantics_version", "latest", "data_hash"], ascending=[False, False, True])
    for row in known.to_dict("records"):
        edition = str(row["data_hash"]), int(row["semantics_version"])
        of_family = by_family_of_runs.setdefault(family_of({str(name): value for name, value in row.items()}), [])
        if edition not in of_family:  # several ranks of adapters share their data
            of_family.append(edition)
    return by_family_of_runs


def shared_versions(rows: pd.DataFrame) -> pd.Series:
    """Return the semantics version of each run without the revisions of its strategy and network.

    It is equal in comparable runs.
    """
    there = [name for name in REVISED_BY if name in rows]
    groups, first = _groups(rows, there)
    revisions = []
    for row in rows[there].iloc[first].to_dict("records"):
        given = {str(name): value for name, value in row.items() if not is_missing(value)}
        revisions.append(_revision_of({**REVISED_BY, **given}))
    return rows["semantics_version"] - np.array(revisions, dtype=np.int64)[groups]


def _revision_of(fields: Mapping[str, Any]) -> int:
    """Return the revisions of the strategy and of the network together.

    Args:
        fields: the fields in `REVISED_BY`.
    """
    strategy = fields["strategy"]
    of_strategy = STRATEGIES.declaration(strategy).revision if strategy in STRATEGIES else 0
    return of_strategy + network_revision_of(fields, FACTS)


def _groups(rows: pd.DataFrame, names: Iterable[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Group rows with equal values in some columns, where missing values are equal.

    As `groupby` does, which takes several times as long for few rows.

    Returns:
        The number of each row's group, from 0, and the position of each group's first row.
    """
    groups = np.zeros(len(rows), dtype=np.int64)
    for name in names:
        codes, values = pd.factorize(rows[name])
        groups, _ = pd.factorize(groups * (len(values) + 1) + codes + 1)
    _, first = np.unique(groups, return_index=True)
    return groups, first


def whole_hashes(runs: pd.DataFrame, data_hashes: Collection[str]) -> set[str]:
    """Return the data hashes in a store that begin as given, or whose `prepared_hash` does.

    Args:
        runs: the store's table `runs`.
        data_hashes: hashes, or prefixes of them.

    Raises:
        UsageError: a prefix matches no edition of the data, or several.
    """
    if not data_hashes:
        return set()
    there = runs.dropna(subset=["data_hash"])
    datasets: dict[str, str] = dict(zip(there["data_hash"], there["dataset"], strict=True))
    preparations = Preparations(there)
    hashes: set[str] = set()
    for wanted in data_hashes:
        matches = [data_hash for data_hash in datasets if data_hash.startswith(wanted)]
        if len(matches) != 1:
            matches = []
            for data_hash in datasets:
                if any(known.startswith(wanted) for known in (data_hash, preparations.of(data_hash) or "")):
                    matches.append(data_hash)
        if len({preparations.of(data_hash) or data_hash for data_hash in matches}) != 1:
            known = ", ".join(f"{data_hash} of {dataset}" for data_hash, dataset in sorted(datasets.items()))
            which = "several editions whose data hashes begin" if matches else "no edition whose data hash begins"
            raise UsageError(f"data hash {shown(wanted)}: the store has {which} so; it has {known or 'none'}")
        hashes.update(matches)
    return hashes


def _is_scale(labels: tuple[Any, ...]) -> bool:
    return len(labels) > 1 and all(isinstance(x, int | float) and not isinstance(x, bool) for x in labels)


def computed_on(experiments: Iterable[Experiment], metrics: Iterable[str] = ()) -> str:
    """Return whose scores metrics are: "the validation set", or the test set where the data have no validation set."""
    splits = {metric_named(name).split for name in metrics} - {None}
    if splits == {"test"}:
        return "the test set"
    on_test = [experiment.on_test for experiment in experiments]
    some = "; without a validation set, the test set" * any(on_test)
    where = f"the validation set{some}"
    if on_test and all(on_test):
        where = "the test set, as the data have no validation set"
    of_test = ", unless their name says test" * ("test" in splits)
    return f"{where}{of_test}"
