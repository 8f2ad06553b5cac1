"""The four tables of finished runs, as DataFrames with the columns of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from clops_sweep.config import SEMANTICS_VERSION, RunConfig
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import Scenario
from clops_sweep.learning import metrics
from clops_sweep.learning.evaluation import Evaluation, SplitName
from clops_sweep.learning.strategies.base import InstanceRecord

PHASES: Final = ("seconds_train", "seconds_acquire", "seconds_evaluate")
EVALUATED_SPLITS: Final[tuple[SplitName, ...]] = ("validation", "test")


@dataclass(frozen=True)
class RunResult:
    """Four tables with a `run_id` column; a lockstep of S runs has the rows of all S in each.

    `runs` has a row a run: config, metrics (validation without, test with the prefix `test_`), costs and identity.
    The seconds of a run in lockstep are its share, the lockstep's divided by S.
    """

    runs: pd.DataFrame
    r_matrix: pd.DataFrame
    curves: pd.DataFrame
    instances: pd.DataFrame


def assemble(
    configs: Sequence[RunConfig],
    frames: FrameSet,
    scenario: Scenario,
    curves: Sequence[Evaluation],
    r: Mapping[SplitName, Sequence[Evaluation]],
    records: Sequence[InstanceRecord],
    seconds: Mapping[str, float],
    started_at: datetime,
) -> RunResult:
    """The tables of all runs of a lockstep.

    Args:
        configs: one a run.
        frames: the data set.
        scenario: the tasks in their order.
        curves: validation after every epoch.
        r: rows of R, by split.
        records: what is known about each task's instances.
        seconds: time spent, by phase, of the whole lockstep.
        started_at: when it began.
    """
    tables: dict[str, list[pd.DataFrame]] = {"runs": [], "r_matrix": [], "curves": [], "instances": []}
    for run, config in enumerate(configs):
        run_id = config.run_id(frames.data_hash)
        row = _runs_row(run, config, frames, r, seconds, started_at, len(configs))
        for name, frame in (
            ("runs", pd.DataFrame([row])),
            ("r_matrix", _r_matrix(run, scenario, r)),
            ("curves", _curves(run, config, scenario, curves)),
            ("instances", _instances(run, frames, scenario, records)),
        ):
            frame.insert(0, "run_id", run_id)
            tables[name].append(frame)
    return RunResult(**{name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()})


def _runs_row(
    run: int,
    config: RunConfig,
    frames: FrameSet,
    r: Mapping[SplitName, Sequence[Evaluation]],
    seconds: Mapping[str, float],
    started_at: datetime,
    runs: int,
) -> dict[str, Any]:
    row: dict[str, Any] = config.model_dump() | {"status": "finished", "error": None}
    left_out = 0
    for split, prefix in zip(EVALUATED_SPLITS, ("", "test_"), strict=True):
        matrix = np.stack([evaluation.auc[run] for evaluation in r[split]])
        row |= {f"{prefix}{name}": value for name, value in metrics.all_metrics(matrix).items()}
        left_out += int(r[split][-1].left_out[run].sum())
    shares = {phase: seconds[phase] / runs for phase in PHASES}
    return row | {
        "left_out": left_out,
        "seconds": sum(shares.values()),
        **shares,
        "started_at": started_at,
        "data_hash": frames.data_hash,
        "semantics_version": SEMANTICS_VERSION,
        "stack": runs,
    }


def _r_matrix(run: int, scenario: Scenario, r: Mapping[SplitName, Sequence[Evaluation]]) -> pd.DataFrame:
    names = [task.name for task in scenario.tasks]
    return pd.DataFrame(
        [
            {"split": split, "trained_on": i, "evaluated_on": j, "task": name, "auc": evaluation.auc[run, j - 1]}
            for split in EVALUATED_SPLITS
            for i, evaluation in enumerate(r[split], start=1)
            for j, name in enumerate(names, start=1)
        ]
    )


def _curves(run: int, config: RunConfig, scenario: Scenario, curves: Sequence[Evaluation]) -> pd.DataFrame:
    names = [task.name for task in scenario.tasks]
    epochs = len(curves)
    return pd.DataFrame(
        {
            "epoch": np.repeat(np.arange(1, epochs + 1), len(names)),
            "training_task": np.repeat(names, len(names) * config.epochs_per_task),
            "task": np.tile(names, epochs),
            "auc": np.concatenate([evaluation.auc[run] for evaluation in curves]),
            "loss": np.concatenate([evaluation.loss[run] for evaluation in curves]),
        }
    )


def _instances(run: int, frames: FrameSet, scenario: Scenario, records: Sequence[InstanceRecord]) -> pd.DataFrame:
    patients = np.array(frames.patient_names)
    parts = []
    for task, record in zip(scenario.tasks, records, strict=True):
        rows = task.train.rows
        parts.append(
            pd.DataFrame(
                {
                    "task": task.name,
                    "instance": rows,
                    "patient": patients[frames.patients[rows]],
                    "label": _label_names(frames, rows),
                    "s": record.s[run].cpu().numpy(),
                    "beta": record.beta[run].cpu().numpy().astype(np.float64),
                    "stored": record.stored[run].cpu().numpy(),
                    "times_replayed": record.times_replayed[run].cpu().numpy(),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _label_names(frames: FrameSet, rows: NDArray[np.int64]) -> NDArray[np.str_]:
    """The class of each instance; several labels are joined by a plus sign."""
    classes: NDArray[np.str_] = np.array(frames.classes)
    if not frames.multi_label:
        names: NDArray[np.str_] = classes[frames.labels[rows]]
        return names
    return np.array(["+".join(classes[labels.astype(bool)]) for labels in frames.labels[rows]])
