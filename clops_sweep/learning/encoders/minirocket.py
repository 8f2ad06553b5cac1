"""MiniRocket (Dempster et al., KDD 2021): 9,996 features of fixed convolutions, without labels and gradients.

A feature is the share of a signal in which a convolution exceeds a bias. The 84 kernels have nine weights, three of
them 2 and six -1, and up to 32 dilations. A bias is a quantile of the convolution of one training signal.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import nn

_WEIGHTS: Final = np.array([[2 if tap in places else -1 for tap in range(9)] for places in combinations(range(9), 3)])
_PER_KERNEL: Final = 10_000 // len(_WEIGHTS)
_DILATIONS: Final = 32


class MiniRocket(nn.Module):
    """MiniRocket, fitted to training signals.

    Args:
        signals: float32 [n, channels, samples >= 9]. A kernel sums a random subset of at most nine channels.
    """

    kernels: torch.Tensor
    biases: torch.Tensor

    def __init__(self, signals: torch.Tensor) -> None:
        super().__init__()
        count, channels, samples = signals.shape
        if samples < 9:
            raise ValueError(f"takes at least 9 samples, not {samples}")
        steps = np.logspace(0, np.log2((samples - 1) / 8), _DILATIONS, base=2).astype(int)
        self.dilations, repeats = np.unique(steps, return_counts=True)
        self.features = (repeats * (_PER_KERNEL / _DILATIONS)).astype(int)
        self.features[: _PER_KERNEL - self.features.sum()] += 1
        random, size = np.random.default_rng(0), (len(self.dilations), len(_WEIGHTS), channels)
        summed = (2 ** random.uniform(0, np.log2(min(channels, 9) + 1), size[:2])).astype(int)
        ranks = random.permuted(np.broadcast_to(np.arange(channels), size), axis=2)
        kernels = (ranks < summed[..., None])[..., None] * _WEIGHTS[:, None]
        self.register_buffer("kernels", torch.from_numpy(kernels.reshape(*size[:2], -1).astype(np.float64)))
        shares = (np.arange(1, len(_WEIGHTS) * _PER_KERNEL + 1) * ((np.sqrt(5) + 1) / 2) % 1).astype(np.float32)
        drawn, biases = random.integers(count, size=size[:2]), []
        for place, kernel in np.ndindex(*size[:2]):
            convolved = self._convolved(signals[drawn[place, kernel], None], place)[0, kernel]
            shares, of_kernel = shares[self.features[place] :], shares[: self.features[place]]
            biases.append(np.quantile(convolved.double().numpy(), of_kernel))
        self.register_buffer("biases", torch.from_numpy(np.concatenate(biases).astype(np.float32)))

    def _convolved(self, signals: torch.Tensor, place: int) -> torch.Tensor:
        """Return the convolutions [B, 84, samples] of one dilation; sums of float32 in float64 have no order."""
        step, samples = int(self.dilations[place]), signals.shape[2]
        padded = nn.functional.pad(signals.double(), (4 * step, 4 * step))
        shifted = torch.stack([padded[..., tap * step : tap * step + samples] for tap in range(9)], 2)
        return (self.kernels[place] @ shifted.flatten(1, 2)).float()

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return features [B, 9996] of signals [B, channels, samples]."""
        return torch.cat([self._shares(few) for few in signals.split(4)])  # a few stay in the processor's cache

    def _shares(self, signals: torch.Tensor) -> torch.Tensor:
        found = []
        for place, of_dilation in enumerate(self.biases.split((self.features * len(_WEIGHTS)).tolist())):
            convolved, limits = self._convolved(signals, place), of_dilation.reshape(len(_WEIGHTS), -1)
            shares = torch.empty(len(signals), *limits.shape, device=signals.device)
            for cropped in range(2):  # every other kernel leaves out the padded edges
                kernels, edge = slice((place + cropped) % 2, None, 2), 4 * cropped * int(self.dilations[place])
                inner = convolved[:, kernels, edge : convolved.shape[2] - edge]
                exceeds = torch.empty_like(inner)
                for number, limit in enumerate(limits[kernels].T):
                    shares[:, kernels, number] = torch.gt(inner, limit[:, None], out=exceeds).mean(2)
            found.append(shares.flatten(1))
        return torch.cat(found, 1)


def minirocket(weights: Path | None, signals: torch.Tensor) -> MiniRocket:
    """Return the encoder, fitted to some training signals."""
    return MiniRocket(signals)
