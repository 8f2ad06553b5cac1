"""TrainedModel: the network of a run after a task, as a module that predicts, and as bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from clops_sweep.data.prepared.normalization import normalized
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins import braindecode
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning import losses
from clops_sweep.learning.models.model_facts import FACTS, ModelFacts, facts_in
from clops_sweep.learning.networks.on_features import OnFeatures, TunedEncoder
from clops_sweep.learning.networks.run_module import load_weights, made


@dataclass(frozen=True)
class UsedEncoder:
    """The encoder of a network.

    Attributes:
        module: maps signals [B, channels, samples] to features.
        adapted: maps frames of the data set to the encoder's signals, both float32 [B, channels, samples].
        shape: channels and samples of these signals.
    """

    module: nn.Module
    adapted: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    shape: tuple[int, int]


class TrainedModel(nn.Module):
    """The network of a run after a task: maps frames to probabilities.

    The input, float32 [B, channels, samples], must be normalised as in `normalize` and adapted to the encoder, if any
    (`normalized` does both). The output, float32 [B, outputs], equals the run's `predictions` to 1e-5. `network` is the
    module with its encoder, whose outputs are logits. Both are in evaluation mode.

    Args:
        network: the module with its weights.
        facts: description of the model.
        encoder: its encoder; part of the network if that is an `OnFeatures`.

    Attributes:
        network: the module from frames to logits.
        facts: description of the model.
        input_shape: channels and samples of the input.
        classes, channels, sampling_rate, normalize: as in `facts`.
    """

    def __init__(self, network: nn.Module, facts: ModelFacts, encoder: UsedEncoder | None = None) -> None:
        super().__init__()
        self.network = network
        self.input_shape = facts.shape
        self._adapted = None
        if encoder is not None:
            self.input_shape = encoder.shape
            self._adapted = encoder.adapted
            if not isinstance(network, OnFeatures):
                self.network = OnFeatures(encoder.module, network)
        self.facts = facts
        self.classes = facts.classes
        self.channels = facts.channels
        self.sampling_rate = facts.sampling_rate
        self.normalize = facts.normalize
        self.eval()

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Return probabilities [B, outputs] of frames [B, channels, samples]."""
        return losses.probabilities(self.facts.kind, self.network(frames))

    def normalized(self, signal: NDArray[np.floating[Any]]) -> torch.Tensor:
        """Return frames of the data set in `unit`, [B, channels, samples], normalised and adapted to the encoder.

        Raises:
            UsageError: a wrong shape, or samples that are not finite.
        """
        shape = (len(self.facts.channels), self.facts.samples)
        frames = np.asarray(signal, dtype=np.float32)
        if frames.ndim != 3 or frames.shape[1:] != shape:
            raise UsageError(f"signal has the shape {list(frames.shape)}; expected [frames, {shape[0]}, {shape[1]}]")
        if not np.isfinite(frames).all():
            raise UsageError("signal has samples that are not finite; leave these frames out")
        normal = normalized(self.facts.normalize, frames)
        adapted = normal if self._adapted is None else self._adapted(normal)
        return torch.from_numpy(adapted)


def model_bytes(weights: Mapping[str, torch.Tensor], facts: ModelFacts) -> bytes:
    """Return a model as safetensors, with equal bytes for equal weights and facts."""
    in_order = {name: weights[name] for name in sorted(weights)}
    metadata = {FACTS: json.dumps(facts.as_data())}
    return save(in_order, metadata)


def model_from(
    content: bytes, encoder_of: Callable[[ModelFacts], UsedEncoder] | None = None, of: str = "the file"
) -> TrainedModel:
    """Return the model in a file of `model_bytes`. Nothing in the file is executed.

    Args:
        content: content of the file.
        encoder_of: returns the encoder of a model on features.
        of: names the file in errors.

    Raises:
        UsageError: the file has another format, its network is not declared, the weights do not fit, or its encoder has
            changed.
    """
    facts = facts_in(content, of)
    if facts.network not in NETWORKS:
        if facts.network.startswith(braindecode.PREFIX):
            why = braindecode.why_unknown(facts.network)
            raise UsageError(f"run {facts.run_id}: network {facts.network!r}: {why}")
        raise UsageError(
            f"run {facts.run_id}: network {facts.network!r} is not declared; import the file that declares it first"
        )
    encoder = None
    if facts.encoder is not None:
        if encoder_of is None:
            raise UsageError(f"run {facts.run_id}: its network takes features of encoder {facts.encoder!r}")
        encoder = encoder_of(facts)
    outputs = len(facts.classes)
    options = {**facts.network_options, "encoder": None}
    if NETWORKS.declaration(facts.network).takes_signal:
        options["signal"] = facts.signal
    if encoder is not None and facts.lora_rank:
        module = encoder.module
        identity = str(facts.encoder_hash)
        options["encoder"] = TunedEncoder(str(facts.encoder), lambda: module, identity, facts.lora_rank)
    network = made(facts.network, NETWORKS[facts.network], 0, facts.shape, outputs, options)
    try:
        load_weights(network, load(content))
    except (RuntimeError, SafetensorError) as error:
        last_line = str(error).strip().splitlines()[-1].strip()
        raise UsageError(
            f"run {facts.run_id}: its weights do not fit network {facts.network!r} as it is declared now ({last_line})"
        ) from None
    return TrainedModel(network, facts, encoder)
