"""The tables of a finished run, with the store's columns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import Scenario
from clops_sweep.errors import UsageError
from clops_sweep.experiment.columns import CONFIG, FORMER, PHASES, PREQUENTIAL, RECORDED, RESULTS, STREAM, UNSEEN
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.metrics import MEASURES, METRICS, metrics_of
from clops_sweep.learning.method.training import InstanceRecord, MemoryUse, Stores
from clops_sweep.learning.metrics import r_matrix as metrics
from clops_sweep.learning.metrics.evaluation import Evaluation, SplitName
from clops_sweep.learning.metrics.prequential import Prequential

if TYPE_CHECKING:
    import pandas as pd

ALL_TASKS: Final = "all tasks"
"""Name of the training task of a joint run in the learning curves."""

IN_NO_TASK: Final = "people in no task"
"""Task of `Scenario.unseen` in R and predictions, with number 0."""

_TAKEN = {*CONFIG, *RESULTS, *RECORDED, *FORMER} - {"projections", "projection_failures"}
T = TypeVar("T")

Columns = dict[str, NDArray[Any] | list[Any]]
"""A table, or the part of one run or one task: its columns by name, all of one length."""

_PREDICTED: Final = ["trained_on", "evaluated_on", "task", "instance", "patient", "label"]
EVALUATED_SPLITS: Final[tuple[SplitName, ...]] = ("validation", "test")


class RunResult:
    """The tables of a run, each with a `run_id` column.

    `runs` has one row: seed, metrics (of validation without a prefix, of test with `test_`) and costs. Metrics
    of validation are NaN if the data have no validation set. `replayed` counts an instance each time it is replayed.
    `predictions` is empty unless they are kept.

    Args:
        columns: columns of each table by name. They are stored directly; DataFrames are created only on access, since
            that takes longer than writing a run.

    Attributes:
        models: safetensors files of the networks by number of trained tasks; empty unless kept.
    """

    def __init__(self, columns: Mapping[str, Columns]) -> None:
        self.columns = columns
        self.models: Mapping[int, bytes] = {}

    def __repr__(self) -> str:
        """One line: the strategy's metrics."""
        metrics = {name: self.columns["runs"][name][0] for name in ("auc", "bwt", "test_auc", "test_bwt")}
        shown = [f"{name} {value:.3f}" for name, value in metrics.items() if np.isfinite(value)]
        return f"<RunResult: {', '.join(shown)}>"

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """All tables by name."""
        return {name: getattr(self, name) for name in ("runs", "r_matrix", "curves", "instances", "predictions")}

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row."""
        return self._frame("runs")

    @cached_property
    def r_matrix(self) -> pd.DataFrame:
        """R: one row per stage of training, task and split."""
        return self._frame("r_matrix")

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Validation of every task after every epoch; without a validation set, test if requested.

        For an online stream, prequential scores after every batch.
        """
        return self._frame("curves")

    @cached_property
    def instances(self) -> pd.DataFrame:
        """One row per training instance."""
        return self._frame("instances")

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """One row per test instance and stage of training."""
        return self._frame("predictions")

    def _frame(self, table: str) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self.columns[table])


@dataclass(frozen=True)
class History:
    """What a run recorded.

    Attributes:
        curves: validation after every epoch; without a validation set, test if requested, or nothing.
        r: rows of R by split, one per stage of training (a joint run has one stage).
        records: records of each task's instances.
        parameters: number of trainable parameters of the network.
        memory: content of the replay memory.
        stores: what the strategy stores of past data, if it reports that.
        counts: columns filled by the strategy.
        seconds: time in total and by phase, and CPU time.
        backend: what computed it.
        started_at: when it began.
        epochs: epochs of each stage of training, without those dropped by early stopping.
        epochs_per_stage: the maximum number of epochs of a stage.
        epochs_trained: number of all epochs with gradient steps.
        predictions: for each stage of training, the probabilities and logits of the test instances of all tasks,
            float32 [n, 2 outputs]; empty unless kept.
        stream: predictions of an online stream; None for epochs.
    """

    curves: Sequence[Evaluation]
    r: Mapping[SplitName, Sequence[Evaluation]]
    records: Sequence[InstanceRecord]
    parameters: int
    memory: MemoryUse
    stores: Stores | None
    counts: Mapping[str, int]
    seconds: Mapping[str, float]
    backend: str
    started_at: datetime
    epochs: Sequence[int]
    epochs_per_stage: int
    epochs_trained: int
    predictions: Sequence[NDArray[np.float32]] = ()
    stream: Prequential | None = None


