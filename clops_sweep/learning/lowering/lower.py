"""Lowering of a module to a program of layers, or the reason why it stays with PyTorch.

The module's passes are traced (see `trace`) in all four modes, and on batches of two sizes. All must consist of the
same layers, except that dropout is absent and batch norm uses running statistics where the mode says so. Tracing takes
a few hundredths of a second where `torch.export` takes seconds, and it sees random numbers, modes and hooks.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from clops_sweep.learning.global_streams import GlobalStreams
from clops_sweep.learning.lowering.operations import OPERATIONS
from clops_sweep.learning.lowering.program import Dropout, Layer, Program, without
from clops_sweep.learning.lowering.trace import Traces, Unlowered, described, traced
from clops_sweep.learning.networks.run_module import Mode, RunModule

_BATCH = 2
_OTHER_BATCH = 3


@dataclass(frozen=True)
class NotLowered:
    """Why a network stays with PyTorch.

    Attributes:
        layer: the layer at fault, as in "'encoder.0' (LSTM)".
        reason: what it does, a clause without a subject.
    """

    layer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.layer} {self.reason}"


def lowered(run: RunModule, channels: int, samples: int) -> Program | NotLowered:
    """Return the program of a module, which is left as it was.

    Args:
        run: the module, on the CPU.
        channels: channels of a frame.
        samples: samples per channel.
    """
    module = run.module
    for name, layer in module.named_modules():
        if isinstance(layer, torch.jit.ScriptModule):
            return NotLowered(described(name, layer), "is compiled by TorchScript")
    hooked = _hooked(module)
    if hooked is not None:
        return NotLowered(hooked, "has hooks")
    generators = GlobalStreams(torch.device("cpu"))
    stream = torch.Generator().manual_seed(0)
    frames = torch.randn(_OTHER_BATCH, channels, samples, generator=stream)
    try:
        with generators.kept(), run.buffers_kept():
            before = generators.state()
            program = _of_modes(run, frames)
            if generators.state() != before:
                raise Unlowered("draws random numbers other than for dropout", described("", module))
    except Unlowered as failure:
        return NotLowered(failure.layer or described("", module), failure.reason)
    return program


def _of_modes(run: RunModule, frames: torch.Tensor) -> Program:
    """Return the program of passes in all modes.

    Raises:
        Unlowered: a mode or batch size consists of other layers than the program.
    """
    training = _trace(run, "training", frames[:_BATCH])
    statistics = len(training.batch_statistics)
    dropped = without(training.layers, Dropout)
    expected: dict[Mode, tuple[tuple[Layer, ...], bool]] = {
        "training": (training.layers, True),
        "training without dropout": (dropped, True),
        "sampling": (training.layers, False),
        "evaluation": (dropped, False),
    }
    for mode, (layers, batch_statistics) in expected.items():
        size = _OTHER_BATCH if mode in ("training", "evaluation") else _BATCH
        traced = _trace(run, mode, frames[:size])
        if traced.derivations != training.derivations:
            raise Unlowered(f"derives other weights in {mode} or for other batches", described("", run.module))
        if traced.layers != layers:
            layer = _first_difference(traced.layers, layers)
            raise Unlowered(f"consists of other layers in {mode} or for other batches", layer)
        if traced.batch_statistics != (batch_statistics,) * statistics:
            raise Unlowered("has a batch norm whose mode is not that of the network", described("", run.module))
        counters = training.counters if batch_statistics else ()
        if traced.counters != counters or len(set(counters)) < len(counters):
            raise Unlowered("changes a buffer", described("", run.module))
    return Program(training.layers, training.shapes, training.counters, training.derivations)


def _first_difference(traced_layers: tuple[Layer, ...], layers: tuple[Layer, ...]) -> str:
    """Return the name of the first layer that differs, in the longer program."""
    shorter, longer = sorted((traced_layers, layers), key=len)
    for layer, layer_of_longer in zip(shorter, longer, strict=False):
        if layer != layer_of_longer:
            return layer_of_longer.layer
    return longer[len(shorter)].layer


def _trace(run: RunModule, mode: Mode, frames: torch.Tensor) -> Traces:
    run.set(mode)
    return traced(run.module, OPERATIONS, frames.clone())


_HOOKS = [
    name
    for name, value in vars(nn.Module()).items()
    if name.endswith("hooks") and value == {} and ("forward" in name or "backward" in name)
]
"""Attributes of every module that hold hooks of its passes."""


def _hooked(module: nn.Module) -> str | None:
    """Return the name of the first layer with hooks, if any."""
    for name, layer in module.named_modules():
        if any(vars(layer).get(attribute) for attribute in _HOOKS):
            return described(name, layer)
    return None
