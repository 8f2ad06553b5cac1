"""What the functions of scenarios have in common: which instances stand for recordings, and targets by class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, DatasetInfo
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios.tasks import LossKind


def info_of(frames: FrameSet) -> DatasetInfo:
    """Facts about the data set, from the frames or from the catalogue."""
    return frames.info or DATASETS[frames.name]


def reference_lead_of(frames: FrameSet) -> NDArray[np.bool_]:
    """The instances of which each stands for a moment of a recording, bool [n].

    Those of one lead where a recording of many gives an instance a lead; all, where it gives only one lead, or one
    instance of all leads.
    """
    lead = info_of(frames).reference_lead
    if lead is None or not frames.single_leads:
        return np.ones(len(frames), bool)
    return np.asarray(frames.leads == frames.lead_names.index(lead))


def class_targets(frames: FrameSet) -> NDArray[np.float32]:
    """One output a class: one-hot [n, C], or multi-hot where instances carry several labels."""
    if frames.multi_label:
        return np.asarray(frames.labels, np.float32)
    return np.asarray(np.eye(len(frames.classes))[frames.labels], np.float32)


def kind_of_labels(frames: FrameSet) -> LossKind:
    """The kind of output that goes with `class_targets`."""
    return "multilabel" if frames.multi_label else "softmax"
