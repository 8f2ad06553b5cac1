"""The paper's network in plain PyTorch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class SwitchedNorm(nn.BatchNorm1d):
    """Batch norm that can use its running statistics in training mode, without updating them."""

    running = False

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Normalise; if `running` is set, as in evaluation mode."""
        if not self.running:
            return super().forward(inputs)
        return F.batch_norm(inputs, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)


class PaperNetwork(nn.Module):
    """Three blocks of convolution, batch norm, ReLU, pooling and dropout, and two linear layers.

    Args:
        outputs: number of outputs.
    """

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv1d(1, 4, 7, stride=3), SwitchedNorm(4)
        self.conv2, self.norm2 = nn.Conv1d(4, 16, 7, stride=3), SwitchedNorm(16)
        self.conv3, self.norm3 = nn.Conv1d(16, 32, 7, stride=3), SwitchedNorm(32)
        self.linear1, self.linear2 = nn.Linear(320, 100), nn.Linear(100, outputs)
        self.dropout = nn.Dropout(0.1)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Return logits [B, outputs] of frames, float32 [B, 1, 2500]."""
        hidden = frames
        for conv, norm in ((self.conv1, self.norm1), (self.conv2, self.norm2), (self.conv3, self.norm3)):
            hidden = self.dropout(F.max_pool1d(F.relu(norm(conv(hidden))), 2))
        return self.linear2(F.relu(self.linear1(hidden.flatten(1))))
