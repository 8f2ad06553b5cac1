"""Predictions of a stored model for instances of any data set."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet
from clops_sweep.learning import losses
from clops_sweep.learning.models.trained_model import TrainedModel

_AT_ONCE = 256
"""Instances that a model predicts at once."""


@torch.no_grad()
def predicted_by(
    model: TrainedModel, frames: FrameSet, instances: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the logits and the probabilities of some instances, float32 [m, outputs].

    Args:
        model: the model, which normalises and adapts the frames itself.
        frames: signals of its channels, rate and length, in its unit, that are not normalised.
        instances: int64 [m], at least one.
    """
    logits = []
    probabilities = []
    for first in range(0, len(instances), _AT_ONCE):
        signal = frames.signal(instances[first : first + _AT_ONCE])
        batch = model.normalized(signal[:, None] if signal.ndim == 2 else signal)
        of_batch = model.network(batch)
        logits.append(of_batch.numpy())
        probabilities.append(losses.probabilities(model.facts.kind, of_batch).numpy())
    return np.concatenate(logits), np.concatenate(probabilities)
