"""Passes that are recorded once per shape and replayed. On a GPU, a recording is a CUDA graph.

A small network spends most of a pass on a GPU on starting kernels, one by one. A CUDA graph starts them all at once.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from clops_sweep.errors import reason
from clops_sweep.learning.networks.run_module import RunModule, trained

Function = Callable[..., torch.Tensor]
"""Maps the tensors that change from pass to pass to logits."""

Pass = Callable[[], "torch.Tensor | None"]
"""A pass over tensors that stay in place; returns logits, or None if it only writes."""

MOST = 32
"""Recordings of a network; a pass of any further shape is computed kernel by kernel."""

_APART = 1e-3
"""Tolerance of a replay, relative to the largest value of the pass that it replaces."""

NOT_RECORDED: dict[str, str] = {}
"""Networks whose passes cannot be recorded, and why; so that a process tries once."""

_DEPEND_ON_VALUES = frozenset(
    {
        "__bool__",
        "__float__",
        "__index__",
        "__int__",
        "argwhere",
        "cpu",
        "item",
        "masked_select",
        "nonzero",
        "numpy",
        "tolist",
        "unique",
        "unique_consecutive",
    }
)
"""Functions and methods of tensors after which the host knows values, or the shape of a result depends on them."""


class Recorder(Protocol):
    """Records passes."""

    def record(self, work: Pass) -> Pass:
        """Return a function that repeats a pass over the same tensors, as if it was called again."""


class CudaRecorder:
    """Recorder of CUDA graphs, whose intermediate results share memory.

    Graphs of one recorder must be replayed in the order in which they were recorded, unless none needs a result of an
    earlier one.

    Args:
        device: a GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, work: Pass) -> Pass:
        """As `Recorder.record`. Libraries are initialised in a first pass, on the same stream.

        Raises:
            RuntimeError: CUDA cannot capture the pass.
        """
        current = torch.cuda.current_stream(self._device)
        generator = torch.cuda.default_generators[current.device_index]
        before = generator.clone_state()
        graph = torch.cuda.CUDAGraph()
        self._stream.wait_stream(current)
        try:
            with torch.cuda.stream(self._stream):
                work()
            current.wait_stream(self._stream)
            with torch.cuda.graph(graph, self._pool, self._stream, capture_error_mode="thread_local"):
                result = work()
        except BaseException:
            # a failed capture leaves its stream as the current one, and the generator in the state of a capture
            torch.cuda.set_stream(current)
            generator.graphsafe_set_state(before)
            raise

        def replay() -> torch.Tensor | None:
            graph.replay()
            return result

        return replay


def recorder_of(device: torch.device) -> Callable[[], Recorder] | None:
    """Return what makes recorders for a device; None if recordings gain nothing there, or are not safe.

    Before PyTorch 2.13, a failed capture leaves the allocator in the state of a capture, and later runs of the process
    fail.
    """
    major, minor = torch.__version__.split(".")[:2]
    if device.type != "cuda" or (int(major), int(minor)) < (2, 13):
        return None
    return lambda: CudaRecorder(device)


