"""Frames of all leads of a recording, built from rows of one lead each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import FrameSet


def all_leads(frames: FrameSet, moments: NDArray[np.int64], data_hash: str) -> FrameSet:
    """Return instances that hold all leads, in the order of `lead_names`, from instances of single leads.

    Moments without a usable row of every lead are left out.

    Args:
        frames: instances of one row each.
        moments: the moment of each row, int64 [r], nondecreasing.
        data_hash: data hash of the result.
    """
    count = len(frames.lead_names)
    rows = np.arange(len(moments))
    regular = np.array_equal(moments, rows // count) and np.array_equal(frames.leads, rows % count)
    order = rows if regular else np.lexsort((frames.leads, moments))
    sizes = np.bincount(moments)
    complete = np.flatnonzero(sizes == count)
    firsts = np.concatenate([[0], np.cumsum(sizes)])[complete]
    members = order[firsts[:, None] + np.arange(count)].astype(np.int64)
    first = members[:, 0]
    return replace(
        frames,
        members=members,
        patients=frames.patients[first],
        labels=frames.labels[first],
        split=frames.split[first],
        leads=frames.leads[first],
        times=None if frames.times is None else frames.times[first],
        domains={name: (codes[first], names) for name, (codes, names) in frames.domains.items()},
        recordings=None if frames.recordings is None else frames.recordings[first],
        start=None if frames.start is None else frames.start[first],
        data_hash=data_hash,
    )
