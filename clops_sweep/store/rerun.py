"""Repetition of a stored run in this process, and comparison with the stored numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from clops_sweep.data.prepared.prepared_folder import register_prepared
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import DamagedStore, UsageError, several, shown
from clops_sweep.experiment.columns import config_from_row, former_settings
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.spaces.axes import in_words
from clops_sweep.learning.encoders.encoders import Encoders
from clops_sweep.machine import check_gpu
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    from clops_sweep.learning.result import RunResult

_KEYS = {
    "r_matrix": ["split", "trained_on", "evaluated_on"],
    "curves": ["epoch", "task"],
    "instances": ["task", "instance"],
    "predictions": ["trained_on", "task", "instance"],
}


def _added_columns() -> Iterator[str]:
    """Yield the columns that runs of earlier versions lack."""
    yield "patient"
    for name, metric in METRICS.items():
        if metric.measure != "auc":
            yield name
            yield f"test_{name}"


_ADDED = frozenset(_added_columns())

_LONGEST_SHOWN = 60

_COUNTED = ["replayed", "projections", "projection_failures", "left_out"]


@dataclass(frozen=True)
class Difference:
    """A column of a table in which a repeated run differs from the stored one.

    Attributes:
        table: the table.
        column: the column, or "rows" if the numbers of rows differ.
        places: number of rows that differ.
        rows: number of rows.
        largest: largest absolute difference; nan if undefined: for lists, or if one side is not a number.
        first: the first such row, by its identifying columns; empty in `runs`, which has one row.
        repeated: the repeated value.
        stored: the stored value.
    """

    table: str
    column: str
    places: int
    rows: int
    largest: float
    first: Mapping[str, Any]
    repeated: Any
    stored: Any

    def __str__(self) -> str:
        if self.column == "rows":
            return f"{self.table}: {several(self.repeated, 'row')}, and the stored run has {self.stored}"
        text = f"{self.table}.{self.column}: differs"
        if self.first:
            text += f" in {self.places} of {several(self.rows, 'row')}"
        if self.places != 1 and not math.isnan(self.largest):
            text += f", by {self.largest:.3g} at most"
        if self.first:
            text += f"; first at {in_words(self.first)}"
        return f"{text}: {_short(self.repeated)} here, {_short(self.stored)} stored"


def stored_run(store: RunStore, prefix: str) -> dict[str, Any]:
    """Return the row of `runs` of the one run whose id begins with `prefix`.

    Raises:
        UsageError: no run or more than one has such an id.
        DamagedStore: its part contains another run.
    """
    run_id = store.find(prefix)
    row: dict[Any, Any] = store.read("runs", [run_id]).to_dict("records")[0]
    if row["run_id"] != run_id:
        raise DamagedStore(f"results {store.uri}: the part of run {run_id} holds run {shown(row['run_id'])}")
    return row


def repeat(
    row: dict[str, Any],
    store: RunStore,
    prepared_root: Path,
    device: str | None = None,
    *,
    keep_predictions: bool = False,
) -> RunResult:
    """Repeat the run in a row of `runs` on this machine.

    Args:
        row: the row.
        store: its store, with the models of ``encoder="run:RUN_ID"``.
        prepared_root: folder of prepared data.
        device: cpu or cuda; None for the device of the stored run, if available.
        keep_predictions: whether to return predictions.

    Raises:
        UsageError: the data prepared here differ from those of the run, the method has changed since, or PyTorch cannot
            use a requested GPU.
    """
    from clops_sweep.learning.run import ContinualRun

    register_prepared(str(row["dataset"]), prepared_root)
    former = former_settings(row)
    if former:
        raise UsageError(
            f"run {row['run_id']} used {in_words(former)}, which this version has no longer: install clops-sweep "
            f"{row['package_version']} to repeat it"
        )
    config: RunConfig = config_from_row(row)
    if row["semantics_version"] != config.semantics_version and not pd.isna(row["semantics_version"]):
        raise UsageError(
            f"run {row['run_id']} was computed by semantics version {row['semantics_version']:g}; this is version "
            f"{config.semantics_version} and gives other numbers: install clops-sweep {row['package_version']} to "
            "repeat it"
        )
    key = config.data_key
    is_plain = key.encoder is None and key.start_from is None
    encoders = None if is_plain else Encoders(store.models.read)
    frames = PreparedData(prepared_root, encoders=encoders).frames(key)
    if config.run_id(frames.data_hash) != row["run_id"]:
        raise UsageError(
            f"run {row['run_id']} was computed on other data: {key.dataset} as prepared here has the hash "
            f"{frames.data_hash[:12]}, not {str(row['data_hash'])[:12]}"
        )
    return ContinualRun(config, frames, _usable(device, row["device"]), keep_predictions=keep_predictions).run()


def _usable(asked_for: str | None, stored: str | None) -> str:
    """Return the requested device, else that of the stored run, if available."""
    if asked_for == "cuda":
        check_gpu("--device cuda")
    if asked_for or stored != "cuda":
        return asked_for or "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def differences(result: RunResult, store: RunStore, run_id: str, tolerance: float = 0.0) -> list[Difference]:
    """Return the columns whose numbers differ from the stored ones; measures that are not stored are ignored.

    Args:
        result: result of the repeated run.
        store: the store with the stored run.
        run_id: the id of the run.
        tolerance: 0 to compare every number bit for bit. Otherwise the maximum absolute difference of metrics and R
            alone: with other rounding, as on another device, stored and replayed instances may also differ.
    """
    columns = [*METRICS, *(f"test_{name}" for name in METRICS)]
    tables = ["r_matrix"]
    if not tolerance:
        columns += _COUNTED
        tables = list(_KEYS)
    compared = _compare("runs", result.runs, store.read("runs", [run_id]), columns, [])
    for table in tables:
        keys = _KEYS[table]
        repeated: pd.DataFrame = getattr(result, table)
        stored = store.read(table, [run_id])  # type: ignore[arg-type]
        columns = [name for name in stored.columns if name not in ("run_id", *keys)]
        compared += _compare(table, repeated, stored, columns, keys)
    return [difference for difference in compared if not difference.largest <= tolerance]


def _compare(
    table: str, repeated: pd.DataFrame, stored: pd.DataFrame, columns: list[str], keys: list[str]
) -> list[Difference]:
    """Return the columns of a table that differ; rows are identified by the columns `keys`."""
    rows = len(repeated)
    if rows != len(stored):
        return [Difference(table, "rows", abs(rows - len(stored)), rows, math.nan, {}, rows, len(stored))]
    if keys:
        repeated = repeated.sort_values(keys)
        stored = stored.sort_values(keys)
    repeated = repeated.reset_index(drop=True)
    stored = stored.reset_index(drop=True)
    differences = []
    for column in columns:
        if column not in repeated:
            continue
        if (column in _ADDED or table == "predictions") and stored[column].isna().all():
            continue
        ours = _comparable(repeated[column])
        theirs = _comparable(stored[column])
        differs = ~((ours == theirs) | (ours.isna() & theirs.isna())).to_numpy()
        if differs.any():
            row = int(differs.argmax())
            first = {key: stored[key][row] for key in keys}
            count = int(differs.sum())
            gap = _largest_gap(ours, theirs)
            differences.append(Difference(table, column, count, rows, gap, first, ours[row], theirs[row]))
    return differences


def _largest_gap(ours: pd.Series, theirs: pd.Series) -> float:
    """Return the largest absolute difference; nan if it is undefined."""
    if not pd.api.types.is_numeric_dtype(theirs) or not ours.isna().equals(theirs.isna()):
        return math.nan
    return float(np.nanmax(np.abs(ours.to_numpy(dtype=float) - theirs.to_numpy(dtype=float))))


def _short(value: Any) -> str:
    text = f"{value:.9g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _comparable(column: pd.Series) -> pd.Series:
    """Convert lists, which the store returns as arrays, to text."""
    if column.dtype == object and column.map(lambda value: isinstance(value, list | np.ndarray)).any():
        return column.map(lambda value: "" if value is None else str(list(map(float, value))))
    return column
