"""Dropout of a module by counted masks, those of its program on the native kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from clops_sweep.learning.lowering.program import Dropout, Program
from clops_sweep.learning.lowering.trace import Dispatching
from clops_sweep.learning.networks.dropout import halves


class CountedMasks(Dispatching, TorchDispatchMode):
    """Context in which each mask that a module draws is a function of keys and draws.

    The units of an instance are numbered consecutively over all dropout layers of the program. A unit with probability
    p is dropped if its 16 bits (see `dropout`), as a signed number, are below -32768 + round(65536 p).

    Args:
        program: the module's program.
        keys: int32 [2], keys of the stream.
        draws: int64 [B], counters, one per instance of a batch.
    """

    def __init__(self, program: Program, keys: torch.Tensor, draws: torch.Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        units = program.units()
        layers = [layer for layer in program.layers if isinstance(layer, Dropout)]
        self._thresholds = [-32768 + round(layer.probability * 65536) for layer in layers]
        self._words = list(halves(keys, draws, sum(units)).split(units, dim=1))

    def computed(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the result of an operation; a mask of ones and zeros instead of random numbers."""
        if not str(function).startswith("aten.bernoulli_."):
            return function(*args, **kwargs)
        mask = args[0]
        stays = self._words.pop(0) >= self._thresholds.pop(0)
        return mask.copy_(stays.view(mask.shape))