def assemble(config: RunConfig, frames: FrameSet, scenario: Scenario, history: History) -> RunResult:
    """Return the tables of a run."""
    row = _runs_row(config, scenario, history)
    if frames.encoded is not None and frames.encoded.module is None and row["stores"] == "raw":
        row["stores"] = "features"
    row |= _people(frames, scenario) | _encoded(frames)
    row["prepared_hash"] = frames.prepared_hash
    if history.stream is None:
        curves = _curves(scenario, history)
    else:
        curves = _stream(history.stream, scenario, config.prequential_window)
    tables: dict[str, Columns] = {
        "runs": {name: [value] for name, value in row.items()},
        "r_matrix": _r_matrix(scenario, history.r),
        "curves": curves,
        "instances": _instances(frames, scenario, history.records),
        "predictions": _predictions(frames, scenario, history.predictions),
    }
    run_id = config.run_id(frames.data_hash)
    with_id: dict[str, Columns] = {}
    for name, columns in tables.items():
        rows = max(map(len, columns.values()))
        with_id[name] = {"run_id": np.full(rows, run_id), **columns}
    return RunResult(with_id)


def _joined(parts: Sequence[Columns]) -> Columns:
    """Return the parts of a table as one, row after row."""
    joined: Columns = {}
    for name, column in parts[0].items():
        of_parts = [part[name] for part in parts]
        if isinstance(column, np.ndarray):
            joined[name] = np.concatenate(of_parts)
        else:
            joined[name] = list(chain.from_iterable(of_parts))
    return joined


def _people(frames: FrameSet, scenario: Scenario) -> dict[str, Any]:
    """Return the number of people in each split over all tasks, in no task, and altogether, and a hash of the splits.

    Runs with the same hash have the same people in training, validation and test, whatever their tasks.
    """
    rows: dict[str, NDArray[np.int64]] = {}
    for split in ("train", "validation", "test"):
        rows[split] = np.concatenate([getattr(task, split).rows for task in scenario.tasks])
    rows["unseen"] = np.empty(0, np.int64) if scenario.unseen is None else scenario.unseen.rows
    digest = hashlib.sha256()
    people: dict[str, set[str]] = {}
    for split, of_split in rows.items():
        patients = np.unique(frames.patients[of_split])
        names = sorted(frames.patient_names[patient] for patient in patients)
        people[split] = set(names)
        if split != "unseen":
            digest.update(json.dumps([split, names]).encode())
    people["all"] = set().union(*people.values())
    columns: dict[str, Any] = {}
    for split, names_of_split in people.items():
        columns[f"patients_{split}"] = len(names_of_split) if frames.people_known else None
    columns["split_hash"] = digest.hexdigest()
    return columns


def _encoded(frames: FrameSet) -> dict[str, Any]:
    """Return the hashes of encoder, features and initial model as columns of `runs`; empty for signals alone."""
    columns: dict[str, Any] = {}
    encoded = frames.encoded
    if encoded is not None:
        columns |= {"encoder_hash": encoded.encoder_hash, "features_hash": encoded.features_hash}
    if frames.start_model is not None:
        columns["start_hash"] = frames.start_model.model_hash
    return columns


def _runs_row(config: RunConfig, scenario: Scenario, history: History) -> dict[str, Any]:
    scores = (*METRICS, *(f"test_{name}" for name in METRICS), *UNSEEN, *PREQUENTIAL)
    row: dict[str, Any] = {"seed": config.seed, **dict.fromkeys(scores, float("nan"))}
    row |= _of_splits(scenario, history.r)
    tasks = len(scenario.tasks)
    if scenario.unseen is not None:
        last = history.r["test"][-1]
        for name in UNSEEN:
            of_tasks = getattr(last, name.removeprefix("unseen_"))
            row[name] = float(of_tasks[tasks])  # the people in no task follow the tasks
    if history.stream is not None:
        of_stream = history.stream.scores()
        for name in PREQUENTIAL:
            row[name] = of_stream[name.removeprefix("prequential_")]
    for name, count in history.counts.items():
        if not str(name).isidentifier() or name in _TAKEN:
            raise UsageError(f"counts() of the strategy: {name!r} cannot be the name of a new column in the table runs")
        if not isinstance(count, Real):
            raise UsageError(f"counts() of the strategy: {name!r}: expected a number")
    memory = history.memory
    at_end = [rows[-1] for rows in history.r.values()]
    return row | {
        "left_out": sum(int(evaluation.left_out[:tasks].sum()) for evaluation in at_end),
        "replayed": sum(int(record.times_replayed.sum()) for record in history.records),
        **history.counts,
        "epochs_trained": history.epochs_trained,
        "parameters": history.parameters,
        "memory_instances": memory.instances,
        "memory_bytes": memory.instances * memory.instance_bytes + memory.other_bytes,
        "stores": history.stores or ("raw" if memory.instances else "nothing"),
        **{name: history.seconds[name] for name in ("seconds", *PHASES, "cpu_seconds")},
        "started_at": history.started_at,
        "backend": history.backend,
    }


