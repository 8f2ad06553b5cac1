"""Networks on the features of an encoder, which is frozen except for low-rank adapters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.networks.signal import Signal


class OnFeatures(nn.Module):
    """An encoder followed by a network: maps signals to logits."""

    def __init__(self, encoder: nn.Module, network: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.network = network

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return logits [B, C] of signals [B, channels, samples]."""
        features = self.encoder(signals).to(torch.float32)
        if features.ndim == 2:
            features = features[:, None]
        logits: torch.Tensor = self.network(features)
        return logits

    def frozen(self) -> dict[str, torch.Tensor]:
        """Return the entries of the state dict that belong to the encoder and are never trained."""
        values = [*self.encoder.named_parameters(), *self.encoder.named_buffers()]
        return {f"encoder.{name}": value for name, value in values if not value.requires_grad}


@dataclass(frozen=True)
class TunedEncoder:
    """An encoder whose adapters a run trains; the entry "encoder" of `network_options`.

    Attributes:
        name: name of the encoder.
        make: creates the module, frozen and in evaluation mode.
        identity: SHA-256 of its code, weights and declaration.
        rank: rank of the adapters.
    """

    name: str
    make: Callable[[], nn.Module] = field(repr=False, compare=False)
    identity: str
    rank: int


def network_options(config: RunConfig, frames: FrameSet) -> dict[str, Any]:
    """Return the options that create the network of a config.

    These include the facts of the signal, if the network takes them, and an encoder whose adapters are trained.
    """
    options = config.network_options
    if NETWORKS.declaration(config.network).takes_signal:
        options["signal"] = Signal.of(frames)
    encoded = frames.encoded
    if encoded is not None and encoded.module is not None:
        rank = config.lora_rank
        options["encoder"] = TunedEncoder(encoded.encoder, encoded.module, encoded.encoder_hash, rank)
    return options


@torch.no_grad()
def shape_of_features(module: nn.Module, shape: tuple[int, int]) -> tuple[int, int]:
    """Return the shape of an encoder's features, (1, F) or (tokens, F), for signals of the given shape.

    Raises:
        UsageError: the module returns something else.
    """
    features: Any = module(torch.zeros(2, *shape))
    if not isinstance(features, torch.Tensor) or features.ndim not in (2, 3):
        raise UsageError("an encoder must return a tensor [B, features] or [B, tokens, features]")
    return (1, *features.shape[1:])[-2:]
