"""TrainedModel: the network of a run after a task, as a module that predicts, and as bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.normalization import frame_statistics, normalized_gain_offset
from clops_sweep.data.scenarios import LossKind, Scenario
from clops_sweep.data.scenarios.leaks import person_hash
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning import losses
from clops_sweep.learning.networks.run_module import made

_KEY = "clops_sweep"
"""Of the entry in a file's metadata that holds the `ModelFacts` as JSON."""


@dataclass(frozen=True)
class ModelFacts:
    """What a stored model is, and what it expects.

    Attributes:
        run_id: of the run that trained it.
        dataset: what it was trained on.
        data_hash: content hash of these frames.
        scenario: their division into tasks.
        tasks: names of the tasks trained so far, in order.
        network: name of the network.
        network_options: its options.
        kind: "binary", "softmax" or "multilabel"; the last also for one sigmoid per class, as with head="per_class".
        classes: what each output stands for. Where an output is a position within a task, the classes of all tasks at
            that position, joined by "|".
        channels: names of the channels of a frame, in order; joined by "|" where a frame is any one of several leads.
        samples: samples per channel.
        sampling_rate: in Hz; None if unknown.
        normalize: how frames are normalised: "none", "minmax" or "zscore", per frame and channel.
        unit: of frames that are not normalised.
        people: the people in the training and validation splits, by `leaks.person_hash`.
    """

    run_id: str
    dataset: str
    data_hash: str
    scenario: str
    tasks: tuple[str, ...]
    network: str
    network_options: Mapping[str, Any]
    kind: LossKind
    classes: tuple[str, ...]
    channels: tuple[str, ...]
    samples: int
    sampling_rate: float | None
    normalize: str
    unit: str
    people: tuple[str, ...]

    @classmethod
    def of(cls, config: RunConfig, frames: FrameSet, scenario: Scenario, trained: int) -> ModelFacts:
        """Facts about a run's network after its first `trained` tasks."""
        seen = np.concatenate([part.rows for task in scenario.tasks for part in (task.train, task.validation)])
        people = {frames.patient_names[person] for person in np.unique(frames.patients[seen])}
        return cls(
            run_id=config.run_id(frames.data_hash),
            dataset=config.dataset,
            data_hash=frames.data_hash,
            scenario=config.scenario,
            tasks=tuple(task.name for task in scenario.tasks[:trained]),
            network=config.network,
            network_options=dict(config.network_options),
            kind="multilabel" if config.head == "per_class" else scenario.kind,
            classes=_classes(frames, scenario),
            channels=_channels(frames, scenario),
            samples=frames.samples,
            sampling_rate=None if frames.frame_seconds is None else frames.samples / frames.frame_seconds,
            normalize=config.normalize or "none",
            unit=frames.unit,
            people=tuple(sorted(person_hash(frames.name, person) for person in people)),
        )


class TrainedModel(nn.Module):
    """The network of a run after a task: from frames to probabilities.

    Called with float32 [B, channels, samples], normalised as `normalize` says, it returns float32 [B, outputs]: what
    the run's `predictions` hold, to 1e-5. `network` is the module itself, whose outputs are logits. Both are in
    evaluation mode.

    Args:
        network: the module, with its weights.
        facts: what it is and expects.

    Attributes:
        network: the module, from frames to logits.
        facts: everything that is known of the model.
        classes, channels, sampling_rate, normalize: as in `facts`.
    """

    def __init__(self, network: nn.Module, facts: ModelFacts) -> None:
        super().__init__()
        self.network = network
        self.facts = facts
        self.classes, self.channels = facts.classes, facts.channels
        self.sampling_rate, self.normalize = facts.sampling_rate, facts.normalize
        self.eval()

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Probabilities [B, outputs] of frames [B, channels, samples]."""
        return losses.probabilities(self.facts.kind, self.network(frames))

    def normalized(self, signal: NDArray[np.floating[Any]]) -> torch.Tensor:
        """Frames in `unit`, [B, channels, samples], as the model expects them.

        Raises:
            UsageError: the shape is not that of frames, or a sample is not finite.
        """
        shape = (len(self.facts.channels), self.facts.samples)
        frames = np.asarray(signal, dtype=np.float32)
        if frames.ndim != 3 or frames.shape[1:] != shape:
            raise UsageError(f"signal has the shape {list(frames.shape)}; expected [frames, {shape[0]}, {shape[1]}]")
        if not np.isfinite(frames).all():
            raise UsageError("signal has samples that are not finite; leave these frames out")
        rows = frames.reshape(-1, shape[1])
        ones, zeros = np.ones(len(rows), np.float32), np.zeros(len(rows), np.float32)
        gain, offset = normalized_gain_offset(self.facts.normalize, ones, zeros, frame_statistics(rows))
        return torch.from_numpy((gain[:, None] * rows + offset[:, None]).reshape(frames.shape))


def model_bytes(weights: Mapping[str, torch.Tensor], facts: ModelFacts) -> bytes:
    """A model as the content of a safetensors file, the same for the same weights and facts."""
    return save({name: weights[name] for name in sorted(weights)}, {_KEY: json.dumps(asdict(facts))})


def facts_in(content: bytes) -> ModelFacts:
    """The facts in a file that `model_bytes` made.

    Raises:
        UsageError: the content is something else.
    """
    try:
        size = int.from_bytes(content[:8], "little")
        found = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][_KEY])
        lists = {name: tuple(found[name]) for name in ("tasks", "classes", "channels", "people")}
        return ModelFacts(**found | lists)
    except (ValueError, KeyError, TypeError):
        raise UsageError("the file is no model of clops-sweep; expected one that --keep models has stored") from None


def model_from(content: bytes) -> TrainedModel:
    """The model in a file that `model_bytes` made. Nothing in the file is executed.

    Raises:
        UsageError: the content is something else, its network is not declared, or the weights do not fit the network.
    """
    facts = facts_in(content)
    if facts.network not in NETWORKS:
        raise UsageError(
            f"run {facts.run_id}: network {facts.network!r} is not declared; import the file that declares it first"
        )
    shape, outputs = (len(facts.channels), facts.samples), len(facts.classes)
    network = made(facts.network, NETWORKS[facts.network], 0, shape, outputs, facts.network_options)
    try:
        network.load_state_dict(load(content))
    except (RuntimeError, SafetensorError) as error:
        first = str(error).strip().splitlines()[-1].strip()
        raise UsageError(
            f"run {facts.run_id}: its weights do not fit network {facts.network!r} as it is declared now ({first})"
        ) from None
    return TrainedModel(network, facts)


def _classes(frames: FrameSet, scenario: Scenario) -> tuple[str, ...]:
    rows = np.concatenate([task.train.rows for task in scenario.tasks])
    targets = np.concatenate([task.train.targets for task in scenario.tasks]) > 0
    if frames.multi_label:
        labels = frames.labels[rows].astype(bool)
        same = [(labels == column[:, None]).all(axis=0) for column in targets.T]
        found = [[frames.classes[place] for place in np.flatnonzero(it)[:1]] for it in same]
    else:
        found = [[frames.classes[place] for place in np.unique(frames.labels[rows[column]])] for column in targets.T]
    return tuple("|".join(names) or f"output {number}" for number, names in enumerate(found))


def _channels(frames: FrameSet, scenario: Scenario) -> tuple[str, ...]:
    if frames.members is not None:
        return frames.lead_names
    leads = np.unique(frames.leads[np.concatenate([task.train.rows for task in scenario.tasks])])
    return ("|".join(frames.lead_names[lead] for lead in leads),)
