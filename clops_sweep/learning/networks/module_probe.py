"""Checks of a user's network on a few frames of noise before any training."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import torch
from safetensors.torch import load, save
from torch import nn

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import OF_USERS, UsageError, reason, user_code
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.network_input import is_tried
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.experiment.tasks import with_tasks
from clops_sweep.learning.global_streams import GlobalStreams
from clops_sweep.learning.networks.head import head_of
from clops_sweep.learning.networks.kept_state import attributes_of, kept_by
from clops_sweep.learning.networks.multitask import joint_scenario
from clops_sweep.learning.networks.on_features import network_options
from clops_sweep.learning.networks.run_module import (
    MakeModule,
    Mode,
    RunModule,
    load_weights,
    made,
    trained,
    weights_of,
)
from clops_sweep.learning.process_state import torch_state_kept
from clops_sweep.learning.threads import one_thread

_FRAMES = 3
"""Number of noise frames."""

_TRIES = 8
"""Number of training passes in which every parameter must get a gradient at least once."""

_APART = 1e-3
"""Tolerance for an instance's logits in different batches, relative to the largest logit: rounding errors are far
smaller."""

_SUM_APART = 1e-5
"""Tolerance for the sum of probabilities."""

_MOVES = 5
"""Number of networks with other weights whose outputs tell a final softmax or sigmoid from small logits."""

_MOVED_BY = 0.3
"""Standard deviation of the noise that is added to their weights."""

_ONE_VALUE = ("Expected more than 1 value per channel", "Expected more than 1 spatial element")
"""Text of PyTorch's error about the variance of a single value."""


@dataclass(frozen=True)
class Probed:
    """Results of the checks of a network.

    Attributes:
        statistics: names of the layers that keep running statistics: those whose own buffers training changes.
        smallest_batch: minimum number of instances in a training step; 2 if statistics are over the batch alone.
        doubt: a sentence on outputs that may not be logits; else empty.
    """

    statistics: frozenset[str]
    smallest_batch: int
    doubt: str = ""

    def check_batch(self, network: str, size: int) -> None:
        """Check that a batch is large enough.

        Raises:
            UsageError: the batch is too small.
        """
        if size < self.smallest_batch:
            raise UsageError(
                f"network {network!r} cannot be trained on a batch of one instance, because a layer computes the "
                "variance over the batch; choose a batch_size of 2 or more"
            )


_KNOWN: dict[tuple[Any, ...], tuple[MakeModule, Probed]] = {}
_STORED: dict[tuple[Any, ...], MakeModule] = {}


def check_networks(
    configs: Sequence[RunConfig], frames: Mapping[DataKey, FrameSet], *, keep_models: bool = False
) -> list[str]:
    """Check networks that are not built in, or whose layers are replaced, on the shapes of their configs.

    Args:
        configs: the configs.
        frames: the frames of each.
        keep_models: whether the trained networks will be stored.

    Returns:
        A sentence for each network whose outputs may not be logits.

    Raises:
        UsageError: a network cannot be trained, or not be stored; the message names the layer or parameter at fault.
    """
    tried = [config for config in configs if is_tried(config)]
    with_head = set[tuple[Any, ...]]()
    doubts = dict[str, None]()
    for config, separate in with_tasks(tried, frames):
        of_config = frames[config.data_key]
        strategy = STRATEGIES[config.strategy]
        scenario = joint_scenario(separate) if strategy.joint else separate
        name = config.network
        make = NETWORKS[name]
        shape = of_config.channels, of_config.samples
        outputs = scenario.outputs
        options = network_options(config, of_config)
        if NETWORKS.is_foreign(name) or config.lora_rank:
            checks = probed(name, make, shape, outputs, options)
            checks.check_batch(name, config.batch_size)
            if checks.doubt:
                doubts[f"network {name!r}: {checks.doubt}"] = None
        if keep_models:
            check_stored(name, make, shape, outputs, options)
        key = name, shape, outputs, strategy.needs_head, *sorted(options.items())
        if key not in with_head:  # made once for all configs with such a network
            with_head.add(key)
            module = made(name, make, 0, shape, outputs, options)
            if strategy.needs_head is not None:
                head_of(name, module, outputs, bias=strategy.needs_head == "write")
    return list(doubts)


