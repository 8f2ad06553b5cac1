"""The four tables of finished runs, as DataFrames with the columns of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import Scenario
from clops_sweep.errors import BadInput
from clops_sweep.experiment.columns import CONFIG, PHASES, RESULTS
from clops_sweep.experiment.config import RunConfig
from clops_sweep.learning import metrics
from clops_sweep.learning.evaluation import Evaluation, SplitName
from clops_sweep.learning.strategies.base import InstanceRecord

ALL_TASKS: Final = "all tasks"
"""The training task of a joint run, in the learning curves."""

_TAKEN = {*CONFIG, *RESULTS, "run_id", "status", "error", "started_at", "backend", "device", "host"} - {
    "projections",
    "projection_failures",
}
EVALUATED_SPLITS: Final[tuple[SplitName, ...]] = ("validation", "test")


@dataclass(frozen=True)
class RunResult:
    """Four tables with a `run_id` column; a lockstep of S runs has the rows of all S in each.

    `runs` has a row a run: seed, metrics (validation without, test with the prefix `test_`) and costs.
    `replayed` counts instances as often as they were replayed; the seconds of a run in lockstep are its share, the
    lockstep's divided by S.
    """

    runs: pd.DataFrame
    r_matrix: pd.DataFrame
    curves: pd.DataFrame
    instances: pd.DataFrame


@dataclass(frozen=True)
class History:
    """What happened during a lockstep of S runs.

    Attributes:
        curves: validation after every epoch.
        r: rows of R by split, one a stage of training (a joint run has a single one).
        records: what is known about each task's instances.
        counts: columns that only the strategy fills, one value a run.
        seconds: time spent by phase, of the whole lockstep.
        backend: what computed it.
        started_at: when it began.
    """

    curves: Sequence[Evaluation]
    r: Mapping[SplitName, Sequence[Evaluation]]
    records: Sequence[InstanceRecord]
    counts: Mapping[str, Sequence[int]]
    seconds: Mapping[str, float]
    backend: str
    started_at: datetime


def assemble(configs: Sequence[RunConfig], frames: FrameSet, scenario: Scenario, history: History) -> RunResult:
    """The tables of all runs of a lockstep."""
    tables: dict[str, list[pd.DataFrame]] = {"runs": [], "r_matrix": [], "curves": [], "instances": []}
    for run, config in enumerate(configs):
        row = _runs_row(run, config, frames, history, len(configs))
        for name, frame in (
            ("runs", pd.DataFrame([row])),
            ("r_matrix", _r_matrix(run, scenario, history.r)),
            ("curves", _curves(run, scenario, history)),
            ("instances", _instances(run, frames, scenario, history.records)),
        ):
            frame.insert(0, "run_id", config.run_id(frames.data_hash))
            tables[name].append(frame)
    return RunResult(**{name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()})


def _runs_row(run: int, config: RunConfig, frames: FrameSet, history: History, runs: int) -> dict[str, Any]:
    row: dict[str, Any] = {"seed": config.seed}
    left_out = 0
    for split, prefix in zip(EVALUATED_SPLITS, ("", "test_"), strict=True):
        row |= {f"{prefix}{name}": value for name, value in _metrics(run, history.r[split]).items()}
        left_out += int(history.r[split][-1].left_out[run].sum())
    for name in history.counts:
        if not str(name).isidentifier() or name in _TAKEN:
            raise BadInput(f"Strategy.counts(): {name!r} is no name for a column of its own in the table runs")
    shares = {phase: history.seconds[phase] / runs for phase in PHASES}
    return row | {
        "left_out": left_out,
        "replayed": sum(int(record.times_replayed[run].sum()) for record in history.records),
        **{name: values[run] for name, values in history.counts.items()},
        "seconds": sum(shares.values()),
        **shares,
        "started_at": history.started_at,
        "backend": history.backend,
    }


def _metrics(run: int, r: Sequence[Evaluation]) -> dict[str, float]:
    """The metrics of R; a joint run has no R to speak of, and its AUC is that over the union of the tasks."""
    if not np.isnan(r[-1].union_auc[run]):
        return dict.fromkeys(metrics.all_metrics([[0.5]]), float("nan")) | {"auc": float(r[-1].union_auc[run])}
    return metrics.all_metrics(np.stack([evaluation.auc[run] for evaluation in r]))


def _r_matrix(run: int, scenario: Scenario, r: Mapping[SplitName, Sequence[Evaluation]]) -> pd.DataFrame:
    """R as rows; a joint run has been trained on all N tasks when it is evaluated."""
    names = [task.name for task in scenario.tasks]
    return pd.DataFrame(
        [
            {"split": split, "trained_on": i, "evaluated_on": j, "task": name, "auc": evaluation.auc[run, j - 1]}
            for split in EVALUATED_SPLITS
            for i, evaluation in enumerate(r[split], start=1 + len(names) - len(r[split]))
            for j, name in enumerate(names, start=1)
        ]
    )


def _curves(run: int, scenario: Scenario, history: History) -> pd.DataFrame:
    names = [task.name for task in scenario.tasks]
    epochs, stages = len(history.curves), len(history.r["validation"])
    training = names if stages == len(names) else [ALL_TASKS]
    return pd.DataFrame(
        {
            "epoch": np.repeat(np.arange(1, epochs + 1), len(names)),
            "training_task": np.repeat(training, len(names) * (epochs // stages)),
            "task": np.tile(names, epochs),
            "auc": np.concatenate([evaluation.auc[run] for evaluation in history.curves]),
            "loss": np.concatenate([evaluation.loss[run] for evaluation in history.curves]),
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
                    "beta_trajectory": _trajectories(record, run),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def _trajectories(record: InstanceRecord, run: int) -> pd.Series:
    """beta after each epoch for the three instances with the lowest s, the middle one and the three with the highest.

    None for all others: trajectories of everything would be most of a store.
    """
    trajectories = record.trajectories[run].cpu().numpy()
    instances, epochs = trajectories.shape
    chosen: set[int] = set()
    s = record.s[run].cpu().numpy()
    if epochs and not np.isnan(s).all():  # all nan: a run without beta, in lockstep with others that have one
        order = np.argsort(s, kind="stable")
        chosen = {
            int(order[place]) for place in (0, 1, 2, instances // 2, -3, -2, -1) if -instances <= place < instances
        }
    values = [trajectories[place].tolist() if place in chosen else None for place in range(instances)]
    return pd.Series(values, dtype=object)


def _label_names(frames: FrameSet, rows: NDArray[np.int64]) -> NDArray[np.str_]:
    """The class of each instance; several labels are joined by a plus sign."""
    classes: NDArray[np.str_] = np.array(frames.classes)
    if not frames.multi_label:
        names: NDArray[np.str_] = classes[frames.labels[rows]]
        return names
    return np.array(["+".join(classes[labels.astype(bool)]) for labels in frames.labels[rows]])
