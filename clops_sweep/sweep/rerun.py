"""Repeats a run of the store in this process, and compares every number with the stored ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from clops_sweep.data.prepare import open_frames
from clops_sweep.data.prepared_folder import know
from clops_sweep.errors import BadInput
from clops_sweep.experiment.columns import MEASURES, METRICS, config_from_row
from clops_sweep.experiment.config import SEMANTICS_VERSION, RunConfig
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
_ADDED = tuple(f"{prefix}{measure}" for prefix in ("", "test_") for measure in MEASURES if measure != "auc")
"""How columns begin that runs of earlier versions do not have."""

_COUNTED = ["replayed", "projections", "projection_failures", "left_out"]


@dataclass(frozen=True)
class Difference:
    """A column in which a repeated run differs from the stored one, in so many places and by at most so much.

    `largest` is nan where that is not defined: of rows, of lists, and where one of the two has no number.
    """

    column: str
    places: int
    largest: float


def stored_run(store: RunStore, prefix: str) -> dict[str, Any]:
    """The row of `runs` of the one run whose id begins with `prefix`.

    Raises:
        BadInput: there is none, or more than one.
    """
    run_id = store.find(prefix)
    row: dict[Any, Any] = store.read("runs", [run_id]).to_dict("records")[0]
    return row


def repeat(
    row: dict[str, Any], prepared_root: Path, device: str | None = None, *, keep_predictions: bool = False
) -> RunResult:
    """Runs the config of a row of `runs` anew, on this machine.

    Args:
        row: of `runs`.
        prepared_root: where prepared data are.
        device: cpu or cuda; None for the one that the run was computed on, if there is one here.
        keep_predictions: whether they are part of the result.

    Raises:
        BadInput: the data prepared here are not those of the run, or the method has changed since, or PyTorch cannot
            use a GPU here that is asked for.
    """
    from clops_sweep.learning.run import ContinualRun

    know(str(row["dataset"]), prepared_root)
    config: RunConfig = config_from_row(row)
    if row["semantics_version"] != SEMANTICS_VERSION and not pd.isna(row["semantics_version"]):
        raise BadInput(
            f"run {row['run_id']} was computed by semantics version {row['semantics_version']:g}; this is version "
            f"{SEMANTICS_VERSION} and gives other numbers: install clops-sweep {row['package_version']} to repeat it"
        )
    key = config.data_key
    frames = open_frames(key.dataset, prepared_root=prepared_root, **key.view)
    if config.run_id(frames.data_hash) != row["run_id"]:
        raise BadInput(
            f"run {row['run_id']} was computed on other data: {key.dataset} as prepared here has the hash "
            f"{frames.data_hash[:12]}, not {str(row['data_hash'])[:12]}"
        )
    return ContinualRun(config, frames, _usable(device, row["device"]), keep_predictions=keep_predictions).run()


def _usable(asked_for: str | None, stored: str | None) -> str:
    """The device that is asked for; else that of the stored run, if it is here."""
    if asked_for == "cuda":
        check_gpu("--device cuda")
    if asked_for or stored != "cuda":
        return asked_for or "cpu"
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def differences(result: RunResult, store: RunStore, run_id: str, tolerance: float = 0.0) -> list[Difference]:
    """The columns of the tables whose numbers are not the stored ones; measures that are not stored are passed over.

    Args:
        result: of the repeated run.
        store: that the other is in.
        run_id: of both.
        tolerance: 0 for every number, bit for bit. Else metrics and R are compared, and nothing else, and may be so
            far apart: where rounding differs, as on another device, what is stored and replayed may differ as well.
    """
    metrics = [f"{prefix}{name}" for prefix in ("", "test_") for name in METRICS]
    counted, tables = ([], ["r_matrix"]) if tolerance else (_COUNTED, list(_KEYS))
    found = _compare(result.runs, store.read("runs", [run_id]), [*metrics, *counted], ["run_id"])
    for table in tables:
        keys = _KEYS[table]
        repeated: pd.DataFrame = getattr(result, table)
        stored = store.read(table, [run_id])  # type: ignore[arg-type]
        columns = [name for name in stored.columns if name not in ("run_id", *keys)]
        found += _compare(repeated, stored, columns, keys)
    return [difference for difference in found if not difference.largest <= tolerance]


def _compare(repeated: pd.DataFrame, stored: pd.DataFrame, columns: list[str], keys: list[str]) -> list[Difference]:
    if len(repeated) != len(stored):
        return [Difference("rows", abs(len(repeated) - len(stored)), float("nan"))]
    one = repeated.sort_values(keys, ignore_index=True)
    other = stored.sort_values(keys, ignore_index=True)
    found = []
    for column in (name for name in columns if name in one):
        if column.startswith(_ADDED) and other[column].isna().all():
            continue
        ours, theirs = _comparable(one[column]), _comparable(other[column])
        same = (ours == theirs) | (ours.isna() & theirs.isna())
        if not same.all():
            gap = float("nan")
            if pd.api.types.is_numeric_dtype(theirs) and ours.isna().equals(theirs.isna()):
                gap = float(np.nanmax(np.abs(ours.to_numpy(dtype=float) - theirs.to_numpy(dtype=float))))
            found.append(Difference(column, int((~same).sum()), gap))
    return found


def _comparable(column: pd.Series) -> pd.Series:
    """Lists, which a store gives back as arrays, as text."""
    if column.dtype == object and column.map(lambda value: isinstance(value, list | np.ndarray)).any():
        return column.map(lambda value: "" if value is None else str(list(map(float, value))))
    return column
