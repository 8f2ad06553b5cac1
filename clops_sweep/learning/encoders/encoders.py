"""Encoders by name: declared encoders, and networks of stored runs without their last layer."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.encoders import Computing
from clops_sweep.data.files.folder import one_sentence
from clops_sweep.data.files.hashes import file_sha256, hash_of
from clops_sweep.data.frames import FrameSet, StartModel
from clops_sweep.data.origins import ORIGINS, Origin
from clops_sweep.data.prepared.freshness import state_of
from clops_sweep.data.scenarios.leaks import CHALLENGES, Seen
from clops_sweep.errors import UsageError, listed, prefixed, warn_user
from clops_sweep.experiment.plugins.declarations import DeclaredEncoder, EncoderInput
from clops_sweep.experiment.plugins.registry import ENCODERS, NETWORKS, STORED_RUN
from clops_sweep.learning.encoders.adapting import Adapter, Signals, adapter
from clops_sweep.learning.encoders.weight_files import files_beside
from clops_sweep.learning.models.model_facts import ModelFacts, facts_in

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from clops_sweep.learning.models.trained_model import UsedEncoder

_OF_RUNS = frozenset({"resample", "pad", "crop"})
"""Allowed adaptations to the network of a stored run."""

_RUN = "run:"

_hashes: dict[Path, tuple[list[int], str]] = {}
"""SHA-256 of weights by file and its state, cached in this process."""


@dataclass(frozen=True)
class _Encoder:
    """An available encoder.

    Attributes:
        takes: the signals that it takes.
        identity: SHA-256 of its code, weights and declaration.
        seen: what it has been trained on, as were the encoders below it.
        make: creates its module from the file of weights.
        weights: the file of weights.
        fit: whether `make` also takes training signals, to which it fits the module.
    """

    takes: EncoderInput
    identity: str
    make: Callable[..., Any]
    weights: Path | None = None
    seen: Seen = field(default_factory=Seen)
    fit: bool = False


class Encoders:
    """The encoders available to configs. PyTorch is imported only to compute features.

    Args:
        read_model: returns the last model of a stored run by id.
        data_root: folder to search for weights; by default CLOPS_DATA_ROOT.
    """

    def __init__(self, read_model: Callable[[str], bytes], data_root: str | os.PathLike[str] | None = None) -> None:
        self._read_model = read_model
        self._data_root = data_root or os.environ.get("CLOPS_DATA_ROOT")
        self._models: dict[str, tuple[bytes, ModelFacts]] = {}
        self._warned = set[str]()

    def identity(self, encoder: str) -> str:
        """Return the SHA-256 of an encoder's code, weights and declaration.

        Raises:
            UsageError: the encoder is not declared, or its weights or model are missing.
        """
        return self._encoder(encoder).identity

    def seen(self, encoder: str) -> Seen:
        """Return what the encoder, and those that it was trained on, have seen, as stored runs record it."""
        return self._encoder(encoder).seen

    def is_fitted(self, encoder: str) -> bool:
        """Return whether the encoder is fitted to the training signals of each split."""
        return self._encoder(encoder).fit

    def check(self, encoder: str, frames: FrameSet) -> None:
        """Check that an encoder can be used on some frames.

        Raises:
            UsageError: the frames do not fit and cannot be adapted, or it was trained on their people.
        """
        declared_encoder = self._encoder(encoder)
        if declared_encoder.seen.has_dataset(frames.name):
            raise UsageError(
                f"dataset {frames.name!r}: encoder {encoder!r} was trained on its people, so they cannot be evaluated; "
                "expected another data set or encoder"
            )
        if unknown := sorted(declared_encoder.seen.datasets - {*DATASETS, *CHALLENGES, *self._warned}):
            self._warned.update(unknown)
            warn_user(
                f"encoder {encoder!r}: trained_on: unknown here are {listed(unknown)}, so no run is refused for their "
                "people; declare these data sets, or correct their names"
            )
        self.adapter(encoder, frames)

    def adapter(self, encoder: str, frames: FrameSet) -> Adapter:
        """Return what adapts some frames to an encoder; UsageError if they do not fit."""
        return adapter(encoder, self._encoder(encoder).takes, Signals.of(frames))

    def compute(self, encoder: str, frames: FrameSet, *, adapted: bool = False) -> Computing:
        """Return the features of all instances, or with `adapted` the signals that the encoder takes, computed lazily.

        Raises:
            UsageError: the signals do not fit, or the module cannot be created or is not a valid encoder.
        """
        from clops_sweep.learning.encoders.computing import adapting, computing

        return (adapting if adapted else computing)(encoder, *self._fitting(encoder, frames), frames)

    def features(self, encoder: str, frames: FrameSet, instances: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the features of a few instances, float32 [m, *shape].

        Raises:
            UsageError: the signals do not fit, or the module cannot be created or fails.
        """
        from clops_sweep.learning.encoders.computing import features_of

        return features_of(encoder, *self._fitting(encoder, frames), frames, instances)

    def model_hash(self, run: str) -> str:
        """Return the SHA-256 of the last model of a stored run, given as ``run:RUN_ID``.

        Raises:
            UsageError: the model is not stored.
        """
        content, _ = self._model(run.removeprefix(_RUN))
        return hashlib.sha256(content).hexdigest()

    def start_model(self, run: str, frames: FrameSet) -> StartModel:
        """Return the last model of a stored run, given as ``run:RUN_ID``, as the start of runs on some frames.

        Raises:
            UsageError: the model is not stored.
        """
        content, facts = self._model(run.removeprefix(_RUN))
        seen = facts.seen if facts.encoder is None else facts.seen | self.seen(facts.encoder)
        instances = np.arange(len(frames))
        is_seen = np.ones(len(frames), bool) if seen.has_dataset(frames.name) else seen.recognised(frames, instances)
        return StartModel(run, content, self.model_hash(run), is_seen)

    def _model(self, run_id: str) -> tuple[bytes, ModelFacts]:
        """Return the last model of a stored run with its facts."""
        if run_id not in self._models:
            content = self._read_model(run_id)
            self._models[run_id] = content, facts_in(content, f"model of run {run_id}")
        return self._models[run_id]

    def predicted(
        self, run_id: str, frames: FrameSet, instances: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the logits and the probabilities of some instances by the last model of a stored run, [m, outputs].

        Args:
            run_id: the run.
            frames: signals that are not normalised: the model normalises them as its run did.
            instances: int64 [m].

        Raises:
            UsageError: the model is not stored, cannot be made here, or does not take such frames.
        """
        from clops_sweep.learning.models.predicting import predicted_by
        from clops_sweep.learning.models.trained_model import model_from

        model = model_from(self._read_model(run_id), self.of_model, f"model of run {run_id}")
        return predicted_by(model, frames, instances)

    def module(self, encoder: str) -> EncoderModule:
        """Return a function that creates the module in any process on a machine with the weights.

        Raises:
            UsageError: the encoder is not declared, or its weights or model are missing.
        """
        identity, models, below = self.identity(encoder), dict[str, bytes](), encoder
        while stored := STORED_RUN.fullmatch(below):  # the encoder of a stored run may be a stored run itself
            self._encoder(below)
            models[stored[1]], facts = self._models[stored[1]]
            below = facts.encoder or ""
        return EncoderModule(encoder, identity, self._data_root, models)

    def made(self, encoder: str, identity: str) -> nn.Module:
        """Return a new module of the encoder, frozen and in evaluation mode.

        Raises:
            UsageError: the encoder has another identity in this process, or the module cannot be created.
        """
        current = self._encoder(encoder)
        if current.identity != identity:
            raise UsageError(
                f"encoder {encoder!r}: its code, weights or declaration changed after the launch; start again"
            )
        return self._module(encoder, current)

    def of_model(self, facts: ModelFacts) -> UsedEncoder:
        """Return the encoder whose features a stored model takes.

        Raises:
            UsageError: it differs from the encoder that the model was trained with.
        """
        from clops_sweep.learning.models.trained_model import UsedEncoder

        assert facts.encoder is not None
        if STORED_RUN.fullmatch(facts.encoder) is None and facts.encoder not in ENCODERS:
            raise UsageError(
                f"run {facts.run_id}: encoder {facts.encoder!r} is not declared; import the file that declares it first"
            )
        current = self._encoder(facts.encoder)
        if current.identity != facts.encoder_hash:
            raise UsageError(
                f"run {facts.run_id}: the code, weights or declaration of encoder {facts.encoder!r} changed after the "
                "run; restore what the run used"
            )
        if current.fit:
            raise UsageError(
                f"run {facts.run_id}: encoder {facts.encoder!r} is fitted to the training frames of each split, and "
                "the store holds only its head; expected a model with another encoder"
            )
        fitting = adapter(facts.encoder, current.takes, _signals(facts))
        return UsedEncoder(self._module(facts.encoder, current), fitting, (len(fitting.picked), fitting.samples))

    def _fitting(self, encoder: str, frames: FrameSet) -> tuple[nn.Module, Adapter]:
        fitting = self.adapter(encoder, frames)
        return self._module(encoder, self._encoder(encoder), fitting, frames), fitting

    def _module(
        self, name: str, encoder: _Encoder, fitting: Adapter | None = None, frames: FrameSet | None = None
    ) -> nn.Module:
        from clops_sweep.learning.encoders.computing import made_encoder, training_signals

        make = encoder.make
        if encoder.fit and fitting is not None and frames is not None:
            make = partial(make, signals=training_signals(fitting, frames))
        return made_encoder(name, make, encoder.weights)

    def _encoder(self, name: str) -> _Encoder:
        if stored := STORED_RUN.fullmatch(name):
            return self._stored(name, stored[1])
        if name not in ENCODERS:
            raise UsageError(f"encoder {name!r}: is not declared here; load the file that declares it")
        declared = ENCODERS.declaration(name).encoder
        assert declared is not None
        weights = self._weights(name, declared)
        origin = ORIGINS.get(("encoder", name), Origin())
        takes = declared.takes
        identity = hash_of(
            code=origin.code or origin.sha256 or name,
            **_hashes_of(name, weights),
            channels=takes.channels,
            sampling_rate=takes.sampling_rate,
            samples=takes.samples,
            adapt=sorted(takes.adapt),
            **({} if takes.filters is None else {"filters": repr(takes.filters)}),
            **({} if takes.normalizes is None else {"normalize": takes.normalizes}),
        )
        seen = Seen.of_names(declared.trained_on)
        return _Encoder(takes, identity, ENCODERS[name], weights, seen, declared.fit)

    def _weights(self, name: str, declared: DeclaredEncoder) -> Path | None:
        """Return the file of declared weights."""
        if declared.weights is None:
            return None
        folders = [Path(folder) for folder in (self._data_root, declared.folder) if folder]
        files = list(dict.fromkeys(folder / declared.weights for folder in folders))
        for file in files:
            if file.is_file():
                return file
        raise UsageError(
            f"encoder {name!r}: weights {declared.weights}: there is no such file; looked for "
            f"{' or '.join(map(str, files))}"
        )

    def _stored(self, name: str, run_id: str) -> _Encoder:
        """Return the network of a stored run without its last layer."""
        content, facts = self._model(run_id)
        if facts.network not in NETWORKS:
            raise UsageError(
                f"encoder {name!r}: its network {facts.network!r} is not declared; load the file that declares it"
            )

        def make(_: Path | None) -> nn.Module:
            from clops_sweep.learning.encoders.headless import without_head
            from clops_sweep.learning.models.trained_model import model_from

            return without_head(name, model_from(content, self.of_model))

        origin = ORIGINS.get(("network", facts.network), Origin())
        takes = taken_by_run(_signals(facts))
        seen = facts.seen
        if facts.encoder is not None:  # frames are adapted to the encoder below, like those of the run
            try:
                encoder = self._encoder(facts.encoder)
            except RecursionError:
                raise UsageError(f"encoder {name!r}: its stored models take features of each other") from None
            below, seen = encoder.takes, seen | encoder.seen
            takes = replace(
                takes,
                channels=below.channels,
                sampling_rate=below.sampling_rate or facts.sampling_rate,
                samples=adapter(facts.encoder, below, _signals(facts)).samples,
                adapt=_OF_RUNS | below.adapt,
                filters=below.filters,
                normalizes=below.normalizes,
            )
        identity = hash_of(model=hashlib.sha256(content).hexdigest(), network=origin.code or origin.sha256)
        return _Encoder(takes, identity, make, seen=seen)


def taken_by_run(signals: Signals) -> EncoderInput:
    """Return the signals that the network of a run on some signals takes as an encoder."""
    channels = tuple(signals.channels) if len(signals.channels) > 1 else 1
    unit = signals.unit if signals.normalize == "none" else None
    return EncoderInput(channels, signals.sampling_rate, signals.samples, _OF_RUNS, signals.normalize, unit)


def _signals(facts: ModelFacts) -> Signals:
    return Signals(facts.dataset, facts.channels, facts.samples, facts.sampling_rate, facts.normalize, facts.unit)


@dataclass(frozen=True)
class EncoderModule:
    """Creates the module of an encoder, also in a worker, which gets the code from the plug-ins of the launch.

    Attributes:
        encoder: name of the encoder.
        identity: SHA-256 of its code, weights and declaration; verified before use.
        data_root: folder of the weights.
        models: models of the stored runs that the encoder consists of, by run id.
    """

    encoder: str
    identity: str
    data_root: str | os.PathLike[str] | None
    models: Mapping[str, bytes] = field(repr=False)

    def __call__(self) -> nn.Module:
        """As `Encoders.made`."""
        return Encoders(self.models.__getitem__, self.data_root).made(self.encoder, self.identity)


def _hashes_of(name: str, weights: Path | None) -> dict[str, Any]:
    """Return the SHA-256 of the declared file and, if the weights are in several, of the others by name."""
    if weights is None:
        return {"weights": None}
    with one_sentence(weights), prefixed(f"encoder {name!r}"):
        others = {relative: _sha256(file) for relative, file in files_beside(weights).items()}
    hashes: dict[str, Any] = {"weights": _sha256(weights)}
    if others:
        hashes["weights_beside"] = others
    return hashes


def _sha256(file: Path) -> str:
    with one_sentence(file):
        state = state_of(file)
        if file not in _hashes or _hashes[file][0] != state:
            _hashes[file] = state, file_sha256(file)
    return _hashes[file][1]
