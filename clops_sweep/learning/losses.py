"""Losses and probabilities of the three kinds of output: one sigmoid, softmax, several sigmoids."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from clops_sweep.data.scenarios import LossKind


def instance_losses(kind: LossKind, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the loss l_i of each instance.

    Binary cross-entropy for `binary`, averaged over the C labels for `multilabel`; categorical cross-entropy
    -sum_c y_c log softmax(z)_c for `softmax`, whose targets are one-hot.

    Args:
        kind: the scenario's kind of output.
        logits: [..., C].
        targets: [..., C] in [0, 1].

    Returns:
        [...].
    """
    if kind == "softmax":
        return -(targets * F.log_softmax(logits, dim=-1)).sum(-1)
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").mean(-1)


def loss_gradient(kind: LossKind, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return dl_i/dz: (sigmoid(z) - y) / C, or softmax(z) sum_c y_c - y; shapes [..., C] as in `instance_losses`."""
    if kind == "softmax":
        return torch.softmax(logits, dim=-1) * targets.sum(-1, keepdim=True) - targets
    gradient = torch.sigmoid(logits) - targets
    if kind == "multilabel":
        return gradient / logits.shape[-1]
    return gradient


def weighted(
    kind: LossKind, logits: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the losses l_i, [B], and the gradient of sum_i weights_i l_i with respect to the logits, [B, C]."""
    of_instances = instance_losses(kind, logits, targets)
    by_logits = loss_gradient(kind, logits, targets)
    return of_instances, by_logits.mul_(weights[:, None])


def predicted_right(kind: LossKind, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return whether the prediction equals the targets, in all labels if several: [..., C] to bool [...]."""
    if kind == "softmax":
        return logits.argmax(-1) == targets.argmax(-1)
    return ((logits > 0) == (targets > 0.5)).all(-1)


def log_odds(logits: torch.Tensor) -> torch.Tensor:
    """Return log(p_c / (1 - p_c)) = z_c - log sum_{k != c} exp(z_k), where p is the softmax of z.

    It has the order of the probabilities, without ties where these saturate at 1.

    Args:
        logits: [..., C], C >= 2.

    Returns:
        float64 [..., C].
    """
    z = logits.double()
    of_others = []
    for c in range(z.shape[-1]):
        others = torch.cat([z[..., :c], z[..., c + 1 :]], dim=-1)
        of_others.append(others.logsumexp(-1))
    return z - torch.stack(of_others, dim=-1)


def probabilities(kind: LossKind, logits: torch.Tensor) -> torch.Tensor:
    """Return class probabilities (`softmax`) or the probability of each label (`binary`, `multilabel`): [..., C]."""
    if kind == "softmax":
        return torch.softmax(logits, dim=-1)
    return torch.sigmoid(logits)
