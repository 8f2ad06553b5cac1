"""Checks that frames fit a network, and the networks that are tried before a launch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clops_sweep.data.catalog import LEAD
from clops_sweep.data.frames import FRAME_LENGTH, FrameSet
from clops_sweep.data.scenarios.class_incremental import ONE_TASK, groups_of, other_scenario, too_few_classes
from clops_sweep.data.scenarios.domains import lacks_leads
from clops_sweep.errors import UsageError, listed, sentence
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import NETWORKS, PAPER_NETWORK, may_use

_CHECKED = ("dataset", "scenario", "task_classes", "domain", "network", "leads")
"""Fields of a config whose values decide what a suggested config corrects."""


def is_tried(config: RunConfig) -> bool:
    """Return whether to try a network before a launch: it is custom, or some of its layers are to be replaced."""
    replaced = config.norm != "batch" or config.head == "cosine"
    return NETWORKS.is_foreign(config.network) or replaced or config.lora_rank > 0


def check_frames(
    config: RunConfig, frames: FrameSet, base_of: Callable[[RunConfig, Sequence[str]], RunConfig | None] | None = None
) -> None:
    """Check that frames fit the encoder, the scenario and the network of a config.

    Args:
        config: the config of a run.
        frames: its frames.
        base_of: returns the base config of its search space, if correcting some fields there corrects them in its
            runs; None for a run on its own.

    Raises:
        UsageError: the frames are not features of the config's encoder; or, all in one message that ends with the
            config to use, the scenario cannot group the classes or lacks leads, and the network takes other frames. The
            config to use keeps every other setting of the user.
    """
    encoded = frames.encoded
    encoder, adapted = (None, False) if encoded is None else (encoded.encoder, encoded.module is not None)
    if (encoder, adapted) != (config.encoder, config.lora_rank > 0):
        what = "signals" if encoder is None else f"{'adapted to' if adapted else 'features of'} encoder {encoder!r}"
        how = "open_frames" if config.encoder is None else "encode(config)"
        with_adapters = f", lora_rank = {config.lora_rank}" * (config.lora_rank > 0)
        raise UsageError(f"encoder = {config.encoder!r}{with_adapters}: the frames are {what}; open them with {how}")
    start = None if frames.start_model is None else frames.start_model.run
    if start != config.start_from:
        raise UsageError(
            f"start_from = {config.start_from!r}: the frames are for start_from = {start!r}; open them with "
            "encode(config)"
        )
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
    remedy: dict[str, Any] = {}
    count = len(frames.classes)
    if config.scenario in ("class_il", "class_il_union") and frames.multi_label:
        wrong.append(
            f"{config.scenario} needs one label per instance, and instances of {config.dataset!r} have several"
        )
        remedy |= {"scenario": "subject_il", "task_classes": None}
    elif config.scenario in ("class_il", "class_il_union") and config.task_classes is None and count == ONE_TASK:
        wrong.append(too_few_classes(config.scenario, config.dataset))
        remedy |= {**other_scenario(frames), "task_classes": None}
    elif config.scenario in ("class_il", "class_il_union") and config.task_classes is None and count % 2:
        wrong.append(f"{config.scenario} pairs classes, and {config.dataset!r} has {count}")
        remedy |= {"scenario": "class_il_union", "task_classes": groups_of(count)}
    by_lead = config.scenario == "domain_il" and config.domain == LEAD and frames.single_leads
    if by_lead and frames.domains and lacks_leads(frames):
        columns = "the column" if len(frames.domains) == 1 else "the columns"
        wrong.append(
            f"domain_il by lead needs recordings of several leads, which {config.dataset!r} does not have; it declares "
            f"{columns} {listed(frames.domains)}"
        )
        remedy["domain"] = next(iter(frames.domains))
    if not fits:
        one = " (a single lead with leads='single')" if frames.samples == FRAME_LENGTH else ""
        wrong.append(
            f"network {PAPER_NETWORK!r} takes frames of 1 x {FRAME_LENGTH:,} samples, and those of {config.dataset!r} "
            f"are {frames.channels} x {frames.samples:,}{one}"
        )
        remedy["network"] = "small_cnn"
    if wrong:
        base = None if base_of is None else base_of(config, _CHECKED)
        written = config.without_unused if base is None else base
        problem = "; ".join(wrong)
        raise UsageError(f"{problem}; use {_remedied(problem, written, remedy)}")


def _remedied(problem: str, written: RunConfig, remedy: Mapping[str, Any]) -> str:
    """Return the written config, corrected, as Python code.

    If the sentence would be too long to be shown whole after the problem, only the corrected fields are named.
    """
    settings = written.explicit
    corrected = {name: value for name, value in remedy.items() if value != written.default_of(name)}
    order = settings.get("task_order")
    if isinstance(order, tuple) and "scenario" in remedy and len(order) != len(remedy["task_classes"] or ()):
        del settings["task_order"]  # it orders another number of tasks
    kept = {name: value for name, value in settings.items() if name not in remedy}
    kept = {"dataset": written.dataset} | kept | corrected
    arguments = []
    for name in (*RunConfig.model_fields, *OPTIONS):
        if name in kept and (name not in OPTIONS or may_use(name, kept)):
            arguments.append(f"{name}={_literal(kept[name])}")
    code = f"RunConfig({', '.join(arguments)})"
    whole = f"{problem}; use {code}"
    if sentence(whole) == whole:
        return code
    changes = ", ".join(f"{name}={_literal(value)}" for name, value in corrected.items() if value != written.get(name))
    return f"{changes} with the other settings as they are"


def _literal(value: object) -> str:
    """Return a value of a config as Python code, with double quotes and lists as in the documentation."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)
