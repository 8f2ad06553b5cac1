"""What the readers of twelve-lead recordings share: leads, windows of whole frames, integer frames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.wfdb_records import Header, read_header, read_stored, require_leads, require_rate
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.reader import Reader, Signals, Source, Windows
from clops_sweep.data.same_samples import samples_digest

RATE: Final = 500.0
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


class IntegerFrames(Reader):
    """Base of readers whose frames are 2500 samples of twelve leads at 500 Hz as the publisher stored them."""

    unit = "mV"
    lead_names = LEADS
    stored_as = np.int16

    def header(self, source: Source) -> Header:
        """The record's header; BadInput where the sampling rate is another or a lead is missing."""
        header = read_header(source.files[0])
        require_rate(header, RATE)
        require_leads(header, LEADS)
        return header

    def labels(self, names: Iterable[str]) -> NDArray[np.uint8]:
        """One where a class is among the names, [C]."""
        return np.isin(self.classes, [*names]).astype(np.uint8)

    def signals(self, source: Source, windows: Windows) -> Signals:
        """The publisher's integers with the header's gain and baseline: nothing is lost."""
        header = read_header(source.files[0])
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
            samples_digest(stored[:, positions]),
        )