def _of_splits(scenario: Scenario, r: Mapping[SplitName, Sequence[Evaluation]]) -> dict[str, float]:
    """Return the metrics of R by column of `runs`, for the splits that it has rows of."""
    prefixes = dict(zip(EVALUATED_SPLITS, ("", "test_"), strict=True))
    columns: dict[str, float] = {}
    for split, rows in r.items():
        of_split = _metrics(scenario, rows)
        columns |= {f"{prefixes[split]}{name}": value for name, value in of_split.items()}
    return columns


def _metrics(scenario: Scenario, r: Sequence[Evaluation]) -> dict[str, float]:
    """Return the metrics of R for the tasks that it has rows of.

    A joint run has a single row, and its metric is the score on the union of all tasks.
    """
    columns: dict[str, float] = {}
    for measure, of_union in zip(MEASURES, r[-1].union, strict=True):
        union = float(of_union)
        if np.isnan(union):
            matrix = np.stack([getattr(evaluation, measure)[: len(r)] for evaluation in r])
            chance = metrics.chance_of(measure, scenario.kind, scenario.outputs)
            columns |= metrics.all_metrics(matrix, measure, chance)
        else:
            columns |= dict.fromkeys(metrics_of(measure), float("nan"))
            columns[measure] = union
    return columns


def metrics_of_epoch(scenario: Scenario, tasks: int, evaluation: Evaluation) -> dict[str, float]:
    """Return loss and `MEASURES` after an epoch: means over the first tasks, and each task's, as in `auc/NAME`."""
    columns: dict[str, float] = {}
    for measure in ("loss", *MEASURES):
        values = getattr(evaluation, measure)[:tasks]
        columns[measure] = float(values.mean())
        for task, value in zip(scenario.tasks, values, strict=False):
            columns[f"{measure}/{task.name}"] = float(value)
    return _defined(columns)


def metrics_of_task(scenario: Scenario, r: Mapping[SplitName, Sequence[Evaluation]]) -> dict[str, float]:
    """Return the metrics of the rows of R so far, by column of `runs`."""
    return _defined(_of_splits(scenario, r))


def _defined(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if np.isfinite(value)}


def _r_matrix(scenario: Scenario, r: Mapping[SplitName, Sequence[Evaluation]]) -> Columns:
    """Return R as rows; a joint run counts as trained on all N tasks.

    For people in no task, each stage has a row with the split "unseen".
    """
    names = [task.name for task in scenario.tasks]
    parts: list[Columns] = []
    for split, evaluations in r.items():
        for stage, evaluation in _stages(evaluations, names):
            of_stage: Columns = {
                "split": [split] * len(names),
                "trained_on": np.full(len(names), stage),
                "evaluated_on": np.arange(1, len(names) + 1),
                "task": names,
            }
            for measure in MEASURES:
                of_stage[measure] = getattr(evaluation, measure)[: len(names)]
            parts.append(of_stage)
    if scenario.unseen is not None:
        for stage, evaluation in _stages(r["test"], names):
            of_unseen: Columns = {
                "split": ["unseen"],
                "trained_on": np.array([stage]),
                "evaluated_on": np.zeros(1, np.int64),
                "task": [IN_NO_TASK],
            }
            for measure in MEASURES:
                of_unseen[measure] = getattr(evaluation, measure)[len(names) :]
            parts.append(of_unseen)
    return _joined(parts)


def _stages(stages: Sequence[T], tasks: Sequence[str]) -> Iterable[tuple[int, T]]:
    """Return `trained_on`, from 1, with each stage of training; it is N for the single stage of a joint run."""
    return enumerate(stages, start=1 + len(tasks) - len(stages))


