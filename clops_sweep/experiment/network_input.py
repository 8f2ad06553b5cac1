"""Checks that frames fit a network, and the networks that are tried before a launch."""

from __future__ import annotations

import json

from clops_sweep.data.frames import FRAME_LENGTH, FrameSet
from clops_sweep.data.scenarios.class_incremental import groups_of
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS, PAPER_NETWORK


def is_tried(config: RunConfig) -> bool:
    """Return whether to try a network before a launch: it is custom, or some of its layers are to be replaced."""
    replaced = config.norm != "batch" or config.head == "cosine"
    return NETWORKS.is_foreign(config.network) or replaced or config.lora_rank > 0


def check_frames(config: RunConfig, frames: FrameSet) -> None:
    """Check that frames fit the encoder, the scenario and the network of a config.

    Raises:
        UsageError: the frames are not features of the config's encoder; or, all in one message that ends with the
            config to use, the scenario cannot group the classes and the network takes other frames.
    """
    encoded = frames.encoded
    encoder, adapted = (None, False) if encoded is None else (encoded.encoder, encoded.module is not None)
    if (encoder, adapted) != (config.encoder, config.lora_rank > 0):
        what = "signals" if encoder is None else f"{'adapted to' if adapted else 'features of'} encoder {encoder!r}"
        how = "open_frames" if config.encoder is None else "encode(config)"
        with_adapters = f", lora_rank = {config.lora_rank}" * (config.lora_rank > 0)
        raise UsageError(f"encoder = {config.encoder!r}{with_adapters}: the frames are {what}; open them with {how}")
    fits = config.network != PAPER_NETWORK or (frames.channels, frames.samples) == (1, FRAME_LENGTH)
    if config.encoder is not None:
        if fits and not (adapted and config.network == PAPER_NETWORK):
            return
        size = "" if adapted else f" of {frames.channels} x {frames.samples:,}"
        raise UsageError(
            f"network {PAPER_NETWORK!r} takes signals, and those of encoder {config.encoder!r} are features{size}; set "
            "network = 'linear', 'mlp' or one of your own"
        )
    wrong: list[str] = []
    remedy: dict[str, object] = {"dataset": config.dataset}
    count = len(frames.classes)
    if config.scenario in ("class_il", "class_il_union") and frames.multi_label:
        wrong.append(
            f"{config.scenario} needs one label per instance, and instances of {config.dataset!r} have several"
        )
        remedy["scenario"] = "subject_il"
    elif config.scenario in ("class_il", "class_il_union") and config.task_classes is None and count % 2:
        wrong.append(f"{config.scenario} pairs classes, and {config.dataset!r} has {count}")
        remedy |= {"scenario": "class_il_union", "task_classes": groups_of(count)}
    if not fits:
        one = " (a single lead with leads='single')" if frames.samples == FRAME_LENGTH else ""
        wrong.append(
            f"network {PAPER_NETWORK!r} takes frames of 1 x {FRAME_LENGTH:,} samples, and those of {config.dataset!r} "
            f"are {frames.channels} x {frames.samples:,}{one}"
        )
        remedy["network"] = "small_cnn"
    if wrong:
        line = ", ".join(f"{name}={json.dumps(value)}" for name, value in remedy.items())
        raise UsageError(f"{'; '.join(wrong)}; use RunConfig({line})")
