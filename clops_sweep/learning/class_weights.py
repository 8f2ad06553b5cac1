"""Weights of instances' losses by class frequency in their task."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.scenarios import LossKind


def balanced(kind: LossKind, targets: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return n / (C n_c) for each of n instances, with C occurring classes and n_c instances of its class.

    As "balanced" in scikit-learn: the mean weight is 1, and all classes have the same total weight. With a sigmoid the
    classes are 0 and 1; if outputs are class positions within a task, they are the task's classes. With several labels,
    each label is such a pair of classes, and the weight is the mean over labels.

    Args:
        kind: the scenario's kind of output.
        targets: [n, outputs] of zeros and ones.
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
