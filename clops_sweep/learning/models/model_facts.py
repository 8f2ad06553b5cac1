"""ModelFacts: the description of a stored model. Does not need PyTorch."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, TypeAdapter
from pydantic_core import from_json

from clops_sweep.data.catalog import Normalization
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.records import MOST_SAMPLES
from clops_sweep.data.scenarios import LossKind, Scenario
from clops_sweep.data.scenarios.leaks import Seen
from clops_sweep.errors import UsageError, option
from clops_sweep.experiment.config import Rank, RunConfig
from clops_sweep.learning.networks.signal import Signal

FACTS: Final = "clops_sweep"
"""Key of the file metadata with the `ModelFacts` as JSON."""

_Size = Annotated[int, Field(ge=1, le=MOST_SAMPLES)]
_Names = Annotated[tuple[str, ...], Field(min_length=1)]


@dataclass(frozen=True)
class ModelFacts:
    """The description of a stored model and its input.

    Attributes:
        run_id: id of the run that trained it.
        dataset: data set that it was trained on.
        data_hash: content hash of its frames.
        scenario: scenario of the run.
        tasks: names of the tasks trained so far, in order.
        network: name of the network.
        network_options: its options.
        kind: "binary", "softmax" or "multilabel"; the last also for one sigmoid per class, as with head="per_class".
        classes: class of each output. If outputs are class positions within a task, the classes of all tasks at that
            position, joined by "|".
        channels: names of the channels of a frame, in order; joined by "|" if a frame is any one of several leads.
        samples: samples per channel.
        sampling_rate: sampling rate in Hz; None if unknown.
        normalize: normalisation of frames: "none", "minmax" or "zscore", per frame and channel.
        unit: unit of frames that are not normalised.
        people: people in the training and validation splits, by `leaks.person_hash`.
        signals: digests of the signals in these splits (`leaks.signal_digests`), in base64; empty in early models.
        encoder: name of the encoder whose features the network takes; None for signals.
        encoder_hash: SHA-256 of its code, weights and declaration.
        features: channels and samples of a frame of features, or of signals adapted to an encoder that the run trained
            further; None for signals.
        lora_rank: rank of that encoder's adapters.
        earlier: data sets and signals that the models were trained on which this one started from, one after another,
            as in `signals`; their people are among `people`.
    """

    run_id: str
    dataset: str
    data_hash: str
    scenario: str
    tasks: tuple[str, ...]
    network: str
    network_options: Mapping[str, Any]
    kind: LossKind
    classes: _Names
    channels: _Names
    samples: _Size
    sampling_rate: Annotated[float, Field(gt=1e-10, lt=1e10)] | None
    normalize: Normalization
    unit: str
    people: tuple[str, ...]
    encoder: str | None = None
    encoder_hash: str | None = None
    features: tuple[_Size, _Size] | None = None
    lora_rank: Rank = 0
    signals: str = field(default="", repr=False)
    earlier: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Channels and samples of the network's input."""
        return self.features or (len(self.channels), self.samples)

    @property
    def signal(self) -> Signal:
        """The facts of the network's input."""
        if self.encoder is not None:
            return Signal()
        seconds = None if self.sampling_rate is None else self.samples / self.sampling_rate
        return Signal.recorded(self.samples, seconds, self.channels)

    @property
    def seen(self) -> Seen:
        """What the network was trained on, without what its encoder has seen."""
        signals = [(self.dataset, self.signals), *self.earlier]
        return Seen(frozenset(self.people), tuple((name, _digests(written)) for name, written in signals))

    def as_data(self) -> dict[str, Any]:
        """Return the facts as JSON values; without `earlier` for a model that started from no other."""
        values = asdict(self)
        if not self.earlier:
            del values["earlier"]
        return values

    @classmethod
    def of(cls, config: RunConfig, frames: FrameSet, scenario: Scenario, trained: int, seen: Seen) -> ModelFacts:
        """Return the facts about a run's network after its first `trained` tasks.

        Args:
            config: the config of the run.
            frames: its frames.
            scenario: its tasks.
            trained: number of tasks that it was trained on.
            seen: what it was trained on, then what the models before it were.
        """
        encoded = frames.encoded
        samples = frames.samples if encoded is None else encoded.samples
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
            samples=samples,
            sampling_rate=None if frames.frame_seconds is None else samples / frames.frame_seconds,
            normalize=config.normalize or "none",
            unit=frames.unit if encoded is None else encoded.unit,
            people=tuple(sorted(seen.people)),
            signals=_written(seen.signals[0][1]),
            earlier=tuple((name, _written(digests)) for name, digests in seen.signals[1:]),
            encoder=None if encoded is None else encoded.encoder,
            encoder_hash=None if encoded is None else encoded.encoder_hash,
            features=None if encoded is None else (frames.channels, frames.samples),
            lora_rank=config.lora_rank,
        )


def facts_in(content: bytes, of: str = "the file") -> ModelFacts:
    """Return the facts in a file of `model_bytes`; `of` names it in errors.

    Raises:
        UsageError: the file has another format.
    """
    try:
        size = int.from_bytes(content[:8], "little")
        written = from_json(content[8 : 8 + size])["__metadata__"][FACTS]
        facts = TypeAdapter(ModelFacts).validate_json(written, strict=True)
        _ = facts.seen
        return facts
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"{of}: is not a model of clops-sweep; expected one stored by {option('keep', 'models')}"
        ) from None


def _written(digests: NDArray[np.uint64]) -> str:
    return base64.b64encode(digests.astype("<u8").tobytes()).decode()


def _digests(written: str) -> NDArray[np.uint64]:
    return np.frombuffer(base64.b64decode(written), "<u8")


def _classes(frames: FrameSet, scenario: Scenario) -> tuple[str, ...]:
    rows = np.concatenate([task.train.rows for task in scenario.tasks])
    targets = np.concatenate([task.train.targets for task in scenario.tasks]) > 0
    labels = frames.labels[rows]
    names = []
    for output, target in enumerate(targets.T):
        if frames.multi_label:  # the output of a label has its targets
            has_its_targets = (labels.astype(bool) == target[:, None]).all(axis=0)
            codes = np.flatnonzero(has_its_targets)[:1]
        else:
            codes = np.unique(labels[target])
        names.append("|".join(frames.classes[code] for code in codes) or f"output {output}")
    return tuple(names)


def _channels(frames: FrameSet, scenario: Scenario) -> tuple[str, ...]:
    if not frames.single_leads:
        return frames.lead_names
    leads = np.unique(frames.leads[np.concatenate([task.train.rows for task in scenario.tasks])])
    return ("|".join(frames.lead_names[lead] for lead in leads),)