def probed(
    name: str, make: MakeModule, shape: tuple[int, int], outputs: int, options: Mapping[str, Any] | None = None
) -> Probed:
    """Return the results of checks on the CPU, once per network, shape of frames, number of outputs and options.

    Args:
        name: name of the network, for messages.
        make: its registered function.
        shape: channels and samples of a frame.
        outputs: C.
        options: options of the network.

    Raises:
        UsageError: the network cannot be trained.
    """
    options = options or {}
    key = (name, shape, outputs, tuple(sorted(options.items())))
    cached_make, checks = _KNOWN.get(key, (None, None))
    if checks is None or cached_make is not make:
        with torch_state_kept(), one_thread(), GlobalStreams(torch.device("cpu")).kept():
            checks = _Probe(name, make, shape, outputs, options).checks()
        _KNOWN[key] = make, checks
    return checks


def check_stored(
    name: str, make: MakeModule, shape: tuple[int, int], outputs: int, options: Mapping[str, Any] | None = None
) -> None:
    """Check that a stored model is the network that was evaluated; arguments as in `probed`.

    A network with weights of its own is stored, and loaded into one that is made from another seed.

    Raises:
        UsageError: it cannot be stored, or its outputs depend on something that is neither parameter nor buffer.
    """
    options = options or {}
    key = (name, shape, outputs, tuple(sorted(options.items())))
    if _STORED.get(key) is make:
        return
    stream = torch.Generator().manual_seed(0)
    frames = torch.randn(_FRAMES, *shape, generator=stream)

    def refused(error: BaseException) -> UsageError:
        return UsageError(f"network {name!r}: its models cannot be stored ({reason(error)})")

    with torch_state_kept(), one_thread(), GlobalStreams(torch.device("cpu")).kept(), torch.no_grad():
        evaluated = made(name, make, 1, shape, outputs, options)
        loaded = made(name, make, 0, shape, outputs, options)
        with user_code(refused):
            _move_parameters(evaluated, stream)
            evaluated.train()(frames.clone())
            stored = save(weights_of(name, evaluated))
            load_weights(loaded, load(stored))
            logits = evaluated.eval()(frames.clone())
            logits_of_loaded = loaded.eval()(frames.clone())
            is_same = same_bits(logits, logits_of_loaded)
    if not is_same:
        raise UsageError(
            f"network {name!r}: its outputs depend on something that a stored model lacks; make every tensor that it "
            "computes with an nn.Parameter, or a buffer by register_buffer"
        )
    _STORED[key] = make


