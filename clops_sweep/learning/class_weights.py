"""The weight of each instance's loss by how rare its class is in its task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.config import RunConfig


def class_weights(config: RunConfig, kind: LossKind, targets: NDArray[np.float32]) -> NDArray[np.float32] | None:
    """What a config's `class_weights` makes of a task's training instances: [n], or None where all losses weigh alike.

    Args:
        config: the run's.
        kind: the scenario's kind of output.
        targets: [n, outputs] of zeros and ones.
    """
    return None if config.class_weights is None else balanced(kind, targets)


def balanced(kind: LossKind, targets: NDArray[np.float32]) -> NDArray[np.float32]:
    """n / (C n_c) for each of n instances, C being the classes that occur and n_c the instances of its own.

    This is what scikit-learn calls balanced: the weights have mean 1, and each class has the same sum of weights. With
    a sigmoid the classes are 0 and 1; where outputs are positions in a task, they are the task's own classes. With
    several labels every label is such a pair of classes, and the weight is the mean over the labels.
    """
    if kind == "softmax":
        return _of_classes(targets.argmax(1)).astype(np.float32)
    of_labels = np.stack([_of_classes(label) for label in targets.astype(np.int64).T])
    weights: NDArray[np.float32] = of_labels.mean(axis=0).astype(np.float32)
    return weights


def _of_classes(classes: NDArray[np.int64]) -> NDArray[np.float64]:
    _, places, counts = np.unique(classes, return_inverse=True, return_counts=True)
    weights: NDArray[np.float64] = len(classes) / (len(counts) * counts[places])
    return weights
