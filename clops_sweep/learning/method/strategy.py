"""Strategy: a continual-learning method, defined by a loss or by hooks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NoReturn

import torch

from clops_sweep.errors import Diverged, UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.tasks import capacity_of
from clops_sweep.learning import losses, streams
from clops_sweep.learning.batches import Replay, batch_sizes
from clops_sweep.learning.code_state import numbers_in_code
from clops_sweep.learning.global_streams import seed_of
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.method.batch import FrameBatch, Steps
from clops_sweep.learning.method.feature_head import FeatureHead
from clops_sweep.learning.method.fisher import fisher_information
from clops_sweep.learning.method.frozen import Frozen
from clops_sweep.learning.method.ledger import Ledger
from clops_sweep.learning.method.own_names import check_assignments, in_use, names_in_use
from clops_sweep.learning.method.state import Attributes, check_classes, check_code, in_classes, restored
from clops_sweep.learning.method.training import InstanceRecord, MemoryUse, Stores, Training

_PACKAGE = __name__.partition(".")[0]


class OptionNotListed(UsageError):
    """A method reads an option that it does not list."""


class Strategy:
    """A continual-learning method. Its `loss` defines it; autograd and the optimiser do the rest.

    Example:
        Experience replay, in full:

        >>> @strategy("my_er", options=["memory_fraction", "memory_size"])
        ... class MyReplay(Strategy):
        ...     def setup(self):
        ...         self.memory = Reservoir(self.memory_size)
        ...
        ...     def loss(self, batch):
        ...         loss = self.criterion(self.model(batch.x), batch.y)
        ...         if self.memory:
        ...             old = self.memory.sample(len(batch))
        ...             loss = loss + self.criterion(self.model(old.x), old.y)
        ...         self.memory.offer(batch)
        ...         return loss
        >>> RunConfig(strategy="my_er").memory_fraction
        0.25

    A method that leaves whole epochs to the learner has no `loss`, and overrides hooks, such as `train_epoch` and
    `end_task`. Most built-in methods are of this kind. Without either, it is plain training on a sequence of tasks.

    The attributes of a subclass are its state, and part of every checkpoint: tensors, numbers, strings, memories,
    frozen networks, and lists, tuples and dicts of them. Draw random numbers from `rng`; the global generators of
    PyTorch, NumPy and Python are seeded by the run's seed during training, too.

    Args:
        training: the run.
    """

    joint: ClassVar[bool] = False
    """Whether all tasks are trained on at once, as a single task of N tau epochs."""

    needs_head: ClassVar[Literal["read", "write"] | None] = None
    """Whether the network must end in an `nn.Linear`: the strategy reads its input or writes its weights."""

    stores: Stores | None = None
    """Kind of stored past data. By default (None) "raw" if instances are stored, else "nothing"."""

    not_state: ClassVar[Sequence[str]] = ("training", "_steps", "_head")
    """Attributes that are not part of a checkpoint."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if not cls.__module__.startswith(f"{_PACKAGE}."):
            check_assignments(cls, Strategy)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _IN_USE:
            raise in_use(type(self), Strategy, name, f"self.{name} = ...")
        super().__setattr__(name, value)

    def __deepcopy__(self, memo: dict[int, Any]) -> NoReturn:
        """Refuse copies, as of `copy.deepcopy(self.model)`, which is a method of this object.

        Raises:
            UsageError: always.
        """
        raise self._steps.error(
            "copy.deepcopy of self, or of self.model or another of its methods, would copy the whole run; "
            "self.frozen() returns a copy of the network"
        )

    def __init__(self, training: Training) -> None:
        self.training = training
        self._steps = Steps(training.config.strategy, training)
        self._steps.in_classes = in_classes(type(self), Strategy)
        self._steps.in_code = numbers_in_code(type(self), Strategy)
        self._head: FeatureHead | None = None
        if self.needs_head is not None:
            reads_only = self.needs_head == "read"
            self._head = FeatureHead(training.learner, training.config.network, reads_only=reads_only)
        self.setup()
        attributes_of(self, self._steps).join()

    def setup(self) -> None:
        """Create memories and other state; called once, before the first task."""

    def loss(self, batch: FrameBatch) -> torch.Tensor:
        """Return the loss of a step, a scalar. Called once per step; it may sample from memories and offer to them.

        Args:
            batch: the step's instances of the current task.
        """
        raise NotImplementedError

    def direction(self, gradient: torch.Tensor) -> torch.Tensor:
        """Return the vector that Adam follows, float32 [P]; by default the gradient of the loss."""
        return gradient

    @property
    def config(self) -> RunConfig:
        """The config of the run."""
        return self.training.config

    @property
    def learner(self) -> Learner:
        """The network with its optimiser, for hooks; a loss needs `model` and `predict` alone."""
        return self.training.learner

    @property
    def options(self) -> Options:
        """The options that the strategy lists, by name."""
        return Options(self._steps.name, self.training.config.options)

    @property
    def memory_size(self) -> int:
        """The size of the memory in instances, for `setup`: ``self.memory = Reservoir(self.memory_size)``.

        It is the option `memory_size` if given, else max(1, floor(b N)), where b is the option `memory_fraction` and N
        the number of training instances of all tasks of the run together, later ones included. Built-in methods with a
        memory of fixed size have the same. The method lists both: ``options=["memory_fraction", "memory_size"]``.

        Raises:
            UsageError: the method lists neither option, or `memory_size` alone and the config does not give it; or
                `memory_size` exceeds N.
        """
        size = capacity_of(self.config, sum(len(task.rows) for task in self.training.tasks))
        if size is not None:
            return size
        if "memory_size" in self.config.options:
            raise self._steps.error("self.memory_size: memory_size is not given; expected RunConfig(memory_size=...)")
        raise OptionNotListed(
            f"strategy {self._steps.name!r}: self.memory_size: it lists no option for the size of a memory; add "
            "'memory_fraction' and 'memory_size' to options=[...]"
        )

    @property
    def rng(self) -> Any:
        """A `numpy.random.Generator` of the run's stream, restarted with each epoch and at the end of each task."""
        return self._steps.rng

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self._steps.device

    @property
    def parameters(self) -> torch.Tensor:
        """All parameters of the network, float32 [P], as a leaf of autograd; a loss may depend on them directly.

        They change with every step: keep `self.parameters.detach().clone()`.
        """
        return self._steps.passes.parameters

    def model(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits, float32 [n, C], of frames, float32 [n, channels, samples], in training mode.

        May be called several times per step. Each pass uses the batch statistics of its own frames, which update the
        running statistics in the order of the calls.

        Raises:
            UsageError: called outside `loss` and `direction`, or with an argument that is not frames.
        """
        return self._steps.passes.train(x)

    def predict(self, x: torch.Tensor, parameters: torch.Tensor | None = None) -> torch.Tensor:
        """Return logits, float32 [n, C], in evaluation mode without gradient, by the network's or other parameters."""
        return self._steps.passes.predict(x, parameters)

    def criterion(self, logits: torch.Tensor, y: torch.Tensor, weights: torch.Tensor | None = None) -> torch.Tensor:
        """Return the mean of the scenario's loss, mean_i(weights_i l_i), a scalar; l_i as in `losses.instance_losses`.

        Args:
            logits: [n, C].
            y: targets in [0, 1], [n, C].
            weights: [n], by default ones. With `class_weights`, pass `batch.weights`.

        Raises:
            UsageError: shapes do not match, or missing weights with `class_weights`.
        """
        if logits.dim() != 2 or y.shape != logits.shape:
            raise self._steps.error(
                f"criterion got logits {list(logits.shape)} and targets {list(y.shape)}; expected [n, C] twice"
            )
        if weights is None and self.training.tasks[0].weights is not None:
            raise self._steps.error(
                "criterion needs weights=batch.weights, because the config has class_weights = 'balanced'"
            )
        shares = self._steps.equal_shares(y.shape[0])
        return self._steps.passes.criterion(logits, y, shares if weights is None else weights * shares)

    def losses(self, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the scenario's loss l_i of each instance, [n]; shapes as in `criterion`."""
        return losses.instance_losses(self.learner.kind, logits, y)

    def gradient(self, loss: torch.Tensor) -> torch.Tensor:
        """Return the gradient of a loss with respect to the parameters, float32 [P]; computed once per pass.

        Raises:
            UsageError: the loss is not a scalar, or does not depend on the parameters.
            Diverged: the gradient is not finite.
        """
        return gradient_of(self._steps, loss, "gradient() got")

    def frozen(self) -> Frozen:
        """Return a frozen copy of the network, which maps frames to logits."""
        return Frozen(self.learner.copy())

    def importance(self, task: int) -> torch.Tensor:
        """Return the diagonal Fisher information on a task's training instances, float32 [P], as in EWC; see `ewc`."""
        return fisher_information(self.learner, self.training.tasks[self._steps.seen(task)]).clone()

    def instances(self, task: int) -> FrameBatch:
        """Return all training instances of the current or an earlier task.

        Raises:
            UsageError: a later task.
        """
        return FrameBatch(self._steps, self._steps.ledger.of_task(self._steps.seen(task)))

    def batch(self, index: torch.Tensor) -> FrameBatch:
        """Return training instances by their positions among those of all tasks, int64 [n]."""
        return FrameBatch(self._steps, index)

    @property
    def ledger(self) -> Ledger:
        """The training instances of all tasks by index, and how often each was replayed."""
        return self._steps.ledger

    @property
    def head(self) -> FeatureHead:
        """The last linear layer of the network.

        Raises:
            UsageError: the class does not set `needs_head`.
        """
        if self._head is None:
            raise self._steps.error("self.head: expected a class with needs_head = 'read' or 'write'")
        return self._head

    def come_to(self, task: int, *, end: bool) -> None:
        """Called before `begin_task`, and at the end of a task before `end_task`; the random stream restarts."""
        self._steps.task = task
        self._steps.draw(task, int(end))

    def begin_task(self, task: int) -> None:
        """Called before the first epoch on a task."""

    def replay(self, task: int, epoch: int) -> Replay | None:
        """Return the instances to replay in an epoch (from 0); for methods without a loss."""
        del task, epoch
        return None

    def train_epoch(
        self, task: int, epoch: int, replay: Replay | None, order: torch.Tensor, dropout_keys: torch.Tensor
    ) -> None:
        """Train one epoch on a task's instances and the replayed ones, in a given order (see `Epoch`).

        With a loss, take one step on that of each batch; without, plain steps.
        """
        if has_loss(type(self)):
            if replay is not None:
                raise self._steps.error("has loss() and replay(); sample replayed instances in loss()")
            LossEpoch(self, self._steps, task, epoch, dropout_keys).train(order)
            return
        training = self.training
        training.learner.train_epoch(training.tasks[task], replay, order, training.config.batch_size, dropout_keys)

    def trains(self, task: int) -> bool:
        """Return whether the epochs on a task take gradient steps."""
        del task
        return True

    def end_epoch(self) -> None:
        """Called after the last batch of an epoch."""

    def end_training(self, task: int) -> None:
        """Called after the last epoch on a task, before the networks are evaluated.

        With early stopping, the last epoch is known only then.
        """

    def end_task(self, task: int) -> None:
        """Called after the last epoch on a task, when the networks have been evaluated on the validation set."""

    def record(self, task: int) -> InstanceRecord:
        """Return the facts about the instances of a finished task; those stored are the ones in any memory."""
        ledger = self._steps.ledger
        index = ledger.of_task(task)
        unknown = torch.full(index.shape, torch.nan, device=index.device)
        stored = torch.zeros_like(index, dtype=torch.bool)
        for memory in self._steps.memories:
            stored |= torch.isin(index, memory.index)
        return InstanceRecord(
            s=unknown.to(torch.float64),
            beta=unknown,
            stored=stored,
            times_replayed=ledger.times_replayed(task),
            trajectories=unknown[:, None][:, :0],
        )

    def memory_use(self, records: Sequence[InstanceRecord]) -> MemoryUse:
        """Return the use of all memories together.

        An instance takes the bytes of its signal in the frame cache, of its float32 targets and of its columns.

        Args:
            records: the facts about the instances of all tasks.
        """
        del records
        memories = list(self._steps.memories)
        instances = sum(map(len, memories))
        columns = sum(memory.column_bytes for memory in memories) // max(1, instances)
        return MemoryUse(instances, self.instance_bytes + columns)

    @property
    def instance_bytes(self) -> int:
        """Bytes of the signal and the targets of a stored instance."""
        return self.learner.bank.instance_bytes + 4 * self.learner.outputs

    def counts(self) -> dict[str, int]:
        """Return columns of `runs` that only this strategy fills."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return the state for a checkpoint, without the learner: all attributes."""
        steps = self._steps
        return {"attributes": attributes_of(self, steps).state(), "replayed": steps.ledger.replayed, "task": steps.task}

    def restore(self, state: dict[str, Any], task: int) -> None:
        """Restore a state from `state` during the given task."""
        del task
        for name in vars(self).keys() - set(self.not_state):
            del vars(self)[name]  # what the run had deleted stays so
        for name, value in restored(self._steps, state["attributes"]).items():
            setattr(self, name, value)
        self._steps.ledger.replayed.copy_(state["replayed"])
        self._steps.task = state["task"]


_IN_USE = names_in_use(Strategy)


def has_loss(method: type[Strategy]) -> bool:
    """Return whether a method is defined by a loss."""
    return method.loss is not Strategy.loss


def attributes_of(strategy: Strategy, steps: Steps) -> Attributes:
    """Return the attributes of a strategy, checked."""
    check_classes(steps, steps.in_classes, in_classes(type(strategy), Strategy))
    check_code(steps, steps.in_code, numbers_in_code(type(strategy), Strategy))
    attributes = {name: value for name, value in vars(strategy).items() if name not in strategy.not_state}
    return Attributes(steps, attributes)


class LossEpoch:
    """An epoch of steps on the loss of a strategy.

    Args:
        strategy: the strategy.
        steps: its steps.
        task: index of the task.
        epoch: epoch of the task.
        dropout_keys: int32 [2], keys of the first pass of each step.
    """

    def __init__(self, strategy: Strategy, steps: Steps, task: int, epoch: int, dropout_keys: torch.Tensor) -> None:
        self._strategy = strategy
        self._steps = steps
        self._task = task
        self._epoch = epoch
        self._dropout_keys = dropout_keys

    def train(self, order: torch.Tensor) -> None:
        """Take one step on each batch of the task's instances in an order, int64 [n]."""
        steps = self._steps
        training = steps.training
        steps.draw(self._task, 2, self._epoch)
        sizes = batch_sizes(len(order), self._strategy.config.batch_size, training.learner.smallest_batch)
        index = steps.ledger.of_task(self._task, order)
        instances = steps.ledger.at(index)
        first, second = streams.key(training.seed, "global generators", self._task, self._epoch).tolist()
        with steps.passes.epoch(self._keys_of, seed_of((first, second), 0)):
            for number, batch in enumerate(zip(index.split(sizes), instances.split(sizes), strict=True)):
                index_of_batch, instances_of_batch = batch
                self._step(FrameBatch(steps, index_of_batch, instances=instances_of_batch))
                if not number:
                    attributes_of(self._strategy, steps)  # refuses at once what no checkpoint can hold

    def _keys_of(self, number: int) -> torch.Tensor:
        """Return the dropout keys of a pass, by its number in its step: int32 [2]."""
        if not number:
            return self._dropout_keys
        seed = self._steps.training.seed
        keys = streams.keys(seed, "training dropout of further passes", self._task, self._epoch, number)
        return keys.to(self._steps.device)

    def _step(self, batch: FrameBatch) -> None:
        """Take a step on the loss of a batch, then store what the loss offered to memories."""
        steps = self._steps
        strategy = self._strategy
        steps.waiting = []
        try:
            steps.passes.begin_step()
            gradient = gradient_of(steps, strategy.loss(batch), "loss() returned")
            direction = strategy.direction(gradient)
            if direction is not gradient and not _is_alike(direction, gradient):
                raise steps.error(f"direction() did not return a float32 tensor [{len(gradient)}]")
            steps.training.learner.apply(direction.detach())
            waiting = steps.waiting
        finally:
            steps.waiting = None
        for memory in dict.fromkeys(waiting):
            memory.store_offers()


def _is_alike(direction: object, gradient: torch.Tensor) -> bool:
    """Return whether a direction is a tensor with the shape and type of a gradient."""
    if not isinstance(direction, torch.Tensor):
        return False
    return (direction.shape, direction.dtype) == (gradient.shape, gradient.dtype)


def gradient_of(steps: Steps, loss: object, source: str) -> torch.Tensor:
    """Return the gradient of a loss with respect to the parameters, float32 [P].

    Args:
        steps: the steps of the strategy.
        loss: the loss.
        source: where it comes from, for messages, as in "loss() returned".

    Raises:
        UsageError: the loss is not a scalar, or does not depend on the parameters.
        Diverged: the loss is not finite.
    """
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        kind = f"a tensor {list(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise steps.error(f"{source} {kind}; expected a scalar, such as a mean")
    gradient = None
    if loss.requires_grad:
        if not math.isfinite(loss.item()):
            raise Diverged(f"strategy {steps.name!r}: {source} a loss of {float(loss.detach())}")
        gradient = steps.passes.gradient(loss)
    if gradient is None:
        raise steps.error(f"{source} a loss that depends on no parameter; compute it from self.model(...)")
    return gradient


def run_epoch(training: Training, strategy: Strategy, task: int, epoch: int, replay: Replay | None) -> None:
    """Train a strategy for one epoch (from 0) on a task, with the random streams of that epoch."""
    learner = training.learner
    device = learner.bank.device
    if learner.augment is not None:
        learner.augment.begin_epoch(task, epoch)
    size = len(training.tasks[task].rows)
    if replay is not None:
        size += len(replay.instances.rows)
    order = streams.permutation(training.seed, size, "batch order", task, epoch).to(device)
    dropout_keys = streams.keys(training.seed, "training dropout", task, epoch).to(device)
    strategy.train_epoch(task, epoch, replay, order, dropout_keys)
    strategy.end_epoch()


class Options:
    """The options of a strategy, as attributes."""

    def __init__(self, strategy: str, values: Mapping[str, Any]) -> None:
        self._strategy = strategy
        self._values = values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._values:
            raise OptionNotListed(
                f"strategy {self._strategy!r}: self.options.{name}: it lists no such option; add it to options=..."
            )
        return self._values[name]
