"""Networks that a variant of the native kernels computes more slowly than PyTorch."""

from __future__ import annotations

from clops_sweep.learning.lowering.lower import NotLowered, lowered
from clops_sweep.learning.lowering.program import Convolution, Program
from clops_sweep.learning.networks.run_module import RunModule

BASELINE = "baseline"

WIDE = 64
"""Input and output channels of a convolution that PyTorch computes faster than the kernels for any CPU: these have four
numbers in a vector, and PyTorch uses the CPU's own instructions. `python -m benchmarks.programs --variants baseline`
measures it: a step of `resnet1d_wang` takes three times as long, one of 8 to 32 channels no longer."""


def lowered_for(variant: str, run: RunModule, channels: int, samples: int) -> Program | NotLowered:
    """Return the program of a module, or why PyTorch computes it.

    Args:
        variant: name of the kernels.
        run: the module, on the CPU.
        channels: channels of a frame.
        samples: samples per channel.
    """
    program = lowered(run, channels, samples)
    if variant != BASELINE or isinstance(program, NotLowered):
        return program
    for layer in program.layers:
        if isinstance(layer, Convolution) and layer.groups == 1:
            inputs = program.shapes[layer.inputs[0]][0]
            if min(inputs, layer.outputs) >= WIDE:
                reason = (
                    f"convolves {inputs} with {layer.outputs} channels, which the {BASELINE} kernels do more slowly"
                )
                return NotLowered(layer.layer, reason)
    return program
