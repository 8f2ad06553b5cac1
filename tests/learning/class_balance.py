"""Balanced weights of instances, by scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from clops_sweep.data.frames import TEST, TRAINING, FrameSet


def uneven(frames: FrameSet) -> FrameSet:
    """Move two thirds of the training instances of every second class to the test split; give each its own patient."""
    first = frames.labels % 2 == 0 if frames.labels.ndim == 1 else frames.labels[:, 0] == 1
    places = np.flatnonzero(first & (frames.split == TRAINING))
    split = frames.split.copy()
    split[np.delete(places, np.s_[::3])] = TEST
    everyone = np.arange(len(frames))
    names = tuple(f"P{number:03d}" for number in everyone)
    return replace(frames, split=split, patients=everyone.astype(np.int32), patient_names=names)


def balanced(targets: NDArray[Any], kind: str = "") -> NDArray[np.float64]:
    """Return the weights of n instances with targets [n, C]: one-hot if rows sum to 1 and C > 1, else C labels."""
    one_hot = targets.shape[1] > 1 and (targets.sum(1) == 1).all() and kind != "multilabel"
    labels = [targets.argmax(1)] if one_hot else list(targets.T)
    found = []
    for label in labels:
        classes = np.unique(label)
        weights = dict(zip(classes, compute_class_weight("balanced", classes=classes, y=label), strict=True))
        found.append([weights[value] for value in label])
    return np.mean(found, axis=0)
