"""What figures need of prepared frames."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


class Frames(Protocol):
    """Interface of prepared frames, as `clops_sweep.data.frames.FrameSet` implements it."""

    @property
    def name(self) -> str:
        """The data set's name."""

    @property
    def unit(self) -> str:
        """The unit of the signal."""

    @property
    def data_hash(self) -> str:
        """The data hash of runs on these frames."""

    @property
    def frame_seconds(self) -> float | None:
        """Duration of a frame in seconds; None if unknown."""

    @property
    def leads(self) -> npt.NDArray[np.int16]:
        """The channel of each instance as an index into `lead_names`; the first of several."""

    @property
    def lead_names(self) -> tuple[str, ...]:
        """Names of the channels."""

    def __len__(self) -> int: ...

    def signal(self, instances: Any) -> npt.NDArray[np.float32]:
        """Return the signal of some instances, (instances, samples) or (instances, channels, samples)."""
