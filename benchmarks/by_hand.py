"""CLOPS written by hand around a `torch.nn.Module`: the baseline for complete runs of custom networks."""

from __future__ import annotations

import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.tasks import scenario_of

_AT_A_TIME = 256


def clops(config: RunConfig, frames: FrameSet, module: nn.Module) -> list[list[float]]:
    """Train a complete run with one output, with validation loss and AUC of each task after each epoch.

    Args:
        config: a config with `bald_mcd` and storage order "top".
        frames: the data set.
        module: float32 [B, channels, samples] to logits [B, 1].

    Returns:
        R: the validation AUC of every task after each task.
    """
    bce = nn.functional.binary_cross_entropy_with_logits
    tasks = scenario_of(config, frames).tasks

    def of(rows: object) -> torch.Tensor:
        return torch.from_numpy(frames.signal(rows)).view(-1, frames.channels, frames.samples)

    train = [(of(task.train.rows), torch.from_numpy(task.train.targets)) for task in tasks]
    held_out = [
        (of(part.rows), torch.from_numpy(part.targets)) for task in tasks for part in (task.validation, task.test)
    ]
    optimizer = torch.optim.Adam(module.parameters(), lr=config.learning_rate)
    dropout = [layer for layer in module.modules() if isinstance(layer, nn.Dropout)]
    buffer: list[tuple[torch.Tensor, torch.Tensor]] = []

    def aucs(parts: list[tuple[torch.Tensor, torch.Tensor]]) -> list[float]:
        module.eval()
        found = []
        for inputs, targets in parts:
            logits = torch.cat([module(chunk) for chunk in inputs.split(_AT_A_TIME)])
            bce(logits, targets)
            found.append(float(roc_auc_score(targets[:, 0], logits[:, 0])))
        return found

    def disagreement(inputs: torch.Tensor) -> torch.Tensor:
        module.eval()
        for layer in dropout:
            layer.train()
        passes = [torch.cat([module(it) for it in inputs.split(_AT_A_TIME)]) for _ in range(config.mc_samples)]
        p = torch.stack(passes).sigmoid().double()

        def entropy(p: torch.Tensor) -> torch.Tensor:
            return -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))

        return (entropy(p.mean(0)) - entropy(p).mean(0))[:, 0]

    matrix = []
    for inputs, targets in train:
        beta = torch.ones(len(inputs), requires_grad=True)
        beta_optimizer = torch.optim.Adam([beta], lr=config.beta_learning_rate)
        trajectory = []
        for _ in range(config.epochs_per_task):
            with torch.no_grad():
                chosen = [
                    (old[best], labels[best])
                    for old, labels in buffer
                    for best in [disagreement(old).topk(max(1, int(config.acquisition_fraction * len(old)))).indices]
                ]
            union = torch.cat([inputs, *(x for x, _ in chosen)])
            of_union = torch.cat([targets, *(y for _, y in chosen)])
            module.train()
            for places in torch.randperm(len(union)).split(config.batch_size):
                losses = bce(module(union[places]), of_union[places], reduction="none")[:, 0]
                current = places < len(inputs)
                weights = beta[places[current]]
                loss = losses.new_zeros(())
                if current.any():
                    loss = (weights * losses[current]).mean() + config.beta_penalty * ((weights - 1) ** 2).mean()
                if not current.all():
                    loss = loss + losses[~current].mean()
                optimizer.zero_grad()
                beta_optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                beta_optimizer.step()
            trajectory.append(beta.detach().clone())
            with torch.no_grad():
                aucs(held_out[::2])
        s = torch.trapezoid(torch.stack(trajectory), dim=0)
        stored = s.topk(max(1, int(config.storage_fraction * len(s)))).indices
        buffer.append((inputs[stored], targets[stored]))
        with torch.no_grad():
            matrix.append(aucs(held_out)[::2])
    return matrix
