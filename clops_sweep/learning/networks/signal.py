"""Facts about the signal that some networks need besides its shape."""

from __future__ import annotations

from dataclasses import dataclass

from clops_sweep.data.frames import FrameSet


@dataclass(frozen=True)
class Signal:
    """The sampling rate and the channels of frames.

    Attributes:
        sampling_rate: in Hz; None if unknown.
        channels: names of the channels, in order; empty if a frame is any one of several leads, or features.
    """

    sampling_rate: float | None = None
    channels: tuple[str, ...] = ()

    @classmethod
    def of(cls, frames: FrameSet) -> Signal:
        """Return the facts of frames; nothing is known of the features of an encoder."""
        if frames.encoded is not None:
            return cls()
        named = not frames.single_leads and len(frames.lead_names) == frames.channels
        channels = tuple(frames.lead_names) if named else ()
        return cls.recorded(frames.samples, frames.frame_seconds, channels)

    @classmethod
    def recorded(cls, samples: int, seconds: float | None, channels: tuple[str, ...]) -> Signal:
        """Return the facts of frames of some samples and seconds; a name of a single channel may be of any lead."""
        rate = None if seconds is None else round(samples / seconds, 6)
        return cls(rate, channels if len(channels) > 1 else ())
