"""Dropout masks as a function of a counter, so that they depend on neither device, batching nor lockstep.

The unit u of the draw d of a stream with keys (k0, k1) is decided by 16 bits of

    h(d * 1536 + u // 2),   h(c) = mix(c + k0, k1),

where `mix` is the 32-bit finaliser of Wellons ("lowbias32", 2018) with the second key folded in half way; even
units take the low half of the word, odd units the high one. A unit is dropped when its 16 bits, read as a signed
number, are below -32768 + 6554: a probability of 6554 / 65536 = 0.100006.
"""

from __future__ import annotations

from functools import cache

import torch

DROPOUT = 0.1
UNITS = (4 * 416, 16 * 68, 32 * 10)
"""Units behind the three dropout layers of one instance."""

_WORDS = sum(UNITS) // 2
_THRESHOLD = -32768 + round(DROPOUT * 65536)
_SCALE = 1.0 / (1.0 - DROPOUT)
_FIRST, _SECOND = 0x7FEB352D, 0x846CA68B - (1 << 32)


def random_words(keys: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """The words behind the masks of some draws.

    Args:
        keys: int32 [S, 2], the keys of each run's stream.
        draws: int64 [B], the draws' counters; all runs share them.

    Returns:
        int16 [B, S, 3072], uniform over all 65,536 values.
    """
    base = (draws * _WORDS).to(torch.int32)  # wraps around, as the definition does
    word = base[:, None, None] + keys[None, :, :1] + _units(keys.device)
    shifted = torch.empty_like(word)
    # An arithmetic shift would drag the sign along; the mask makes it a logical one.
    word.bitwise_xor_(torch.bitwise_right_shift(word, 16, out=shifted).bitwise_and_(0xFFFF))
    word.mul_(_FIRST).bitwise_xor_(keys[None, :, 1:])
    word.bitwise_xor_(torch.bitwise_right_shift(word, 15, out=shifted).bitwise_and_(0x1FFFF))
    word.mul_(_SECOND)
    word.bitwise_xor_(torch.bitwise_right_shift(word, 16, out=shifted).bitwise_and_(0xFFFF))
    return word.view(torch.int16)


def mixed(counters: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """The words h(c) for any keys, int32 tensors that broadcast; in operations that `torch.func.vmap` knows."""
    word = counters + first
    word = (word ^ (word >> 16 & 0xFFFF)) * _FIRST ^ second
    word = (word ^ (word >> 15 & 0x1FFFF)) * _SECOND
    return word ^ (word >> 16 & 0xFFFF)


@cache
def _units(device: torch.device) -> torch.Tensor:
    return torch.arange(_WORDS, dtype=torch.int32, device=device)


def no_masks(runs: int, batch: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Masks like those of `masks` that drop nothing."""
    first, second, third = (
        torch.ones(batch, runs * channels, length, device=device) for channels, length in ((4, 416), (16, 68), (32, 10))
    )
    return first, second, third


def masks(keys: torch.Tensor, draws: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The masks of the three dropout layers, already scaled by 1 / (1 - 0.1).

    Args:
        keys: int32 [S, 2].
        draws: int64 [B].

    Returns:
        float32 tensors of shapes [B, S * 4, 416], [B, S * 16, 68] and [B, S * 32, 10], of zeros and 1 / 0.9.
    """
    words = random_words(keys, draws)
    batch, runs = words.shape[:2]
    # A comparison that writes floats is an eighth of one that makes truth values to be converted.
    kept = torch.ge(words, _THRESHOLD, out=torch.empty(words.shape, device=words.device)).mul_(_SCALE)
    first, second, third = kept.split(UNITS, dim=2)
    return (
        first.reshape(batch, runs * 4, 416),
        second.reshape(batch, runs * 16, 68),
        third.reshape(batch, runs * 32, 10),
    )
