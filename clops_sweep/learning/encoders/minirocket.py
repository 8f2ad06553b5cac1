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
from numpy.typing import NDArray
from torch import nn

_TAPS: Final = 9


def _weights() -> NDArray[np.int64]:
    """Return the weights of each kernel, int64 [84, 9]: 2 at three taps and -1 at the others."""
    large = list(combinations(range(_TAPS), 3))
    weights = np.full((len(large), _TAPS), -1)
    for kernel, taps in enumerate(large):
        weights[kernel, taps] = 2
    return weights


_WEIGHTS: Final = _weights()
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
        random = np.random.default_rng(0)
        pairs = (len(self.dilations), len(_WEIGHTS))
        most_summed = min(channels, 9)
        summed = (2 ** random.uniform(0, np.log2(most_summed + 1), pairs)).astype(int)
        ranks = random.permuted(np.broadcast_to(np.arange(channels), (*pairs, channels)), axis=2)
        is_summed = ranks < summed[..., None]
        kernels = is_summed[..., None] * _WEIGHTS[:, None]
        kernels = kernels.reshape(*pairs, -1).astype(np.float64)
        self.register_buffer("kernels", torch.from_numpy(kernels))
        golden_ratio = (np.sqrt(5) + 1) / 2
        shares = (np.arange(1, len(_WEIGHTS) * _PER_KERNEL + 1) * golden_ratio % 1).astype(np.float32)
        drawn = random.integers(count, size=pairs)
        biases = []
        end = 0
        for dilation, kernel in np.ndindex(*pairs):
            signal = signals[drawn[dilation, kernel], None]
            convolved = self._convolved(signal, dilation)[0, kernel]
            start = end
            end += int(self.features[dilation])
            biases.append(np.quantile(convolved.double().numpy(), shares[start:end]))
        all_biases = np.concatenate(biases).astype(np.float32)
        self.register_buffer("biases", torch.from_numpy(all_biases))

    def _convolved(self, signals: torch.Tensor, dilation: int) -> torch.Tensor:
        """Return the convolutions [B, 84, samples] of one dilation; sums of float32 in float64 have no order."""
        step = int(self.dilations[dilation])
        samples = signals.shape[2]
        padded = nn.functional.pad(signals.double(), (4 * step, 4 * step))
        starts = [tap * step for tap in range(_TAPS)]
        shifted = torch.stack([padded[..., start : start + samples] for start in starts], 2)
        return (self.kernels[dilation] @ shifted.flatten(1, 2)).float()

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return features [B, 9996] of signals [B, channels, samples]."""
        return torch.cat([self._shares(few) for few in signals.split(4)])  # a few stay in the processor's cache

    def _shares(self, signals: torch.Tensor) -> torch.Tensor:
        features = []
        sizes = (self.features * len(_WEIGHTS)).tolist()
        for dilation, biases in enumerate(self.biases.split(sizes)):
            convolved = self._convolved(signals, dilation)
            limits = biases.reshape(len(_WEIGHTS), -1)
            shares = torch.empty(len(signals), *limits.shape, device=signals.device)
            for cropped in range(2):  # every other kernel leaves out the padded edges
                kernels = slice((dilation + cropped) % 2, None, 2)
                edge = 4 * cropped * int(self.dilations[dilation])
                inner = convolved[:, kernels, edge : convolved.shape[2] - edge]
                exceeds = torch.empty_like(inner)
                for number, limit in enumerate(limits[kernels].T):
                    shares[:, kernels, number] = torch.gt(inner, limit[:, None], out=exceeds).mean(2)
            features.append(shares.flatten(1))
        return torch.cat(features, 1)


def minirocket(weights: Path | None, signals: torch.Tensor) -> MiniRocket:
    """Return the encoder, fitted to some training signals."""
    return MiniRocket(signals)
