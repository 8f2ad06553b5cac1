"""Last linear layer of a learner's network: access to its features and its weights."""

from __future__ import annotations

from typing import ClassVar

import torch

from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.networks.head import features_of, head_of

_AT_A_TIME = 512
"""Number of instances per pass that computes features."""


class FeatureHead:
    """Head W f + b of a network, and its input features f.

    Args:
        learner: the network.
        network: name of the network, for messages.
        reads_only: whether the head is never written, and needs no bias.

    Attributes:
        features_size: F.
        trains_features: whether the network has other parameters than the head's.

    Raises:
        UsageError: the network does not end in an `nn.Linear` with one output per class, and a bias if that is needed.
    """

    NOT_SEEN: ClassVar[float] = -1e4
    """Bias of a class without instances so far: it is never predicted."""

    def __init__(self, learner: Learner, network: str, *, reads_only: bool = False) -> None:
        self._learner = learner
        self._name, layer = head_of(network, learner.module(), learner.outputs, bias=not reads_only)
        self.features_size = layer.in_features
        own = {f"{self._name}.weight", f"{self._name}.bias"}
        self.trains_features = bool(set(learner.parameters.views) - own)

    def features(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the features of rows [n] by the network in evaluation mode: float64 [n, F], on the CPU."""
        module = self._learner.module()
        layer = module.get_submodule(self._name)
        assert isinstance(layer, torch.nn.Linear)
        bank = self._learner.bank
        shape = (1, *bank.shape)[-2:]
        features = []
        for rows_of_pass in rows.split(_AT_A_TIME):
            frames = bank.gather(rows_of_pass).reshape(-1, *shape)
            features.append(features_of(layer, module, frames))
        return torch.cat(features).double().cpu()

    def weights(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return copies of W [C, F] and b [C]."""
        views = self._learner.parameters.views
        return views[f"{self._name}.weight"].clone(), views[f"{self._name}.bias"].clone()

    def write(self, weight: torch.Tensor, bias: torch.Tensor) -> None:
        """Replace W [C, F] and b [C]."""
        views = self._learner.parameters.views
        views[f"{self._name}.weight"].copy_(weight)
        views[f"{self._name}.bias"].copy_(bias)
