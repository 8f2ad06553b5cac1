"""The baseline of the benchmarks: the paper's network in plain PyTorch, one training step per call."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def network(outputs: int = 1) -> nn.Sequential:
    """Three blocks Conv1d - BatchNorm - ReLU - MaxPool - Dropout and two linear layers."""
    layers: list[nn.Module] = []
    for inputs, channels in ((1, 4), (4, 16), (16, 32)):
        layers += [
            nn.Conv1d(inputs, channels, 7, 3),
            nn.BatchNorm1d(channels),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Dropout(0.1),
        ]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(320, 100), nn.ReLU(), nn.Linear(100, outputs))


def training_step(batch_size: int = 16, device: torch.device | str = "cpu") -> Callable[[], None]:
    """Return a function that computes forward pass, backward pass and Adam step on one batch in memory."""
    model = network().to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    frames = torch.randn(batch_size, 1, 2500, device=device)
    targets = torch.rand(batch_size, 1, device=device).round()

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(frames), targets).backward()
        optimizer.step()

    return step


def dropout_passes(frames: int = 256, samples: int = 20) -> Callable[[], None]:
    """Return a function that computes T passes with dropout on and batch norm in evaluation mode, one per call."""
    model = network().eval()
    for layer in model:
        layer.train(isinstance(layer, nn.Dropout))
    batch = torch.randn(frames, 1, 2500)

    @torch.no_grad()
    def passes() -> None:
        for _ in range(samples):
            torch.sigmoid(model(batch))

    return passes
