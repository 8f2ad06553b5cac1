"""Shared code of data sets of twelve-lead recordings: leads, windows of whole frames, integer frames."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.declared.portions import SHORT
from clops_sweep.data.files.wfdb_records import Header, read_header, read_stored, require_leads, require_rate
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.records import Common, Frames, Source, Windows
from clops_sweep.data.same_samples import samples_digest

RATE: Final = 500.0
LEADS: Final = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def whole_windows(common: Common, samples: int, width: int, label: NDArray[Any] | int, **known: Any) -> Windows:
    """Return non-overlapping windows of `width` samples in each of the twelve leads, with the recording's label(s).

    The order is window by window, then by LEADS; samples after the last whole window are left out. `known` holds
    patient, time and groups.
    """
    begins = np.arange(0, samples - width + 1, width)
    is_short = len(begins) == 0
    dropped = {SHORT: 1} if is_short else {}
    labels = np.repeat(np.asarray(label)[None], len(begins), axis=0)
    return common.offered(begins, labels, width, RATE, dropped=dropped, **known)


class IntegerRecord(Source):
    """Frames of 2500 samples of twelve leads at 500 Hz in the publisher's integers."""

    @abstractmethod
    def windows(self, common: Common, header: Header) -> Windows:
        """Return every whole frame of every lead, with the classes of the recording as multi-hot [m, C]."""

    def whole(self, common: Common, header: Header, names: Iterable[str], **known: Any) -> Windows:
        """Return the same as `windows`, from the names of the classes."""
        label = np.isin(common.classes, [*names]).astype(np.uint8)
        return whole_windows(common, header.samples, FRAME_LENGTH, label, **known)

    def read(self, common: Common) -> Frames:
        """Read the publisher's integers with the header's gain and baseline, without loss."""
        header = read_header(self.files[0])
        require_rate(header, RATE)
        positions = np.array(require_leads(header, LEADS))
        windows = self.windows(common, header)
        stored = read_stored(header)[:, positions]
        frames = windows.cut(stored.T)
        leads = positions[windows.leads]
        gain = 1 / header.gain[leads]
        offset = -header.baseline[leads] / header.gain[leads]
        is_missing = frames == header.missing[leads, None]
        digest = samples_digest(stored)
        return Frames(windows, frames, gain.astype(np.float32), offset.astype(np.float32), is_missing.any(1), [digest])
