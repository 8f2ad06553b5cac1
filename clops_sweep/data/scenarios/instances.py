"""Helpers of scenarios: selection of reference leads, and targets by class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, DatasetInfo
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios.tasks import LossKind


def info_of(frames: FrameSet) -> DatasetInfo:
    """Return the facts about the data set, its own or those of the catalogue."""
    return frames.info or DATASETS[frames.name]


def reference_lead_of(frames: FrameSet) -> NDArray[np.bool_]:
    """Return the instances with one per moment of a recording, bool [n].

    If each lead is an instance, those of the reference lead; otherwise all.
    """
    lead = info_of(frames).reference_lead
    if lead is None or not frames.single_leads:
        return np.ones(len(frames), bool)
    return np.asarray(frames.leads == frames.lead_names.index(lead))


def class_targets(frames: FrameSet) -> NDArray[np.float32]:
    """Return targets with one output per class: one-hot [n, C], or multi-hot for several labels."""
    if frames.multi_label:
        return np.asarray(frames.labels, np.float32)
    return np.asarray(np.eye(len(frames.classes))[frames.labels], np.float32)


def kind_of_labels(frames: FrameSet) -> LossKind:
    """Return the kind of output for `class_targets`."""
    return "multilabel" if frames.multi_label else "softmax"