class Recordings:
    """The passes of one network: at first computed, from the third pass of a shape on replayed.

    The second pass of a shape is recorded. The third is computed and replayed, on other values than the recorded
    one; if the two differ, or the pass cannot be recorded, all passes of the network are computed from then on. A pass
    cannot be recorded if it reads values of tensors, draws from generators of the host, or replaces buffers.

    Passes with a gradient have two recordings, since a loss lies between them: the logits; and their gradient, which
    is added to that of the parameters.

    Args:
        network: name of the network, for the log.
        module: the network. Its parameters and their gradients never move.
        make_recorder: returns a recorder.
    """

    def __init__(self, network: str, module: RunModule, make_recorder: Callable[[], Recorder]) -> None:
        self._network = network
        self._module = module
        self._make_recorder = make_recorder
        self._without_gradient = make_recorder()
        self._parameters = list(trained(module.module).values())
        self._anchor = torch.zeros(1, device=self._parameters[0].device, requires_grad=True)
        self._passes: Counter[Hashable] = Counter()
        self._recordings: dict[Hashable, _Recording] = {}

    @property
    def refused(self) -> str | None:
        """Why passes of the network are not recorded, if so."""
        return NOT_RECORDED.get(self._network)

    def logits(
        self, kind: Hashable, function: Function, inputs: Sequence[torch.Tensor], seed: Callable[[], None]
    ) -> torch.Tensor:
        """Return the logits of a pass, float32 [B, C], with a gradient where gradients are enabled.

        Args:
            kind: what determines the computation, apart from the shapes of the inputs. Passes whose gradients are
                computed together have different kinds.
            function: computes the logits from the inputs.
            inputs: tensors.
            seed: seeds the generators that the function draws from.
        """
        name = (kind, torch.is_grad_enabled(), *(tensor.shape for tensor in inputs))
        is_constant = not any(tensor.requires_grad for tensor in inputs)
        if self.refused is None and is_constant:
            self._passes[name] += 1
            if self._passes[name] == 2 and len(self._recordings) < MOST:
                self._record(name, function, inputs, seed)
            if self._passes[name] == 3 and name in self._recordings:
                self._compare(self._recordings[name], function, inputs, seed)
        seed()
        recording = self._recordings.get(name)
        if recording is None or self._passes[name] < 3 or not is_constant:
            return function(*inputs)
        if torch.is_grad_enabled():
            logits: torch.Tensor = _Replayed.apply(self._anchor, recording, inputs)  # type: ignore[no-untyped-call]
            return logits
        return recording.logits(inputs)

    def _record(
        self, name: Hashable, function: Function, inputs: Sequence[torch.Tensor], seed: Callable[[], None]
    ) -> None:
        """Record a pass, if it can be recorded."""
        with_gradient = torch.is_grad_enabled()
        watch = _Watch(self._parameters[0].device)
        with self._kept() as buffers:
            seed()
            with watch:
                function(*_copies(inputs))
            why_not = watch.reason or _replaced(buffers, self._module.buffers)
            if why_not is None:
                recorder = self._make_recorder() if with_gradient else self._without_gradient
                seed()
                try:
                    self._recordings[name] = _Recording(recorder, function, inputs, with_gradient, self._parameters)
                except RuntimeError as error:
                    why_not = f"the recording failed ({reason(error)})"
        if why_not is not None:
            self._refuse(why_not)

    def _compare(
        self, recording: _Recording, function: Function, inputs: Sequence[torch.Tensor], seed: Callable[[], None]
    ) -> None:
        """Compare what a pass changes and returns, computed and replayed."""
        computed = self._left_behind(recording, lambda: function(*_copies(inputs)), seed)
        replayed = self._left_behind(recording, lambda: recording.logits(inputs), seed)
        for value, replayed_value in zip(computed, replayed, strict=True):
            if not _close(value, replayed_value):
                self._refuse("a replay gives other numbers")
                return

    def _left_behind(
        self, recording: _Recording, logits_of_pass: Callable[[], torch.Tensor], seed: Callable[[], None]
    ) -> list[torch.Tensor]:
        """Return the logits of a pass, the gradients of the parameters and the buffers after it."""
        with self._kept() as buffers:
            for parameter in self._parameters:
                _gradient(parameter).data.zero_()
            seed()
            logits = logits_of_pass()
            if recording.with_gradient:
                by_logits = torch.linspace(-1, 1, logits.numel(), device=logits.device).view(logits.shape)
                if logits.requires_grad:
                    add_gradient(logits, by_logits, self._parameters)
                else:
                    recording.add_gradient(by_logits)
            gradients = [_gradient(parameter).clone() for parameter in self._parameters]
            values = [self._module.buffers[name].clone() for name in buffers]
            return [logits.detach(), *gradients, *values]

    def _refuse(self, why: str) -> None:
        self._recordings.clear()
        NOT_RECORDED[self._network] = why
        logging.getLogger("clops_sweep").warning(
            "network %r: its passes are not recorded as CUDA graphs, so a step on a GPU takes longer: %s",
            self._network,
            why,
        )

    @contextmanager
    def _kept(self) -> Iterator[Mapping[str, torch.Tensor]]:
        """Restore buffers and gradients after the block, also of passes whose gradient is still to be computed."""
        buffers = self._module.buffers
        values = {name: buffer.detach().clone() for name, buffer in buffers.items()}
        gradients = [_gradient(parameter).clone() for parameter in self._parameters]
        try:
            yield buffers
        finally:
            # through `data`, which does not count as a change for autograd
            for name, buffer in self._module.buffers.items():
                buffer.data.copy_(values[name])
            for parameter, gradient in zip(self._parameters, gradients, strict=True):
                _gradient(parameter).data.copy_(gradient)


