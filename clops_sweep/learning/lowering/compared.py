"""Comparison of a program on the native kernels with its module in PyTorch, before it is used."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from clops_sweep.learning.lowering.masks import CountedMasks
from clops_sweep.learning.lowering.network import LoweredNetwork
from clops_sweep.learning.lowering.program import Program
from clops_sweep.learning.networks.run_module import Mode, RunModule, trained
from clops_sweep.learning.parameters import Parameters

_BATCH = 3
_SAMPLES = 3
_FIRST_DRAW = 5

_MANY = 300
"""Maximum number of instances in a large batch."""

_VALUES = 60_000
"""About the number of values of the frames of a large batch."""

_OF_LOGITS = 1e-3
"""Tolerance relative to the largest logit. Rounding is far smaller, but may turn a unit of ReLU or a maximum of equals
the other way."""

_OF_GRADIENTS = 1e-2
"""Tolerance relative to the norm of a parameter's gradient."""

_SMALL = 1e-2
"""Share of the norm of the whole gradient below which a parameter's gradient is rounding noise: that of a bias before
batch norm is, and a batch of three instances makes it large."""


@dataclass(frozen=True)
class _Pass:
    """What a pass left behind."""

    logits: torch.Tensor
    gradient: Parameters
    buffers: dict[str, torch.Tensor]


@torch.no_grad()
def depends_on_batch(run: RunModule, shape: tuple[int, int]) -> bool:
    """Return whether a module gives an instance other logits in a large batch, or if no gradient is computed.

    Arguments as in `difference`.
    """
    values_of_frame = shape[0] * shape[1]
    count = min(_MANY, max(4 * _BATCH, _VALUES // values_of_frame))
    frames = torch.randn(count, *shape, generator=torch.Generator().manual_seed(0))
    with torch.enable_grad():
        few = run.logits(frames[:_BATCH].clone(), "evaluation").detach()
    many = run.logits(frames.clone(), "evaluation")
    return not close(many[:_BATCH], few)


def difference(program: Program, variant: str, run: RunModule, shape: tuple[int, int]) -> str | None:
    """Return in what a program differs from its module, such as "logits in training"; None if it agrees.

    Compared are logits, gradients and running statistics in all modes, and passes of Monte-Carlo dropout, with the same
    dropout masks. The module's parameters and buffers change.

    Args:
        program: the program.
        variant: name of the kernels.
        run: the module.
        shape: channels and samples of a frame.
    """
    stream = torch.Generator().manual_seed(0)
    parameters = trained(run.module)
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    vector = Parameters.zeros(shapes, torch.device("cpu"), 32)
    gradient = Parameters.zeros(shapes, torch.device("cpu"), 32)
    run.live_in(vector.views, gradient.views)
    _disturb(run, stream)
    network = LoweredNetwork(program, variant, run.module, vector)
    frames = torch.randn(_BATCH, *shape, generator=stream)
    keys = torch.tensor([7, -11], dtype=torch.int32)
    modes: tuple[Mode, ...] = ("evaluation", "training without dropout", "sampling", "training")
    for mode in modes:
        before = {name: buffer.clone() for name, buffer in run.buffers.items()}
        expected = _by_module(run, program, frames, mode, keys, gradient)
        run.take_buffers(before)
        computed = _by_program(network, run, frames, mode, keys, gradient)
        differs_in = _first_difference(computed, expected)
        if differs_in is not None:
            return f"{differs_in} in {mode}"
    if not _agree_in_predictions(network, run, program, frames, keys):
        return "Monte-Carlo passes"
    return None


@torch.no_grad()
def _disturb(run: RunModule, stream: torch.Generator) -> None:
    """Move parameters and running statistics away from their initial values, of which many are zeros and ones."""
    for parameter in trained(run.module).values():
        factor = 1 + 0.1 * torch.randn(parameter.shape, generator=stream)
        summand = 0.02 * torch.randn(parameter.shape, generator=stream)
        parameter.mul_(factor).add_(summand)
    for buffer in run.buffers.values():
        if buffer.is_floating_point():
            factor = 1 + 0.2 * torch.rand(buffer.shape, generator=stream)
            buffer.mul_(factor)


def _by_logits(logits: torch.Tensor) -> torch.Tensor:
    return torch.linspace(-1, 1, logits.numel()).view(logits.shape)


def _draws(count: int) -> torch.Tensor:
    return torch.arange(_FIRST_DRAW, _FIRST_DRAW + count)


def _by_module(
    run: RunModule, program: Program, frames: torch.Tensor, mode: Mode, keys: torch.Tensor, gradient: Parameters
) -> _Pass:
    gradient.flat.zero_()
    with torch.enable_grad(), CountedMasks(program, keys, _draws(len(frames))):
        logits = run.logits(frames.clone(), mode)
    logits.backward(_by_logits(logits))
    return _left_behind(run, logits.detach(), gradient)


def _by_program(
    network: LoweredNetwork, run: RunModule, frames: torch.Tensor, mode: Mode, keys: torch.Tensor, gradient: Parameters
) -> _Pass:
    training = mode.startswith("training")
    drops = mode in ("training", "sampling")
    logits = network.forward(
        frames,
        batch_statistics=training,
        track=training,
        keys=keys if drops else None,
        draws=_draws(len(frames)) if drops else None,
    )
    gradient.flat.fill_(float("nan"))
    network.backward(_by_logits(logits), gradient.flat)
    return _left_behind(run, logits, gradient)


def _left_behind(run: RunModule, logits: torch.Tensor, gradient: Parameters) -> _Pass:
    buffers = {name: buffer.clone() for name, buffer in run.buffers.items()}
    return _Pass(logits, gradient.like(gradient.flat.clone()), buffers)


def _first_difference(computed: _Pass, expected: _Pass) -> str | None:
    """Return in what a pass differs from what it should be, such as "the gradient of 'head.weight'"."""
    if not close(computed.logits, expected.logits):
        return "logits"
    for name, buffer in expected.buffers.items():
        if not close(computed.buffers[name], buffer):
            return f"the buffer {name!r}"
    total = expected.gradient.flat.norm()
    for name, gradient in expected.gradient.views.items():
        allowed = _OF_GRADIENTS * torch.maximum(gradient.norm(), _SMALL * total)
        if not (computed.gradient.views[name] - gradient).norm() <= allowed:  # also if it is not a number
            return f"the gradient of {name!r}"
    return None


def close(computed: torch.Tensor, expected: torch.Tensor) -> bool:
    """Return whether values agree up to rounding."""
    if not expected.numel():
        return True
    difference = (computed.double() - expected.double()).abs().amax()
    allowed = _OF_LOGITS * expected.double().abs().amax() + 1e-6
    return bool(difference <= allowed)


@torch.no_grad()
def _agree_in_predictions(
    network: LoweredNetwork, run: RunModule, program: Program, frames: torch.Tensor, keys: torch.Tensor
) -> bool:
    evaluated = network.predict(frames).squeeze(1)
    if not close(evaluated, run.logits(frames.clone(), "evaluation")):
        return False
    repeated = frames.repeat_interleave(_SAMPLES, dim=0)
    with CountedMasks(program, keys, _draws(len(repeated))):
        expected = run.logits(repeated, "sampling")
    predicted = network.predict(frames, samples=_SAMPLES, keys=keys, first=_FIRST_DRAW)
    return close(predicted.flatten(0, 1), expected)