class _Probe:
    """One network under test."""

    def __init__(
        self, name: str, make: MakeModule, shape: tuple[int, int], outputs: int, options: Mapping[str, Any]
    ) -> None:
        self._name = name
        self._module = made(name, make, 0, shape, outputs, options)
        self._again = made(name, make, 0, shape, outputs, options)
        self._make_another = partial(made, name, make, 0, shape, outputs, options)
        self._outputs = outputs
        self._run = RunModule(self._module, outputs, ())
        self._noise = torch.Generator().manual_seed(0)
        self._frames = torch.randn(_FRAMES, *shape, generator=self._noise)
        self._other_frames = torch.randn(_FRAMES, *shape, generator=self._noise)
        self._generators = GlobalStreams(torch.device("cpu"))

    def checks(self) -> Probed:
        """Run all checks, the simplest first, and return their results."""
        self._check_parameters()
        self._check_evaluation()
        doubt = self._check_logits()
        statistics = self._check_training()
        self._check_gradients()
        smallest = self._smallest_batch()
        self._check_resumption()
        return Probed(statistics, smallest, doubt)

    def _refuse(self, problem: str) -> NoReturn:
        raise UsageError(f"network {self._name!r}: {problem}")

    def _refusing(self, occasion: str) -> AbstractContextManager[None]:
        """Return a context for calls of the module in which errors name the layer that raised them."""

        def refused(error: BaseException) -> UsageError:
            layer = _layer_that_raised(self._module, error)
            return UsageError(f"network {self._name!r}: raises {occasion}{layer} ({reason(error)})")

        return user_code(refused)

    def _check_parameters(self) -> None:
        parameters = trained(self._module)
        if not parameters:
            self._refuse("has no parameter that asks for a gradient, so there is nothing to train")
        parameters_again = {id(parameter) for parameter in trained(self._again).values()}
        if any(id(parameter) in parameters_again for parameter in parameters.values()):
            self._refuse("returns the same module or layer twice; make a new one in each call, as each run has its own")
        for name, parameter in parameters.items():
            if parameter.dtype != torch.float32:
                self._refuse(f"parameter {name!r} is {str(parameter.dtype).removeprefix('torch.')}; expected float32")
            if parameter.device.type != "cpu":
                self._refuse(f"parameter {name!r} is created on {parameter.device}; create it on the CPU")
            if not parameter.isfinite().all():
                self._refuse(f"parameter {name!r} is not finite when it is created")
        for name, buffer in self._module.named_buffers():
            if buffer.layout != torch.strided or _is_expanded(buffer):
                self._refuse(f"buffer {name!r} is sparse or expanded; register a dense copy (to_dense() or clone())")
        self._check_memory(parameters)
        changed = changed_in(_tensors(self._module), _tensors(self._again))
        if changed:
            self._refuse(
                f"{changed[0]!r} differs when the network is created again from the same seed; draw it from the "
                "global generator of PyTorch, NumPy or Python, which follows the run's seed"
            )

    def _check_memory(self, parameters: Mapping[str, nn.Parameter]) -> None:
        """Check that no tensor lies in the memory of a trained parameter, which a learner moves without it."""
        others = _held(self._module)
        for name, parameter in parameters.items():
            for other, tensor in others.items():
                if tensor is not parameter and _overlap(parameter, tensor):
                    self._refuse(
                        f"{other!r} shares memory with parameter {name!r}, and training would move them apart; assign "
                        "the parameter itself, as in decoder.weight = encoder.weight, or compute one from the other in "
                        "forward"
                    )

    def _check_evaluation(self) -> None:
        before = {name: value.clone() for name, value in _tensors(self._module).items()}
        with self._parameters_kept():
            logits = self._pass("evaluation", self._frames, seed=1)
        if not logits.isfinite().all():
            self._refuse("returns logits that are not finite for frames of noise")
        changed = changed_in(before, _tensors(self._module))
        if changed:
            self._refuse(f"changes {changed[0]!r} in evaluation mode; do so only where self.training is True")
        self._pass("evaluation", self._other_frames, seed=1)  # anything kept from this pass would show in the next
        self._evaluated = logits
        logits_again = self._pass("evaluation", self._frames, seed=2)
        if not same_bits(logits, logits_again):
            self._refuse(
                "gives other logits in evaluation mode when it is called again; draw random numbers in training alone, "
                "as F.dropout(x, p, self.training) does, and keep nothing from one call to the next"
            )
        alone = torch.cat([self._pass("evaluation", frame[None], seed=1) for frame in self._frames])
        if (alone - logits).abs().max() > _APART * (logits.abs().max() + 1e-6):
            self._refuse(
                "gives an instance other logits in evaluation mode when others are in its batch; layers must keep the "
                "instances of a batch apart (batch_first=True, track_running_stats=True)"
            )

    def _check_logits(self) -> str:
        """Refuse probabilities of a softmax, and return a sentence on other outputs that may not be logits; else "".

        Small logits may look alike, so that networks with other weights must agree.
        """
        kinds = _kinds_of_outputs(self._evaluated)
        if not kinds:
            return ""
        stream = torch.Generator().manual_seed(0)
        frames = torch.cat([self._frames, self._other_frames])
        for _ in range(_MOVES):
            module = self._make_another()
            _move_parameters(module, stream, _MOVED_BY)
            try:
                with torch.no_grad():
                    outputs = module.eval()(frames.clone())
            except OF_USERS:  # such as a check of its own weights
                return ""
            kinds &= _kinds_of_outputs(outputs)
        if "softmax" in kinds:
            self._refuse(
                "returns probabilities, rows that sum to 1, instead of logits; leave out the final softmax, because "
                "losses apply it"
            )
        if "log-softmax" in kinds:
            return (
                "returns logarithms of probabilities instead of logits; leave out the final log-softmax, because "
                "losses apply it"
            )
        if "bounded" in kinds:
            return (
                "returns values from 0 to 1 alone; losses take logits: leave out a final sigmoid, because they apply it"
            )
        return ""

    @contextmanager
    def _parameters_kept(self) -> Iterator[None]:
        """Return a context for a pass that may neither change parameters nor give them other memory."""
        before = [(name, value, value.data_ptr(), value.clone()) for name, value in self._module.named_parameters()]
        yield
        for name, value, memory, copied in before:
            if value.data_ptr() != memory or not same_bits(value, copied):
                self._refuse(
                    f"changes or replaces parameter {name!r} in a pass, which steps of the optimizer alone may change; "
                    "bound weights by torch.nn.utils.parametrize.register_parametrization"
                )

    def _check_training(self) -> frozenset[str]:
        """Check that training is repeatable; return the layers that keep running statistics."""
        before = {name: value.clone() for name, value in self._run.buffers.items()}
        passes = []
        kept = []
        changed: list[str] = []
        for _ in range(2):
            with self._parameters_kept():
                passes.append(self._pass("training", self._frames, seed=1))
            kept.append(kept_by(self._module))
            after = self._run.buffers
            if after.keys() != before.keys():
                in_one_alone = sorted(after.keys() ^ before.keys())
                self._refuse(f"has other buffers after a pass: {in_one_alone[0]!r}")
            changed = changed_in(before, after)
            self._run.take_buffers(before)
        if not same_bits(*passes):
            self._refuse(
                "gives other logits in training when it is called again; keep nothing from one call to the next except "
                "in buffers, and draw only from the global generators"
            )
        if grown := changed_in(*kept):
            self._refuse(
                f"changes {grown[0]!r} from one training pass to the next, which no checkpoint contains; make it a "
                "buffer by register_buffer"
            )
        if not same_bits(self._evaluated, self._pass("evaluation", self._frames, seed=1)):
            self._refuse(
                "gives other logits in evaluation mode after a training pass with the same buffers; keep statistics in "
                "buffers (register_buffer), which checkpoints and models include"
            )
        evaluated = kept_by(self._module)
        self._pass("evaluation", self._frames, seed=1)
        if grown := changed_in(evaluated, kept_by(self._module)):
            self._refuse(
                f"changes {grown[0]!r} from one pass in evaluation mode to the next, which no checkpoint contains; "
                "leave it out"
            )
        return frozenset(name.rpartition(".")[0] for name in changed)

    def _check_gradients(self) -> None:
        parameters = trained(self._module)
        missing = list(parameters)
        for attempt in range(_TRIES):
            logits = self._pass("training", self._frames, seed=attempt, gradients=True)
            if not logits.requires_grad:
                self._refuse("its logits depend on none of its parameters (a detach(), argmax or numpy() in forward?)")
            own = {id(parameter) for parameter in parameters.values()}
            foreign = [leaf for leaf in _leaves(logits) if id(leaf) not in own]
            if foreign:
                self._refuse(
                    f"trains a tensor {list(foreign[0].shape)} that is no parameter; make it an nn.Parameter that "
                    "is an attribute, and put layers of a list into nn.ModuleList"
                )
            by_logits = torch.linspace(-1, 1, logits.numel()).view(logits.shape)
            with self._refusing(f"in its backward pass on frames {list(self._frames.shape)}"):
                (logits * by_logits).sum().backward()
            missing = [name for name in missing if parameters[name].grad is None]
            if not missing:
                return
        self._refuse(
            f"parameter {missing[0]!r} gets no gradient in training; leave it out, or set requires_grad = False where "
            "it is to stay as it is"
        )

    def _smallest_batch(self) -> int:
        with self._refusing("in training on a batch of one instance"):
            try:
                self._raw("training", self._frames[:1], 1)
            except ValueError as error:
                if not str(error).startswith(_ONE_VALUE):
                    raise
                return 2
        return 1

    def _check_resumption(self) -> None:
        """Check that parameters and buffers are all that a checkpoint needs.

        A new module takes those of the module that was tried, after steps that moved the parameters. Both then compute
        the same passes.
        """
        _move_parameters(self._module, self._noise)
        with self._parameters_kept():
            self._pass("training", self._other_frames, seed=1)
        _move_parameters(self._module, self._noise)
        parameters = trained(self._module)
        buffers = {name: buffer.clone() for name, buffer in self._run.buffers.items()}
        expected = self._passes()
        for name, parameter in trained(self._again).items():
            parameter.data = parameters[name].data.clone()
        self._module = self._again
        self._run = RunModule(self._again, self._outputs, ())
        self._run.take_buffers(buffers)
        resumed = self._passes()
        if not all(same_bits(*pair) for pair in zip(expected, resumed, strict=True)):
            self._refuse(
                "gives other logits when a new module takes its parameters and buffers, so a resumed run would differ; "
                "compute what follows from parameters in each pass, and make all else that a pass uses a buffer by "
                "register_buffer"
            )

    def _passes(self) -> list[torch.Tensor]:
        """Return the logits of an evaluation pass and a training pass, and the buffers after both."""
        with self._parameters_kept():
            evaluated = self._pass("evaluation", self._frames, seed=1)
            trained_on = self._pass("training", self._frames, seed=2)
        buffers = [buffer.clone() for buffer in self._run.buffers.values()]
        return [evaluated, trained_on, *buffers]

    def _pass(self, mode: Mode, frames: torch.Tensor, seed: int, *, gradients: bool = False) -> torch.Tensor:
        """Return the logits of some frames."""
        with torch.set_grad_enabled(gradients), self._refusing(f"on frames {list(frames.shape)}"):
            logits = self._raw(mode, frames, seed)
        wrong = self._run.wrong(logits, len(frames))
        if wrong:
            self._refuse(wrong)
        return logits

    def _raw(self, mode: Mode, frames: torch.Tensor, seed: int) -> torch.Tensor:
        self._run.set(mode)
        self._generators.seed(seed)
        logits: torch.Tensor = self._module(frames.clone())
        return logits


