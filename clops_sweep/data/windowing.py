"""How recordings are cut into frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Missing = Literal["refuse", "drop_windows"]
"""What to do about a window with samples that are missing, NaN or infinite."""

Rule = Literal["within", "majority", "contains", "beat"]
"""How labelled intervals and windows meet; see `Recordings.from_folder`. "beat": a window around each start."""


@dataclass(frozen=True)
class Windowing:
    """The arguments of `Recordings` that say how recordings are cut, validated by `recording_checks.windowing`.

    Attributes:
        window: duration of a window in seconds; None if each recording is a frame.
        stride: seconds between the starts of consecutive windows; None for the duration of a window.
        rate: sampling rate to resample to in Hz; None to keep that of the recording.
        missing: what to do about windows with missing samples.
        gaps: "split" to cut each piece between missing samples on its own.
        trim: "flat" to cut between the flat ends of a recording.
        rule: how labelled intervals and windows meet.
    """

    window: float | None = None
    stride: float | None = None
    rate: float | None = None
    missing: Missing = "refuse"
    gaps: Literal["split"] | None = None
    trim: Literal["flat"] | None = None
    rule: Rule = "within"

    @property
    def one_by_one(self) -> bool:
        """Whether recordings are cut at places of their own, so that several cannot be cut at once."""
        return self.gaps is not None or self.trim is not None

    def keeps(self, rate: float) -> bool:
        """Return whether recordings of this sampling rate are not resampled."""
        return self.rate is None or self.rate == rate

    def frame_samples(self, width: int, rate: float) -> int:
        """Return the samples per frame, from those of its window at the rate of the recording."""
        if self.rate is None or self.keeps(rate):
            return width
        return max(1, round(width * self.rate / rate))
