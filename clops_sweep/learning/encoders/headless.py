"""The network of a stored run as an encoder: the input of its last linear layer."""

from __future__ import annotations

import torch
from torch import nn

from clops_sweep.errors import UsageError
from clops_sweep.learning.models.trained_model import TrainedModel
from clops_sweep.learning.networks.head import head_of
from clops_sweep.learning.networks.on_features import OnFeatures


def without_head(encoder: str, model: TrainedModel) -> nn.Module:
    """Return the network of a model, changed in place: without its last `nn.Linear`, it maps to its input [B, F].

    Raises:
        UsageError: the model has no such layer, or more layers after it.
    """
    encoder_below: nn.Module | None = None
    network = model.network
    if isinstance(network, OnFeatures):
        encoder_below = network.encoder
        network = network.network
    try:
        name, head = head_of(model.facts.network, network, len(model.classes), bias=False)
    except UsageError:
        raise UsageError(
            f"encoder {encoder!r}: network {model.facts.network!r} has no last nn.Linear with one output per class to "
            "remove"
        ) from None
    if name:
        parent, _, child = name.rpartition(".")
        setattr(network.get_submodule(parent), child, nn.Identity())
    features = _Features(network if name else nn.Identity(), head.in_features)
    return features if encoder_below is None else OnFeatures(encoder_below, features)


class _Features(nn.Module):
    """A network without its last linear layer."""

    def __init__(self, network: nn.Module, size: int) -> None:
        super().__init__()
        self.network = network
        self._size = size

    def forward(self, signals: torch.Tensor) -> torch.Tensor:
        """Return features [B, F] of signals [B, channels, samples]."""
        features: torch.Tensor = self.network(signals)
        if features.ndim != 2 or features.shape[1] != self._size:  # len(signals) would fix the batch in an export
            raise ValueError(f"returns {list(features.shape)} without its last nn.Linear; expected [B, {self._size}]")
        return features
