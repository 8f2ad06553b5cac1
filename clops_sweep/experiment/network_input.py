"""What the paper's network asks of frames; others say themselves what they cannot do with theirs."""

from __future__ import annotations

from clops_sweep.data.frames import FRAME_LENGTH, FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK


def check_frames(config: RunConfig, frames: FrameSet) -> None:
    """Sees whether the config's network takes such frames.

    Raises:
        UsageError: it is the paper's, and they are not 1 x 2,500; or the frames are not features of the config's
            encoder.
    """
    encoder = None if frames.encoded is None else frames.encoded.encoder
    if encoder != config.encoder:
        what = "signals" if encoder is None else f"features of encoder {encoder!r}"
        how = "open_frames" if config.encoder is None else "encode(config)"
        raise UsageError(f"encoder = {config.encoder!r}: the frames are {what}; open them with {how}")
    if config.network != PAPER_NETWORK or (frames.channels, frames.samples) == (1, FRAME_LENGTH):
        return
    if config.encoder is not None:
        raise UsageError(
            f"network {PAPER_NETWORK!r} takes signals, and those of encoder {config.encoder!r} are features of "
            f"{frames.channels} x {frames.samples:,}; set network = 'linear', 'mlp' or one of your own"
        )
    one = ", or leads = 'single'" if frames.channels > 1 and frames.samples == FRAME_LENGTH else ""
    raise UsageError(
        f"network {PAPER_NETWORK!r} takes frames of 1 x {FRAME_LENGTH:,} samples, and those of {config.dataset!r} are "
        f"{frames.channels} x {frames.samples:,}; set network = 'resnet1d_wang' or one of your own{one}"
    )