class _Recording:
    """One recorded pass, with the tensors that it reads.

    Args:
        recorder: records it.
        function: computes the logits.
        inputs: inputs of the recorded pass; those of later passes are copied to the same place.
        with_gradient: whether the gradient of the logits is recorded as well.
        parameters: the parameters that have a gradient.
    """

    def __init__(
        self,
        recorder: Recorder,
        function: Function,
        inputs: Sequence[torch.Tensor],
        with_gradient: bool,
        parameters: Sequence[torch.nn.Parameter],
    ) -> None:
        self.with_gradient = with_gradient
        self._inputs = inputs_in_place = _copies(inputs)
        open_passes: list[torch.Tensor] = []

        def forward() -> torch.Tensor:
            with torch.set_grad_enabled(with_gradient):
                logits = function(*inputs_in_place)
            open_passes[:] = [logits]
            return logits.detach()

        def backward() -> None:
            add_gradient(open_passes[0], by_logits, parameters)

        self._forward = recorder.record(forward)
        self._by_logits = by_logits = torch.zeros_like(open_passes[0].detach())
        if with_gradient:
            self._forward()  # a recorded pass has no results yet
            self._backward = recorder.record(backward)
        open_passes.clear()

    def logits(self, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return a copy of the logits of other inputs."""
        for in_place, tensor in zip(self._inputs, inputs, strict=True):
            in_place.copy_(tensor)
        logits = self._forward()
        assert logits is not None
        return logits.clone()

    def add_gradient(self, by_logits: torch.Tensor) -> None:
        """Add the gradient of the last logits to that of the parameters, given the gradient of a loss by them."""
        self._by_logits.copy_(by_logits)
        self._backward()


class _Replayed(torch.autograd.Function):
    """A replayed pass under autograd. Its gradient goes to the parameters, not to any argument."""

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, recording: _Recording, inputs: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the logits, [B, C]; the anchor makes autograd ask for a gradient."""
        del anchor
        ctx.recording = recording
        return recording.logits(inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_logits: torch.Tensor) -> tuple[None, None, None]:
        """Add the gradient to that of the parameters."""
        ctx.recording.add_gradient(by_logits)
        return None, None, None


class _Watch(TorchFunctionMode):
    """Context that finds out why a pass cannot be recorded.

    Args:
        device: device of the pass.

    Attributes:
        reason: why; None if nothing speaks against it.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.reason: str | None = None
        self._on_cpu = device.type == "cpu"
        self._before: object = None

    def __enter__(self) -> _Watch:
        self._before = self._host_generators()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        if self.reason is None and self._host_generators() != self._before:
            self.reason = "it draws random numbers on the CPU"

    def _host_generators(self) -> tuple[object, ...]:
        """Return the states of the generators that a recording leaves as they are."""
        kind, words, *others = np.random.get_state(legacy=True)  # noqa: NPY002
        of_torch = b"" if self._on_cpu else torch.get_rng_state().numpy().tobytes()
        return random.getstate(), kind, np.asarray(words).tobytes(), tuple(others), of_torch

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = getattr(function, "__name__", "")
        if name in _DEPEND_ON_VALUES or (name == "__getitem__" and _is_mask(args[1])):
            self.reason = f"it depends on values of tensors ({name.strip('_')})"
        return function(*args, **(kwargs or {}))


def _copies(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return copies of inputs, since a module may write to its frames."""
    return [tensor.clone() for tensor in inputs]


def _is_mask(index: object) -> bool:
    """Return whether an index selects as many entries as a mask has ones."""
    by_axis = index if isinstance(index, tuple) else (index,)
    return any(isinstance(entry, torch.Tensor) and entry.dtype == torch.bool for entry in by_axis)


def _replaced(before: Mapping[str, torch.Tensor], after: Mapping[str, torch.Tensor]) -> str | None:
    """Return what is wrong with buffers after a pass, since a recording changes tensors in place only."""
    for name, buffer in before.items():
        if after.get(name) is not buffer:
            return f"it replaces buffer {name!r}; change it in place, as copy_ does"
    return None


def _gradient(parameter: torch.nn.Parameter) -> torch.Tensor:
    assert parameter.grad is not None
    return parameter.grad


@torch.no_grad()
def add_gradient(logits: torch.Tensor, by_logits: torch.Tensor, parameters: Sequence[torch.nn.Parameter]) -> None:
    """Add to the gradient of each parameter that of a loss, given the loss's gradient with respect to the logits."""
    gradients = torch.autograd.grad(logits, list(parameters), by_logits, retain_graph=True, allow_unused=True)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            _gradient(parameter).add_(gradient)


def _close(computed: torch.Tensor, replayed: torch.Tensor) -> bool:
    if not computed.is_floating_point():
        return bool((computed == replayed).all())
    largest = 0.0
    if computed.numel():
        largest = float(computed.abs().nan_to_num(0, 0, 0).max())
    tolerance = _APART * largest + 1e-12
    return bool(torch.isclose(replayed, computed, _APART, tolerance, equal_nan=True).all())
