"""Caps on the number of frames per patient and per class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.records import Index


def keep_evenly(index: Index, *, per_patient_and_class: int, per_class: int) -> NDArray[np.bool_]:
    """Return the mask of the frames to keep, [n] bool, for labels [n].

    Every patient keeps at most q frames of a class. q is the largest number up to `per_patient_and_class` for which
    the class has at most `per_class` frames in total (but at least 1). The kept frames are spread evenly over the
    patient's frames, so that no part of a recording is preferred.
    """
    keep = np.zeros(len(index), bool)
    for label in np.unique(index.labels):
        of_class = np.flatnonzero(index.labels == label)
        patients, counts = np.unique(index.patients[of_class], return_counts=True)
        caps = np.arange(per_patient_and_class, 0, -1)
        totals = np.minimum(counts[None, :], caps[:, None]).sum(1)
        cap = int(caps[np.argmax(totals <= per_class)]) if (totals <= per_class).any() else 1
        for patient in patients:
            rows = of_class[index.patients[of_class] == patient]
            wanted = min(cap, len(rows))
            # The middles of `wanted` equal parts of the recording.
            keep[rows[((np.arange(wanted) + 0.5) * len(rows) / wanted).astype(int)]] = True
    return keep
