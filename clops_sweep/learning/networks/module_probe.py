"""What a network of the user's must do, seen by trying it on a few frames of noise before anything is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NoReturn

import torch

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError, reason, streams_kept, user_code
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.experiment.tasks import scenario_of
from clops_sweep.learning.global_streams import GlobalStreams
from clops_sweep.learning.networks.layer_trace import LayerTrace, same_bits, traced
from clops_sweep.learning.networks.multitask import joint_scenario
from clops_sweep.learning.networks.run_module import MakeModule, Mode, RunModule, made, trained
from clops_sweep.learning.process_state import torch_state_kept
from clops_sweep.learning.threads import one_thread

_FRAMES, _TRIES = 3, 8
"""Frames of noise; and passes in training in which every parameter must get a gradient once."""

_APART = 1e-3
"""By what share of the largest logit an instance's may differ with the others in its batch: rounding is far less."""

_SHARED = "returns the same module or layer twice; make a new one in each call, for each run has its own"

_ONE_VALUE = ("Expected more than 1 value per channel", "Expected more than 1 spatial element")
"""What PyTorch says of a variance that would be taken of one value."""


@dataclass(frozen=True)
class Probed:
    """What was found out about a network.

    Attributes:
        statistics: names of the layers that keep running statistics: those whose own buffers training changes.
        smallest_batch: instances that a training step needs; 2 where batch statistics are taken over the batch alone.
    """

    statistics: frozenset[str]
    smallest_batch: int

    def check_batch(self, network: str, size: int) -> None:
        """Sees whether a batch is large enough.

        Raises:
            UsageError: it is not.
        """
        if size < self.smallest_batch:
            raise UsageError(
                f"network {network!r} cannot be trained on a batch of one instance, of which a layer would take the "
                "variance; choose a batch_size of 2 or more"
            )


_KNOWN: dict[tuple[Any, ...], tuple[MakeModule, Probed]] = {}


def check_networks(configs: Sequence[RunConfig], frames: Mapping[DataKey, FrameSet]) -> None:
    """Tries the networks that are not built in, each on the shapes that some configs ask of it.

    Raises:
        UsageError: one cannot be trained, in a sentence that names the layer or parameter at fault.
    """
    own = [config for config in configs if config.network in NETWORKS.added]
    fields = ("network", "data_key", "scenario", "task_order", "task_classes", "domain", "strategy", "batch_size")
    asked = {
        (*(getattr(config, name) for name in fields), *sorted(config.options_of("network").items())): config
        for config in own
    }
    for config in asked.values():
        of_config = frames[config.data_key]
        scenario = scenario_of(config, of_config)
        if STRATEGIES[config.strategy].joint:
            scenario = joint_scenario(scenario)
        shape = (of_config.channels, of_config.samples)
        found = probed(config.network, NETWORKS[config.network], shape, scenario.outputs, config.options_of("network"))
        found.check_batch(config.network, config.batch_size)


def probed(
    name: str, make: MakeModule, shape: tuple[int, int], outputs: int, options: Mapping[str, Any] | None = None
) -> Probed:
    """Tries a network on the CPU, once for each shape of frames, number of outputs and choice of options.

    Args:
        name: of the network, for messages.
        make: what was registered under it.
        shape: channels and samples of a frame.
        outputs: C.
        options: its own.

    Raises:
        UsageError: it cannot be trained.
    """
    options = options or {}
    key = (name, shape, outputs, tuple(sorted(options.items())))
    known = _KNOWN.get(key)
    if known is None or known[0] is not make:
        with streams_kept(), torch_state_kept(), one_thread(), GlobalStreams(torch.device("cpu")).kept():
            known = _KNOWN[key] = make, _Probe(name, make, shape, outputs, options).found()
    return known[1]