def _kinds_of_outputs(outputs: torch.Tensor) -> set[str]:
    """Return what outputs [B, C] may be other than logits: "softmax", "log-softmax", and "bounded" if in [0, 1].

    Those that are not finite have no kind.
    """
    kinds = set[str]()
    if not outputs.isfinite().all():
        return kinds
    if ((outputs >= 0) & (outputs <= 1)).all():
        kinds.add("bounded")
        if _sum_to_one(outputs):
            kinds.add("softmax")
    if (outputs <= 0).all() and _sum_to_one(outputs.exp()):
        kinds.add("log-softmax")
    return kinds


def _sum_to_one(rows: torch.Tensor) -> bool:
    """Return whether each of rows [B, C] sums to 1."""
    return bool(((rows.double().sum(1) - 1).abs() <= _SUM_APART).all())


def _move_parameters(module: nn.Module, stream: torch.Generator, deviation: float = 0.01) -> None:
    """Add noise to the trained parameters, as steps of an optimizer would."""
    for parameter in trained(module).values():
        noise = torch.randn(parameter.shape, generator=stream)
        parameter.data = parameter.data + deviation * noise


def _is_expanded(tensor: torch.Tensor) -> bool:
    """Return whether several entries of a tensor share memory, as `expand` makes them."""
    steps = zip(tensor.stride(), tensor.shape, strict=True)
    return any(step == 0 and length > 1 for step, length in steps)