def _predictions(frames: FrameSet, scenario: Scenario, predictions: Sequence[NDArray[np.float32]]) -> Columns:
    """Return one row per stage of training and test instance of every task, and of people in no task."""
    if not predictions:
        return {name: np.empty(0, object) for name in _PREDICTED}
    tasks = [task.name for task in scenario.tasks]
    tests = [task.test for task in scenario.tasks]
    names = list(tasks)
    numbers = list(range(1, len(tasks) + 1))
    if scenario.unseen is not None:
        tests.append(scenario.unseen)
        names.append(IN_NO_TASK)
        numbers.append(0)
    sizes = [len(test.rows) for test in tests]
    targets = np.concatenate([test.targets for test in tests]).astype(np.int8)
    rows = np.concatenate([test.rows for test in tests])
    fixed: Columns = {
        "evaluated_on": np.repeat(numbers, sizes),
        "task": np.repeat(names, sizes),
        "instance": rows,
        "patient": np.array(frames.patient_names)[frames.patients[rows]],
        "label": _label_names(frames, rows),
        "exclusive": np.full(len(rows), scenario.kind == "softmax"),
        **_by_output("target", targets),
    }
    parts: list[Columns] = []
    for stage, outputs in _stages(predictions, tasks):
        probabilities, logits = np.split(outputs, 2, axis=1)
        of_outputs = _by_output("probability", probabilities) | _by_output("logit", logits)
        parts.append({"trained_on": np.full(len(rows), stage), **fixed, **of_outputs})
    return _joined(parts)


def _by_output(name: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return one column per output of values [n, C]."""
    return {f"{name}_{output}": values[:, output] for output in range(values.shape[1])}


def _curves(scenario: Scenario, history: History) -> Columns:
    """Return one row per task and epoch. The epochs of stage k, from 0, begin at k `epochs_per_stage` + 1."""
    names = [task.name for task in scenario.tasks]
    stages = history.epochs if history.curves else []
    training = names if len(history.epochs) == len(names) else [ALL_TASKS]
    epochs = [np.empty(0, np.int64)]
    for stage, count in enumerate(stages):
        epochs.append(stage * history.epochs_per_stage + np.arange(1, 1 + count))
    measures: Columns = {}
    for name in ("auc", "loss", *MEASURES[1:]):
        of_epochs = [getattr(evaluation, name) for evaluation in history.curves]
        measures[name] = np.concatenate([np.empty(0), *of_epochs])
    return {
        "epoch": np.concatenate(epochs).repeat(len(names)),
        "training_task": np.repeat(training[: len(stages)], np.array(stages, np.int64) * len(names)),
        "task": np.tile(names, len(history.curves)),
        **measures,
    }


def _stream(stream: Prequential, scenario: Scenario, window: int) -> Columns:
    """Return one row per batch of an online stream, numbered by `epoch` from 1, with scores of the last instances."""
    batches = list(map(len, stream.sizes))
    return {
        "epoch": np.arange(1, 1 + sum(batches)),
        "training_task": np.repeat([task.name for task in scenario.tasks], batches),
        "task": [STREAM] * sum(batches),
        **stream.curve(window),
    }


def _instances(frames: FrameSet, scenario: Scenario, records: Sequence[InstanceRecord]) -> Columns:
    patients = np.array(frames.patient_names)
    parts: list[Columns] = []
    for task, record in zip(scenario.tasks, records, strict=True):
        rows = task.train.rows
        parts.append(
            {
                "task": [task.name] * len(rows),
                "instance": rows,
                "patient": patients[frames.patients[rows]],
                "label": _label_names(frames, rows),
                "s": record.s.cpu().numpy(),
                "beta": record.beta.cpu().numpy().astype(np.float64),
                "stored": record.stored.cpu().numpy(),
                "times_replayed": record.times_replayed.cpu().numpy(),
                "beta_trajectory": _trajectories(record),
            }
        )
    return _joined(parts)


def _trajectories(record: InstanceRecord) -> list[list[float] | None]:
    """Return beta after each epoch for seven instances: the three with lowest s, the median, the three with highest s.

    None for all others: trajectories of all instances would dominate the size of a store.
    """
    trajectories = record.trajectories.cpu().numpy()
    instances, epochs = trajectories.shape
    of_instances: list[list[float] | None] = [None] * instances
    s = record.s.cpu().numpy()
    if not epochs or np.isnan(s).all():
        return of_instances
    order = np.argsort(s, kind="stable")
    middle = instances // 2
    for instance in (*order[:3], *order[middle : middle + 1], *order[-3:]):
        of_instances[instance] = trajectories[instance].tolist()
    return of_instances


def _label_names(frames: FrameSet, rows: NDArray[np.int64]) -> NDArray[np.str_]:
    """Return the class of each instance; several labels are joined by a plus sign."""
    classes: NDArray[np.str_] = np.array(frames.classes)
    if not frames.multi_label:
        names: NDArray[np.str_] = classes[frames.labels[rows]]
        return names
    joined_names = ["+".join(classes[labels.astype(bool)]) for labels in frames.labels[rows]]
    return np.array(joined_names)
