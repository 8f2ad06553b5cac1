"""The program with which this process computes a network, or why PyTorch computes it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from clops_sweep.learning.lowering.compared import depends_on_batch, difference
from clops_sweep.learning.lowering.lower import NotLowered
from clops_sweep.learning.lowering.program import Program
from clops_sweep.learning.lowering.variants import lowered_for
from clops_sweep.learning.networks.module_probe import Probed
from clops_sweep.learning.networks.run_module import MakeModule, RunModule, made
from clops_sweep.learning.process_state import torch_state_kept
from clops_sweep.learning.threads import one_thread

_KNOWN: dict[tuple[Any, ...], tuple[MakeModule, Program | NotLowered]] = {}


def program_of(
    name: str,
    make: MakeModule,
    shape: tuple[int, int],
    outputs: int,
    options: Mapping[str, Any],
    probed: Probed,
    variant: str,
) -> Program | NotLowered:
    """Return the program of a network, compared with its module, or why PyTorch computes it.

    It is lowered and compared once per process, shape of frames, number of outputs and choice of options.

    Args:
        name: name of the network.
        make: its registered function.
        shape: channels and samples of a frame.
        outputs: C.
        options: options of the network.
        probed: results of its checks.
        variant: name of the kernels.
    """
    key = (name, shape, outputs, variant, tuple(sorted(options.items())))
    cached_make, program = _KNOWN.get(key, (None, None))
    if program is None or cached_make is not make:
        module = made(name, make, 0, shape, outputs, options)
        run = RunModule(module, outputs, probed.statistics)
        with torch_state_kept(), one_thread():
            program = _checked(name, run, shape, variant)
        _KNOWN[key] = make, program
    return program


def _checked(name: str, run: RunModule, shape: tuple[int, int], variant: str) -> Program | NotLowered:
    program = lowered_for(variant, run, *shape)
    if isinstance(program, NotLowered):
        return program
    network = f"the network ({type(run.module).__name__})"
    if depends_on_batch(run, shape):
        return NotLowered(network, "gives other logits in a large batch or where no gradient is computed")
    try:
        differs_in = difference(program, variant, run, shape)
    except ValueError as error:
        return NotLowered(network, f"is refused by the kernels ({error})")
    if differs_in is None:
        return program
    _log().warning(
        "network %r: the native kernels differ from PyTorch in %s; PyTorch computes it. If no hook of a parameter "
        "changes gradients, please report this.",
        name,
        differs_in,
    )
    return NotLowered(network, f"differs from PyTorch in {differs_in}")


def _log() -> logging.Logger:
    return logging.getLogger("clops_sweep")
