"""Frames without a usable signal, and leads that have no other."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.data_set import DataSet
from clops_sweep.data.files.folder import shorten
from clops_sweep.data.records import Signals, Source, Windows

MISSING: Final = "missing samples"
FLAT: Final = "flat line"


def unusable_frames(
    data: DataSet, signals: Signals, statistics: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which frames lack samples, and which of the others are a flat line, by their `frame_statistics`: [m] bool each.

    Where the channels of a moment are kept together, a flat line counts if all of them are flat.
    """
    low, high = statistics[:, 0], statistics[:, 1]
    missing = ~(np.isfinite(low) & np.isfinite(high)) if signals.missing is None else signals.missing
    flat = ~missing & (low == high)
    if not data.built_in:
        leads = len(data.common.channels)
        flat = np.repeat(flat.reshape(-1, leads).all(1), leads)
    return missing, flat


def dead_leads(
    data: DataSet, source: Source, windows: Windows, signals: Signals, statistics: NDArray[np.float64]
) -> list[str]:
    """A sentence for every lead of a record that has nothing but unusable frames of one kind.

    None where such leads are common in the data set, so that they are only dropped and counted.
    """
    if data.rules.tolerates_dead_leads or not data.built_in:
        return []
    where = shorten(source.signal_file or source.record)
    return [
        f"{where}: lead {data.common.channels[lead]} is nothing but {what}; repair the record"
        for bad, what in zip(unusable_frames(data, signals, statistics), (MISSING, FLAT), strict=True)
        for lead in np.unique(windows.leads[bad])
        if bad[windows.leads == lead].all()
    ]
