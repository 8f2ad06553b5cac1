"""Dropout masks as a function of a counter, independent of device and batching.

Whether unit u of draw d is dropped, in a stream with keys (k0, k1), depends on 16 bits of

    h(d * 1536 + u // 2),   h(c) = mix(c + k0, k1),

where `mix` is the 32-bit finaliser of Wellons ("lowbias32", 2018) with the second key mixed in half way; even units use
the low half of the word, odd units the high half. A unit is dropped if its 16 bits, as a signed number, are below
-32768 + 6554: a probability of 6554 / 65536 = 0.100006.

The paper's network follows this rule, both in the native kernels and as a module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

DROPOUT = 0.1
UNITS = (4 * 416, 16 * 68, 32 * 10)
"""Numbers of units of the three dropout layers of one instance."""

_THRESHOLD = -32768 + round(DROPOUT * 65536)
_SCALE = 1.0 / (1.0 - DROPOUT)
_FIRST = 0x7FEB352D
_SECOND = 0x846CA68B - (1 << 32)


def mixed(counters: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the words h(c) for any keys, int32 tensors that broadcast."""
    word = counters + first
    # the mask turns the arithmetic shift into a logical one
    word = (word ^ (word >> 16 & 0xFFFF)) * _FIRST ^ second
    word = (word ^ (word >> 15 & 0x1FFFF)) * _SECOND
    return word ^ (word >> 16 & 0xFFFF)


def masks(keys: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """Return the masks of all dropout layers of a network, already scaled by 1 / (1 - 0.1).

    Args:
        keys: int32 [2], keys of the stream.
        draws: int64 [B], counters of the draws.

    Returns:
        float32 [B, 3072], zeros and 1 / 0.9, ordered by layer, then by unit.
    """
    stays = halves(keys, draws, sum(UNITS)) >= _THRESHOLD
    return stays * _SCALE


def halves(keys: torch.Tensor, draws: torch.Tensor, units: int) -> torch.Tensor:
    """Return the 16 bits of each unit of an instance with any number of units, as signed numbers, int32 [B, units].

    The words of a draw are h(d * W + u // 2), with W half of the number of units, rounded up.
    """
    count = (units + 1) // 2
    base = (draws * count).to(torch.int32)  # wraps around, as in the definition
    numbers = torch.arange(count, dtype=torch.int32, device=draws.device)
    words = mixed(base[:, None] + numbers, keys[0], keys[1])
    low = words << 16 >> 16
    high = words >> 16
    in_order = torch.stack([low, high], dim=-1).flatten(-2)
    return in_order[:, :units]


class PaperDropout(TorchFunctionMode):
    """Context in which dropout of the paper's network takes the masks of the native kernels (see `masks`).

    An instance's units are numbered consecutively over all dropout layers, in the order of their calls. If an instance
    has several consecutive draws, the first dropout layer repeats its input, so that the layers before it are computed
    once.

    Args:
        keys: int32 [2], keys of the stream.
        draws: int64 [B], counters, one per instance of a batch.
    """

    def __init__(self, keys: torch.Tensor, draws: torch.Tensor) -> None:
        super().__init__()
        self._draws = len(draws)
        self._units = 0
        self._masks = masks(keys, draws)

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function is F.dropout:
            return self._drop(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))

    def _drop(self, hidden: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        """Return maps with some units dropped, and the others multiplied by 1 / (1 - 0.1)."""
        if not training or p == 0:
            return hidden
        if hidden.shape[0] < self._draws:
            instances, *shape = hidden.shape
            repeated = hidden[:, None].expand(-1, self._draws // instances, *shape)
            hidden = repeated.flatten(0, 1)
        units = hidden[0].numel()
        mask = self._masks[:, self._units : self._units + units].view(hidden.shape)
        self._units += units
        return hidden.mul_(mask) if inplace else hidden * mask