class _Probe:
    """One network under test."""

    def __init__(
        self, name: str, make: MakeModule, shape: tuple[int, int], outputs: int, options: Mapping[str, Any]
    ) -> None:
        self._name, self._outputs = name, outputs
        self._module = made(name, make, 0, shape, outputs, options)
        self._again = made(name, make, 0, shape, outputs, options)
        stream = torch.Generator().manual_seed(0)
        self._frames = torch.randn(_FRAMES, *shape, generator=stream)
        self._others = torch.randn(_FRAMES, *shape, generator=stream)
        self._generators = GlobalStreams(torch.device("cpu"))

    def found(self) -> Probed:
        """Looks at everything; what is plain comes first."""
        self._check_parameters()
        self._check_evaluation()
        statistics = self._check_training()
        self._check_gradients()
        self._check_sampling(statistics)
        return Probed(statistics, self._smallest_batch())

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(f"network {self._name!r}: {what}")

    def _refusing(self, what: Callable[[], str]) -> AbstractContextManager[None]:
        return user_code(lambda error: UsageError(f"network {self._name!r}: {what()} ({reason(error)})"))

    def _check_parameters(self) -> None:
        if any(isinstance(part, torch.jit.ScriptModule) for part in self._module.modules()):
            self._refuse("holds a module compiled by torch.jit.script; expected the module itself")
        parameters, others = trained(self._module), trained(self._again)
        if not parameters:
            self._refuse("has no parameter that asks for a gradient, so there is nothing to train")
        if {id(parameter) for parameter in others.values()} & {id(parameter) for parameter in parameters.values()}:
            self._refuse(_SHARED)
        for name, parameter in parameters.items():
            if parameter.dtype != torch.float32:
                self._refuse(f"parameter {name!r} is {_type(parameter)}; expected float32")
            if parameter.device.type != "cpu":
                self._refuse(f"parameter {name!r} is made on {parameter.device}; make it on the CPU, it is moved later")
            if not parameter.isfinite().all():
                self._refuse(f"parameter {name!r} is not finite when it is made")
        first, second = self._module.state_dict(), self._again.state_dict()
        for name, value in first.items():
            if name not in second or not same_bits(value, second[name]):
                self._refuse(
                    f"{name!r} is another one when the network is made again from the same seed; draw it from the "
                    "global generator of PyTorch, NumPy or Python, which follows the run's seed"
                )
        if len(others) != len(parameters):
            self._refuse("has other parameters when it is made again")

    def _check_evaluation(self) -> None:
        module, before = self._module, {name: value.clone() for name, value in self._module.state_dict().items()}
        logits, trace = self._pass("evaluation", self._frames, seed=1)
        if not logits.isfinite().all():
            at_fault = trace.first_that(lambda call: _finite(call.given) and not _finite(call.returned))
            self._refuse(f"returns what is not finite for frames of noise, first in {at_fault}")
        for name, value in module.state_dict().items():
            if name not in before or not same_bits(value, before[name]):
                self._refuse(
                    f"changes {name!r} in evaluation mode; do so in training alone, where self.training is True"
                )
        drawn, other = self._pass("evaluation", self._frames, seed=2)
        self._pass("evaluation", self._others, seed=1)  # what a module keeps of it would show in the next
        self._require_same("evaluation", (logits, trace), self._pass("evaluation", self._frames, seed=1))
        if not same_bits(logits, drawn):
            self._refuse(
                f"is random in evaluation mode, first in {trace.first_difference(other)}; draw in training alone, as "
                "F.dropout(x, p, self.training) does"
            )
        alone = torch.cat([self._pass("evaluation", frame[None], seed=1)[0] for frame in self._frames])
        if (alone - logits).abs().max() > _APART * (logits.abs().max() + 1e-6):
            self._refuse(
                "gives an instance other logits in evaluation mode when others are in its batch; layers must keep the "
                "instances of a batch apart (batch_first=True, track_running_stats=True)"
            )

    def _check_training(self) -> frozenset[str]:
        """What training must do; the layers that keep running statistics."""
        module = RunModule(self._module, self._outputs, ())
        parameters = {name: id(parameter) for name, parameter in trained(self._module).items()}
        before = {name: value.clone() for name, value in module.buffers.items()}
        passes = []
        for _ in range(2):
            passes.append(self._pass("training", self._frames, seed=1))
            after = module.buffers
            changed = [
                name for name, value in after.items() if name not in before or not same_bits(value, before[name])
            ]
            if any(after[name] is buffer for name, buffer in self._again.named_buffers() if name in changed):
                self._refuse(_SHARED)
            if after.keys() != before.keys():
                self._refuse(f"has other buffers after a pass: {sorted(after.keys() ^ before.keys())[0]!r}")
            module.take_buffers(before)
        if {name: id(parameter) for name, parameter in trained(self._module).items()} != parameters:
            self._refuse("puts other parameters in the place of its own in a pass; make them when it is made")
        self._require_same("training", *passes)
        return frozenset(name.rpartition(".")[0] for name in changed)

    def _check_gradients(self) -> None:
        parameters, missing = trained(self._module), set(trained(self._module))
        for attempt in range(_TRIES):
            logits, _ = self._pass("training", self._frames, seed=attempt, gradients=True)
            if not logits.requires_grad:
                self._refuse("its logits hang on none of its parameters (a detach(), argmax or numpy() in forward?)")
            foreign = [leaf for leaf in _leaves(logits) if all(leaf is not it for it in parameters.values())]
            if foreign:
                self._refuse(
                    f"trains a tensor {list(foreign[0].shape)} that is no parameter; make it an nn.Parameter that "
                    "is an attribute, and put layers of a list into nn.ModuleList"
                )
            self._module.zero_grad()
            with self._refusing(lambda: f"raises in its backward pass on frames {list(self._frames.shape)}"):
                (logits * torch.linspace(-1, 1, logits.numel()).view(logits.shape)).sum().backward()
            for name, parameter in parameters.items():
                if parameter.grad is not None:
                    missing.discard(name)
                    if not parameter.grad.isfinite().all():
                        self._refuse(f"parameter {name!r} has a gradient that is not finite for frames of noise")
            if not missing:
                return
        without = next(name for name in parameters if name in missing)
        self._refuse(
            f"parameter {without!r} gets no gradient in training; leave it out, or set requires_grad = False where it "
            "is to stay as it is"
        )

    def _check_sampling(self, statistics: frozenset[str]) -> None:
        module = RunModule(self._module, self._outputs, statistics)
        before = {name: value.clone() for name, value in module.buffers.items()}
        self._pass("sampling", self._frames, seed=1, module=module)
        for name, value in module.buffers.items():
            if not same_bits(value, before[name]):
                self._refuse(f"changes {name!r} with dropout on and running statistics as they are")

    def _smallest_batch(self) -> int:
        with self._refusing(lambda: "raises in training on a batch of one instance"):
            try:
                self._raw("training", self._frames[:1], 1, None)
            except ValueError as error:
                if not str(error).startswith(_ONE_VALUE):
                    raise
                return 2
        return 1

    def _require_same(
        self, mode: Mode, one: tuple[torch.Tensor, LayerTrace], other: tuple[torch.Tensor, LayerTrace]
    ) -> None:
        if not same_bits(one[0], other[0]):
            self._refuse(
                f"gives other logits in {mode} when it is asked again, first in {one[1].first_difference(other[1])}; a "
                "module must keep nothing from one call to the next but in buffers in training, and draw from nothing "
                "but the global generators"
            )

    def _pass(
        self,
        mode: Mode,
        frames: torch.Tensor,
        seed: int,
        *,
        gradients: bool = False,
        module: RunModule | None = None,
    ) -> tuple[torch.Tensor, LayerTrace]:
        """Logits of some frames, and what led to them."""
        with (
            torch.set_grad_enabled(gradients),
            traced(self._module) as trace,
            self._refusing(lambda: f"raises on frames {list(frames.shape)}, in {trace.unfinished}"),
        ):
            logits = self._raw(mode, frames, seed, module)
        expected = [len(frames), self._outputs]
        if not isinstance(logits, torch.Tensor):
            self._refuse(f"returns {type(logits).__name__}; expected a tensor of logits {expected}")
        if logits.layout != torch.strided:
            self._refuse(f"returns logits that are sparse; expected a dense tensor {expected}")
        if list(logits.shape) != expected:
            found = f"returns logits {list(logits.shape)} for frames {list(frames.shape)}"
            self._refuse(f"{found}; expected [B, outputs] = {expected}")
        if logits.dtype != torch.float32:
            self._refuse(f"returns logits of {_type(logits)}; expected float32")
        return logits, trace

    def _raw(self, mode: Mode, frames: torch.Tensor, seed: int, module: RunModule | None) -> torch.Tensor:
        module = module or RunModule(self._module, self._outputs, ())
        module.set(mode)
        self._generators.seed(seed)
        logits: torch.Tensor = self._module(frames.clone())
        return logits


def _leaves(result: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors that a gradient of a result would be accumulated in."""
    seen, left = set(), [result.grad_fn]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        left += [following for following, _ in node.next_functions]


def _finite(tensors: Sequence[torch.Tensor]) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in tensors)


def _type(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
