"""Fisher information of a network's parameters."""

from __future__ import annotations

import torch

from clops_sweep.learning import losses
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.learners.learner import Learner


def fisher_information(learner: Learner, instances: Instances) -> torch.Tensor:
    """Return F_k on a task's instances, laid out like the parameters; see `ElasticWeightConsolidation`."""
    labels = 1 if learner.kind == "softmax" else learner.outputs  # their mean is the loss, their sum the log-likelihood

    def negative_log_likelihood(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return labels * losses.instance_losses(learner.kind, logits, targets)

    return learner.mean_of_instance_gradients(
        instances.rows, negative_log_likelihood, instances.targets, of_each="square"
    )
