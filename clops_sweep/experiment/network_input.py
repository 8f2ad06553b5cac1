"""Checks that frames fit a network, and the networks that are tried before a launch."""

from __future__ import annotations

from clops_sweep.data.frames import FRAME_LENGTH, FrameSet
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS, PAPER_NETWORK


def is_tried(config: RunConfig) -> bool:
    """Return whether to try a network before a launch: it is custom, or some of its layers are to be replaced."""
    replaced = config.norm != "batch" or config.head == "cosine"
    return config.network in NETWORKS.added or replaced or config.lora_rank > 0


def check_frames(config: RunConfig, frames: FrameSet) -> None:
    """Check that frames fit the network and the encoder of a config.

    Raises:
        UsageError: the network is the paper's and the frames are not 1 x 2,500, or the frames are not features of the
            config's encoder.
    """
    encoded = frames.encoded
    encoder, adapted = (None, False) if encoded is None else (encoded.encoder, encoded.module is not None)
    if (encoder, adapted) != (config.encoder, config.lora_rank > 0):
        what = "signals" if encoder is None else f"{'adapted to' if adapted else 'features of'} encoder {encoder!r}"
        how = "open_frames" if config.encoder is None else "encode(config)"
        with_adapters = f", lora_rank = {config.lora_rank}" * (config.lora_rank > 0)
        raise UsageError(f"encoder = {config.encoder!r}{with_adapters}: the frames are {what}; open them with {how}")
    if config.network != PAPER_NETWORK or ((frames.channels, frames.samples) == (1, FRAME_LENGTH) and not adapted):
        return
    if config.encoder is not None:
        size = "" if adapted else f" of {frames.channels} x {frames.samples:,}"
        raise UsageError(
            f"network {PAPER_NETWORK!r} takes signals, and those of encoder {config.encoder!r} are features{size}; set "
            "network = 'linear', 'mlp' or one of your own"
        )
    one = ", or leads = 'single'" if frames.channels > 1 and frames.samples == FRAME_LENGTH else ""
    raise UsageError(
        f"network {PAPER_NETWORK!r} takes frames of 1 x {FRAME_LENGTH:,} samples, and those of {config.dataset!r} are "
        f"{frames.channels} x {frames.samples:,}; set network = 'resnet1d_wang' or one of your own{one}"
    )
