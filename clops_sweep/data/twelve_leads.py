"""What the readers of twelve-lead recordings share: leads, windows of whole frames, integer frames."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.reader import Signals, Windows
from clops_sweep.data.wfdb_records import Header, read_stored, require_leads

LEADS: Final = ("I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6")


def whole_windows(
    patient: str,
    samples: int,
    width: int,
    rate: float,
    label: NDArray[Any] | int,
    time: np.datetime64 | None = None,
) -> Windows:
    """Non-overlapping windows of `width` samples in each of the twelve leads, all with the recording's label(s).

    Window by window, in the order of LEADS; samples after the last whole window are left out.
    """
    begins = np.arange(0, samples - width + 1, width)
    count = len(begins) * len(LEADS)
    return Windows(
        patient=patient,
        begin=np.repeat(begins, len(LEADS)).astype(np.int64),
        length=np.full(count, width, np.int64),
        start=np.repeat(begins, len(LEADS)) / rate,
        leads=np.tile(np.arange(len(LEADS), dtype=np.int16), len(begins)),
        labels=np.repeat(np.asarray(label)[None], count, axis=0),
        time=time,
        dropped={} if count else {"recording shorter than a frame": 1},
    )


def integer_frames(header: Header, windows: Windows) -> Signals:
    """Frames of 2500 samples as the publisher stored them, int16: nothing is lost. Unit: the header's."""
    positions = np.array(require_leads(header, LEADS))
    stored = read_stored(header)
    leads = positions[windows.leads]
    cut = np.stack(
        [stored[begin : begin + FRAME_LENGTH, lead] for begin, lead in zip(windows.begin, leads, strict=True)]
    )
    return Signals(
        cut,
        (1 / header.gain[leads]).astype(np.float32),
        (-header.baseline[leads] / header.gain[leads]).astype(np.float32),
        (cut == header.missing[leads, None]).any(1),
    )