def _layer_that_raised(module: nn.Module, error: BaseException) -> str:
    """Return the innermost layer in the traceback of an error, as in ", in layer 'head' (Linear)"."""
    names = {id(layer): name for name, layer in module.named_modules() if name}
    innermost = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        caller = frame.f_locals.get("self")
        if id(caller) in names:
            innermost = f", in layer {names[id(caller)]!r} ({type(caller).__name__})"
    return innermost


def _tensors(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return parameters and buffers by name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _held(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return parameters, buffers and plain attributes that are dense tensors, by name."""
    attributes = {name: value for name, value in attributes_of(module).items() if isinstance(value, torch.Tensor)}
    tensors = {**_tensors(module), **attributes}
    return {name: tensor for name, tensor in tensors.items() if tensor.layout == torch.strided}


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two dense tensors have an entry in the same memory."""
    storages = [tensor.untyped_storage() for tensor in (one, other)]
    if not storages[0].data_ptr() or storages[0].data_ptr() != storages[1].data_ptr():
        return False
    first, second = (_places(tensor) for tensor in (one, other))
    return bool(torch.isin(first, second).any())


def _places(tensor: torch.Tensor) -> torch.Tensor:
    """Return where the entries of a tensor begin in its storage, in bytes."""
    places = torch.full(tensor.shape, int(tensor.storage_offset()))
    for axis, (length, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        along = (1,) * axis + (length,) + (1,) * (tensor.dim() - axis - 1)
        places = places + step * torch.arange(length).view(along)
    return places.flatten() * tensor.element_size()


def changed_in(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> list[str]:
    """Return the names of tensors that differ, or that only one of the two has."""
    changed = []
    for name in dict.fromkeys([*before, *after]):
        in_both = name in before and name in after
        if not in_both or not same_bits(before[name], after[name]):
            changed.append(name)
    return changed


def same_bits(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether shape, type and all values are equal, with nan equal to nan."""
    if (first.shape, first.dtype) != (second.shape, second.dtype):
        return False
    are_nan = (first != first) & (second != second)
    return bool(((first == second) | are_nan).all())


def _leaves(result: torch.Tensor) -> Iterator[torch.Tensor]:
    """Return the tensors that accumulate the gradient of a result."""
    visited = set()
    waiting = [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        waiting += [following for following, _ in node.next_functions]
