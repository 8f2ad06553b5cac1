"""ContinualRun: one whole continual-learning run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.arguments import arguments_of_class
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import Scenario, Subset
from clops_sweep.data.scenarios.leaks import Seen
from clops_sweep.errors import Diverged
from clops_sweep.experiment.columns import PHASES
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.events import Progress
from clops_sweep.experiment.metrics import MEASURES
from clops_sweep.experiment.network_input import check_frames, is_tried
from clops_sweep.experiment.plugins.registry import NETWORKS, REGISTRIES, STRATEGIES
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.learning import result, streams
from clops_sweep.learning.augmentation.augmenter import Augmenter
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.class_weights import balanced
from clops_sweep.learning.early_stopping import EarlyStopping
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.global_streams import GlobalStreams, seed_of
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.optimizers import scheduled
from clops_sweep.learning.method.strategy import Strategy, run_epoch
from clops_sweep.learning.method.training import InstanceRecord, Training
from clops_sweep.learning.metrics.evaluation import Evaluation, Evaluator, SplitName
from clops_sweep.learning.models.model_facts import ModelFacts, facts_in
from clops_sweep.learning.models.starting import starting_weights
from clops_sweep.learning.models.trained_model import model_bytes
from clops_sweep.learning.networks.module_probe import check_stored
from clops_sweep.learning.networks.multitask import joint_scenario
from clops_sweep.learning.networks.on_features import network_options
from clops_sweep.learning.strategies.online import OnlineStream
from clops_sweep.learning.threads import one_thread


@arguments_of_class
class ContinualRun:
    """A network trained on a sequence of tasks and evaluated on all of them after every epoch.

    Three lines run one::

        frames = open_frames("synthetic")
        result = ContinualRun(RunConfig(dataset="synthetic"), frames).run()
        result.runs["auc"]

    Args:
        config: its config.
        frames: the data set, opened with the config's `split_seed` and `normalize`.
        device: the device. On a CPU, a run uses one thread, whatever PyTorch is set to.
        keep_predictions: whether the result includes the probabilities of every test instance after every task.
        keep_models: whether the result includes the networks after the last task, or after all tasks.
        bank_of: creates the frame bank; a `LastBank` shares it among runs.

    Raises:
        UsageError: the data do not fit scenario or network, or the network cannot be trained, or not be stored for
            `keep_models`.

    Attributes:
        config: its config, without what has no effect.
        frames: the data set.
        device: the device.
        scenario: the tasks.
    """

    def __init__(
        self,
        config: RunConfig,
        frames: FrameSet,
        device: str | torch.device = "cpu",
        *,
        keep_predictions: bool = False,
        keep_models: Literal["last", "all"] | None = None,
        bank_of: Callable[[FrameSet, torch.device, NDArray[np.int64]], FrameBank] = FrameBank,
    ) -> None:
        begun = time.perf_counter()
        cpu_begun = time.process_time()
        self.config = config = config.without_unused
        check_frames(config, frames)
        self.frames = frames
        self.device = torch.device(device)
        strategy = STRATEGIES[config.strategy]
        scenario = scenario_of(config, frames)
        self.scenario = joint_scenario(scenario) if strategy.joint else scenario
        self._epochs = _epochs_of_stage(config, len(scenario.tasks), joint=strategy.joint)
        bank = bank_of(frames, self.device, _rows_in_use(scenario))
        learner = learner_of(config, self.scenario, frames, bank)
        if frames.start_model is not None:
            learner.start_from(starting_weights(config, frames, self.scenario))
        if keep_models and is_tried(config):
            shape = frames.channels, frames.samples
            options = network_options(config, frames)
            check_stored(config.network, NETWORKS[config.network], shape, self.scenario.outputs, options)
        if config.augment is not None:
            learner.augment = Augmenter(config.augment, config.seed, config.options_of("augment"))
        tasks = []
        for separate, task in zip(scenario.tasks, self.scenario.tasks, strict=True):
            weights = None
            if config.class_weights is not None:
                weights = balanced(scenario.kind, separate.train.targets)
            tasks.append(self._instances(task.train, weights))
        self._stages = [Instances.union(tasks)] if strategy.joint else tasks
        self._training = Training(config, learner, self._stages, self.scenario.by_position)
        self._generators = GlobalStreams(self.device)
        with self._seeded("setup"):
            self._stream = OnlineStream(strategy, self._training) if config.stream == "online" else None
            self._strategy: Strategy = self._stream or strategy(self._training)
        self._evaluators: dict[SplitName, Evaluator] = {}
        has_validation = len(scenario.tasks[0].validation.rows) > 0
        for split in result.EVALUATED_SPLITS:
            if split == "test" or has_validation:
                self._evaluators[split] = Evaluator(self.scenario, split, learner, joint=strategy.joint)
        self._curves_of: SplitName | None = "validation" if has_validation else config.curves
        self._task = 0
        self._epoch = 0
        self._stopping = None if config.early_stopping is None else EarlyStopping(config.early_stopping)
        self._epochs_trained = 0
        self._epochs_kept: list[int] = []
        """Of each finished task: its epochs, or those up to the one that early stopping returned to."""
        self._curves: list[Evaluation] = []
        self._r: dict[SplitName, list[Evaluation]] = {split: [] for split in self._evaluators}
        self._predictions: list[NDArray[np.float32]] | None = [] if keep_predictions else None
        self._keep_models = keep_models
        self._models: list[dict[str, torch.Tensor]] = []
        self._started_at = datetime.now(UTC)
        self._seconds = {
            "seconds": time.perf_counter() - begun,
            **dict.fromkeys(PHASES, 0.0),
            "cpu_seconds": time.process_time() - cpu_begun,
        }
        """Seconds so far: in total, by phase, and of the CPU."""

    @property
    def learner(self) -> Learner:
        """The network in training."""
        return self._training.learner

    @property
    def strategy(self) -> Strategy:
        """The continual-learning method in training."""
        return self._strategy

    @property
    def tasks(self) -> Sequence[Instances]:
        """Training instances of each task in training order; one task of all instances in joint training."""
        return self._training.tasks

    @property
    def finished(self) -> bool:
        """Whether training has ended."""
        return self._task == len(self._stages)

    @property
    def at_task_end(self) -> bool:
        """Whether a task has just ended, a good moment for a checkpoint."""
        return self._epoch == 0 and self._task > 0

    @property
    def tasks_trained(self) -> int:
        """Number of finished tasks."""
        return self._task

    @property
    def progress(self) -> Progress:
        """The task in training and its finished epochs, 0 before the first; of a finished run, the last task."""
        if self.finished:
            return self._progress(self._task - 1, self._epochs)
        return self._progress(self._task, self._epoch)

    def _progress(self, task: int, epochs: int) -> Progress:
        return Progress(task + 1, self.task_names[task], len(self._stages), epochs, self._epochs)

    def so_far(self, tasks: int) -> dict[str, float]:
        """Return the average of every measure over the first `tasks` tasks after training on them.

        It is the mean of R[k][j] over j <= k for k = `tasks` on the validation split, even if the run has trained more
        tasks.
        """
        evaluation = self._r["validation"][tasks - 1]
        return {measure: float(getattr(evaluation, measure)[:tasks].mean()) for measure in MEASURES}

    def epoch_metrics(self) -> dict[str, float]:
        """Return the curves' values after the last epoch; empty without curves."""
        if not self._curves:
            return {}
        stage = self._task if self.at_task_end else self._task + 1
        tasks = len(self.scenario.tasks) if self._strategy.joint else stage
        return result.metrics_of_epoch(self.scenario, tasks, self._curves[-1])

    def task_metrics(self) -> dict[str, float]:
        """Return the metrics of R after the last task."""
        return result.metrics_of_task(self.scenario, self._r)

    @property
    def task_names(self) -> tuple[str, ...]:
        """Names of the tasks in training order."""
        return (result.ALL_TASKS,) if self._strategy.joint else tuple(task.name for task in self.scenario.tasks)

    def run(self) -> result.RunResult:
        """Return the result after training to the end."""
        while not self.finished:
            self.advance()
        return self.result()

    def advance(self) -> Progress:
        """Train one epoch and evaluate; at the end of a task, store instances and fill a row of R.

        Raises:
            Diverged: the run has diverged.
        """
        task, epoch = self._task, self._epoch
        with self._timed("seconds"), one_thread(), self._seeded("hooks", task, epoch):
            if epoch == 0:
                self._strategy.come_to(task, end=False)
                self._strategy.begin_task(task)
            self._train_epoch(task, epoch)
            self._epoch += 1
            self._epochs_trained += self._strategy.trains(task)
            if self._stopping is None:
                ends = self._evaluate_epoch(task)
            else:
                ends = self._evaluate_and_stop(task, self._stopping)
            if ends:
                self._end_task(task)
        return self._progress(task, epoch + 1)

    @contextmanager
    def _seeded(self, name: str, *counters: int) -> Iterator[None]:
        """Seed the global generators by a stream of the run if it uses a user's plug-ins; restore them after the block.

        So plug-ins that draw from them give the same numbers in every execution of the run.
        """
        config = self.config
        if not any(registry.is_foreign(getattr(config, kind)) for kind, registry in REGISTRIES.items()):
            yield
            return
        with self._generators.kept():
            first, second = streams.key(config.seed, name, *counters).tolist()
            self._generators.seed(seed_of((first, second), 0))
            yield

    def _tasks_seen(self, task: int) -> int:
        """Return the number of tasks that the network was trained on during or after a task."""
        return len(self.scenario.tasks) if self._strategy.joint else task + 1

    def _evaluate_epoch(self, task: int) -> bool:
        """Return whether an epoch was the last of its task, after evaluating the network."""
        ends = self._epoch == self._epochs
        if ends:
            self._end_training(task)
        self._add_to_curves(task)
        return ends

    def _evaluate_and_stop(self, task: int, stopping: EarlyStopping) -> bool:
        """As `_evaluate_epoch`, with early stopping; after the last epoch the network returns to the best one."""
        self._add_to_curves(task)
        losses = self._curves[-1].loss
        loss = losses.mean() if self._strategy.joint else losses[task]
        stops = stopping.ends(self._epoch, float(loss), self._trained_state)
        ends = stops or self._epoch == self._epochs
        if ends:
            self._return_to_best(task, stopping)
        return ends

    def _end_training(self, task: int) -> None:
        with self._timed("seconds_train"):
            self._strategy.end_training(task)

    def _end_task(self, task: int) -> None:
        """Store instances of the task, fill a row of R, and go on to the next task."""
        self._epochs_kept.append(self._epoch)
        with self._timed("seconds_acquire"):
            self._strategy.come_to(task, end=True)
            self._strategy.end_task(task)
        with self._timed("seconds_evaluate"):
            self._add_to_r(task)
        self._task += 1
        self._epoch = 0
        if self._keep_models == "all" or (self._keep_models and self.finished):
            self._models.append(self._training.learner.weights())

    def _add_to_curves(self, task: int) -> None:
        if self._curves_of is not None:
            with self._timed("seconds_evaluate"):
                evaluator = self._evaluators[self._curves_of]
                self._curves.append(evaluator.evaluate(self._tasks_seen(task)))

    def _add_to_r(self, task: int) -> None:
        seen = self._tasks_seen(task)
        evaluator = self._evaluators["test"]
        if "validation" in self._r:
            self._r["validation"].append(self._curves[-1])
        if self._predictions is None:
            evaluation = evaluator.evaluate(seen)
        else:
            evaluation, predictions = evaluator.evaluate_and_predict(seen)
            self._predictions.append(predictions)
        self._r["test"].append(evaluation)

    def _trained_state(self) -> dict[str, Any]:
        """Return copies of the training state."""
        state = {"learner": self._training.learner.state(), "strategy": self._strategy.state()}
        return deepcopy(state)

    def _return_to_best(self, task: int, stopping: EarlyStopping) -> None:
        """Return to the epoch of the task's lowest validation loss."""
        last = self._epoch
        best, state = stopping.best()
        self._epoch = best
        self._training.learner.restore(state["learner"])
        self._strategy.restore(state["strategy"], task)
        self._end_training(task)
        # `end_training` may change the network, so the best epoch is evaluated again
        dropped = last - best + 1
        del self._curves[len(self._curves) - dropped :]
        self._add_to_curves(task)

    def _train_epoch(self, task: int, epoch: int) -> None:
        training = self._training
        config = training.config
        training.learner.learning_rate = config.learning_rate * scheduled(config.schedule, epoch, self._epochs)
        with self._timed("seconds_acquire"):
            replay = self._strategy.replay(task, epoch)
        with self._timed("seconds_train"):
            run_epoch(training, self._strategy, task, epoch, replay)
        # Kernels may turn NaN into zero before the output, so the parameters are checked.
        if not training.learner.parameters.flat.abs().amax().isfinite():
            raise Diverged(
                f"the network has diverged in epoch {epoch + 1} of task {task + 1}: a parameter is not finite; "
                f"learning_rate is {config.learning_rate:g}"
            )

    def result(self) -> result.RunResult:
        """Return the tables of a finished run."""
        if not self.finished:
            raise RuntimeError("the run is not finished")
        with self._timed("seconds"), one_thread():
            records = self._records()
            strategy = self._strategy
            history = result.History(
                curves=self._curves,
                r=self._r,
                records=records,
                parameters=self._training.learner.parameters.entries,
                memory=strategy.memory_use(records),
                stores=strategy.stores,
                counts=strategy.counts(),
                seconds=self._seconds,
                backend=self._training.learner.backend,
                started_at=self._started_at,
                epochs=self._epochs_kept,
                epochs_per_stage=self._epochs,
                epochs_trained=self._epochs_trained,
                predictions=self._predictions or (),
                stream=None if self._stream is None else self._stream.predicted(self.scenario.kind),
            )
            assembled = result.assemble(self.config, self.frames, self.scenario, history)
        assembled.models = self._model_bytes()
        for name in ("seconds", "cpu_seconds"):  # known only now
            assembled.columns["runs"][name] = [self._seconds[name]]
        return assembled

    def _records(self) -> list[InstanceRecord]:
        """Return the records of each task's instances; a joint run records all tasks together."""
        records = [self._strategy.record(stage) for stage in range(len(self._stages))]
        if not self._strategy.joint:
            return records
        return records[0].split([len(task.train.rows) for task in self.scenario.tasks])

    def _model_bytes(self) -> dict[int, bytes]:
        """Return the models by number of tasks trained."""
        models: dict[int, bytes] = {}
        if not self._models:
            return models
        seen = Seen.of(self.scenario, self.frames, ("train", "validation"))
        if self.frames.start_model is not None:
            seen |= facts_in(self.frames.start_model.model).seen
        first = 1 + len(self.scenario.tasks) - len(self._models)
        for trained, weights in enumerate(self._models, start=first):
            facts = ModelFacts.of(self.config, self.frames, self.scenario, trained, seen)
            models[trained] = model_bytes(weights, facts)
        return models

    def state(self) -> dict[str, Any]:
        """Return the complete state, for `torch.save`; call it between two calls of `advance`.

        `torch.load(weights_only=True)` reads it.
        """
        state: dict[str, Any] = {
            "task": self._task,
            "epoch": self._epoch,
            "epochs": [self._epochs_trained, self._epochs_kept],
            "learner": self._training.learner.state(),
            "strategy": self._strategy.state(),
            "curves": _stacked(self._curves),
            "r": {split: _stacked(rows) for split, rows in self._r.items()},
            "seconds": dict(self._seconds),
            "started_at": self._started_at.isoformat(),
        }
        if self._predictions is not None:
            state["outputs"] = [torch.from_numpy(outputs) for outputs in self._predictions]
        if self._keep_models:
            state["models"] = self._models
        if self._stopping is not None:
            state["early_stopping"] = self._stopping.state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state of the same configs; the run continues exactly as it would have.

        Raises:
            KeyError: predictions or models are to be kept, but the state is without them.
            ValueError: an invalid task or epoch.
        """
        if state["task"] not in range(len(self._stages) + 1) or state["epoch"] not in range(self._epochs):
            raise ValueError(f"task {state['task']!r}, epoch {state['epoch']!r}: not of this run")
        if self._predictions is not None:
            self._predictions = [outputs.numpy().copy() for outputs in state["outputs"]]
        if self._keep_models:
            self._models = state["models"]
            if self._keep_models == "all" and len(self._models) != state["task"]:
                raise KeyError("models")
        self._task = state["task"]
        self._epoch = state["epoch"]
        self._epochs_trained, epochs_kept = state["epochs"]
        self._epochs_kept = list(epochs_kept)
        if self._stopping is not None:
            self._stopping.restore(state["early_stopping"])
        self._training.learner.restore(state["learner"])
        self._strategy.restore(state["strategy"], self._task)
        self._curves = _evaluations(state["curves"])
        self._r = {split: _evaluations(rows) for split, rows in state["r"].items()}
        self._seconds = {phase: state["seconds"][phase] for phase in self._seconds}
        self._started_at = datetime.fromisoformat(state["started_at"])

    def _instances(self, subset: Subset, weights: NDArray[np.float32] | None) -> Instances:
        rows = torch.from_numpy(subset.rows).to(self.device)
        targets = torch.from_numpy(subset.targets).to(self.device)
        of_losses = None if weights is None else torch.from_numpy(weights).to(self.device)
        instances = Instances(rows, targets)
        return instances.weighted(of_losses)

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        cpu_start = time.process_time()
        try:
            yield
        finally:
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            self._seconds[phase] += time.perf_counter() - start
            if phase == "seconds":
                self._seconds["cpu_seconds"] += time.process_time() - cpu_start


def learner_of(config: RunConfig, scenario: Scenario, frames: FrameSet, bank: FrameBank) -> Learner:
    """Return the untrained learner of a run, without augmentation."""
    return make_learner(
        config.initial_seed,
        "multilabel" if config.head == "per_class" else scenario.kind,
        scenario.outputs,
        config.learning_rate,
        bank,
        config.network,
        network_options(config, frames),
        optimizer=config.optimizer,
        weight_decay=config.weight_decay,
        precision=config.precision_in_effect,
    )


def _epochs_of_stage(config: RunConfig, tasks: int, *, joint: bool) -> int:
    """Return the number of epochs of a stage of training: tau of a task, N tau of all tasks jointly, 1 of a stream."""
    if config.stream == "online":
        return 1
    return config.epochs_per_task * tasks if joint else config.epochs_per_task


def _rows_in_use(scenario: Scenario) -> NDArray[np.int64]:
    """Return the instances of all splits of a scenario."""
    rows = []
    for task in scenario.tasks:
        rows += [task.train.rows, task.validation.rows, task.test.rows]
    if scenario.unseen is not None:
        rows.append(scenario.unseen.rows)
    return np.concatenate(rows)


def _stacked(evaluations: Sequence[Evaluation]) -> dict[str, torch.Tensor]:
    """Return the arrays of evaluations, stacked into one tensor each: saving thousands of small tensors is slow."""
    stacked: dict[str, torch.Tensor] = {}
    if evaluations:
        for field in fields(Evaluation):
            arrays = [getattr(evaluation, field.name) for evaluation in evaluations]
            stacked[field.name] = torch.from_numpy(np.stack(arrays))
    return stacked


def _evaluations(stacked: Mapping[str, torch.Tensor]) -> list[Evaluation]:
    """Return the evaluations that `_stacked` got."""
    if not stacked:
        return []
    arrays = [stacked[field.name].numpy().copy() for field in fields(Evaluation)]
    return [Evaluation(*values) for values in zip(*arrays, strict=True)]
