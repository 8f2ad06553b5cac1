"""Features of prepared frames: the output of a frozen encoder, computed once and cached.

For runs that train the encoder further, the cache holds the frames adapted to the encoder instead. It lies in
`features/KEY/` in the prepared folder, as `features.npy` [n, F] or [n, tokens, F] and `features.json`. KEY is a hash of
the frames' content, normalisation and leads, and of the encoder. It depends on the split only if
the encoder is fitted to training frames.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DataKey
from clops_sweep.data.encoders import Encoders
from clops_sweep.data.files.arrays import bytes_of, load_npy, npy_bytes, npy_header
from clops_sweep.data.files.folder import appearing_folder, one_sentence, write_file
from clops_sweep.data.files.hashes import digest_of_array, hash_of
from clops_sweep.data.files.progress import with_progress
from clops_sweep.data.files.regular_files import read_json
from clops_sweep.data.files.termination import terminated_like_interrupted
from clops_sweep.data.frames import TRAINING, Encoded, FrameSet
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.data.prepared.manifest import FileRecord
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.prepared.verified_frames import array_written, check_array
from clops_sweep.data.scenarios.leaks import signal_digests
from clops_sweep.errors import DamagedStore, UsageError, option

FEATURES: Final = "features"
"""The folder of all features of a data set."""

_ARRAY, _FACTS, _DIGESTS = "features.npy", "features.json", "signals.npy"
_VERSION = 1
"""Version of the computation, raised when the same frames and encoder give other features than before."""

_DTYPE = np.dtype(np.float32)

_FEW: Final = 4
"""Instances whose features are computed again when cached features are used."""

_ROUNDING: Final = 1e-3
"""Tolerance relative to the largest feature: what an encoder may depend on other instances in the batch, and far more
than the rounding of other processors, GPUs (without TF32) and numbers of threads."""


@dataclass(frozen=True)
class FeatureFacts:
    """Content of `features.json`.

    Attributes:
        encoder: name of the encoder, with a suffix for adapted frames.
        encoder_hash: identity of the encoder.
        device: the device that computed the features.
        shape: shape of the array.
        sha256: `array_sha256` of the array.
        size: size of its file in bytes.
    """

    encoder: str
    encoder_hash: str
    device: str
    shape: tuple[int, ...]
    sha256: str
    size: int

    @property
    def record(self) -> FileRecord:
        """Size and hashes of the array's file."""
        return FileRecord(self.size, self.sha256, [_DTYPE.str, list(self.shape)])


class CachedFeatures:
    """The features of one encoder on one data set, cached or not.

    Args:
        prepared: the data set.
        key: selects frames and encoder.
        encoders: all known encoders.
        signals: data hash of the frames, which covers their split.
    """

    def __init__(self, prepared: PreparedSet, key: DataKey, encoders: Encoders, signals: str | None) -> None:
        assert key.encoder is not None
        self._encoder, self._encoders, self._name = key.encoder, encoders, key.dataset
        self._adapted = key.is_adapted
        self._identity = encoders.identity(key.encoder)
        leads = key.leads if len(prepared.manifest.lead_names) > 1 else "single"
        of = {"content": prepared.manifest.content_hash, "normalize": key.normalize, "leads": leads}
        self._fitted = encoders.is_fitted(key.encoder)
        if self._fitted:
            of |= {"fitted": str(signals)}
        if self._adapted:
            of["what"] = "adapted frames"
        folder_name = hash_of(**of, encoder=self._identity, version=_VERSION)[:24]
        self._folder = prepared.folder / FEATURES / folder_name
        view = "--normalize", key.normalize, "--leads", key.leads
        root = prepared.folder.parent
        self._command = data_command("encode", self._name, *view, prepared_root=root, encoder=self._encoder)

    def facts(self) -> FeatureFacts | None:
        """Return the facts of the features; None if they are not computed or their file is incomplete."""
        facts = _read_facts(self._folder)
        with contextlib.suppress(OSError):
            if facts is not None and (self._folder / _ARRAY).stat().st_size == facts.size:
                return facts
        return None

    def data_hash(self, signals: str) -> str | None:
        """Return the data hash of the features, from that of their signals; None if they are not computed."""
        facts = self.facts()
        return None if facts is None else self._data_hash(signals, facts)

    def _data_hash(self, signals: str, facts: FeatureFacts) -> str:
        return hash_of(frames=signals, encoder=self._identity, features=facts.sha256)

    def check(self, frames: FrameSet) -> None:
        """Check that the encoder can be used on the signals.

        Raises:
            UsageError: the signals do not fit, or the encoder was trained on their people.
        """
        self._encoders.check(self._encoder, frames)
        if self._fitted and self._adapted:
            raise UsageError(
                f"encoder {self._encoder!r}: is fitted to training frames before the run; lora_rank needs "
                "another encoder"
            )

    def compute(self, frames: FrameSet, progress: bool) -> None:
        """Compute the features, unless they are cached and the encoder still computes them (on a few instances).

        They appear whole or not at all.

        Args:
            frames: the signals.
            progress: whether to show a progress bar.

        Raises:
            UsageError: encoder and frames do not fit, the encoder is invalid, or the disk has too little room.
        """
        self.check(frames)
        facts = self.facts()
        if facts is not None and (self._adapted or self._are_computed_now(facts, frames)):
            return
        with terminated_like_interrupted(), appearing_folder(self._folder) as staging:
            computing = self._encoders.compute(self._encoder, frames, adapted=self._adapted)
            what = "adapted frames" if self._adapted else "features"
            shape = (len(frames), *computing.shape)
            needed, free = int(np.prod(shape)) * _DTYPE.itemsize, shutil.disk_usage(staging).free
            if needed > free:
                raise UsageError(
                    f"encoder {self._encoder!r}: its {what} of {self._name!r} take {needed / 1e9:,.1f} GB, and "
                    f"{free / 1e9:,.1f} GB are free in {self._folder.parent}; free some, or choose another "
                    f"{option('prepared_root')}"
                )
            digest, title = digest_of_array(_DTYPE, shape), f"{self._name}: {what} of {self._encoder}"
            with open(staging / _ARRAY, "xb") as file:
                file.write(npy_header(_DTYPE, shape))
                for batch in with_progress(computing.batches, computing.count, title, progress):
                    digest.update(bytes_of(batch))
                    file.write(bytes_of(batch))
                size = file.tell()
            if self._encoders.identity(self._encoder) != self._identity:
                raise UsageError(
                    f"encoder {self._encoder!r}: its weights changed while its features were computed; start again"
                )
            name = f"{self._encoder} (adapted frames)" if self._adapted else self._encoder
            facts = FeatureFacts(name, self._identity, computing.device, shape, digest.hexdigest(), size)
            write_file(staging / _FACTS, json.dumps(asdict(facts), indent=1).encode())
        array_written(self._folder, _ARRAY, facts.record)

    def _are_computed_now(self, facts: FeatureFacts, frames: FrameSet) -> bool:
        """Return whether the encoder gives the cached features of a few instances.

        The hash of its code misses what the code reads while it runs, such as a table or another file of weights.
        """
        few = np.unique(np.linspace(0, len(frames) - 1, _FEW).astype(np.int64))
        now, then = self._encoders.features(self._encoder, frames, few), self._array(facts, len(frames))[few]
        return now.shape == then.shape and bool(np.abs(now - then).max() <= _ROUNDING * np.abs(then).max())

    def frames(self, signals: FrameSet) -> FrameSet:
        """Return the features, or adapted frames, mapped from the disk, with labels, patients and split.

        Raises:
            UsageError: they are not computed, or the encoder was trained on the same people.
            DamagedStore: they have changed since they were computed.
        """
        self.check(signals)
        facts = self.facts()
        if facts is None:
            raise UsageError(
                f"dataset {self._name!r}: its frames are not adapted to encoder {self._encoder!r}; a launch does that"
                if self._adapted
                else f"dataset {self._name!r}: the features of encoder {self._encoder!r} are not computed; run "
                f"'{self._command}' first"
            )
        features = self._array(facts, len(signals))
        rows = features.reshape(-1, features.shape[-1])
        rows.flags.writeable = False
        members = None if features.ndim == 2 else np.arange(len(rows)).reshape(features.shape[:2])
        encoded = Encoded(
            self._encoder,
            self._identity,
            facts.sha256,
            np.zeros(len(signals), bool),
            self._digests(signals),
            signals.channels,
            signals.samples,
            signals.unit,
            self._encoders.module(self._encoder) if self._adapted else None,
        )
        frames = replace(
            signals,
            frames=rows,
            gain=np.ones(len(rows), np.float32),
            offset=np.zeros(len(rows), np.float32),
            unit=signals.unit if self._adapted else "features",
            members=members,
            data_hash=self._data_hash(signals.data_hash, facts),
            encoded=encoded,
        )
        seen = self._encoders.seen(self._encoder).recognised(frames, np.arange(len(frames)))
        if self._fitted:
            seen |= signals.split == TRAINING
        return replace(frames, encoded=replace(encoded, seen=seen))

    def _array(self, facts: FeatureFacts, count: int) -> NDArray[np.float32]:
        """Return the features of `count` instances, mapped and verified."""
        try:
            check_array(self._folder, _ARRAY, facts.record)
            features: NDArray[np.float32] = load_npy(self._folder / _ARRAY, mapped=True)
            if features.shape != facts.shape or len(features) != count:
                raise DamagedStore(f"features of another shape than {_FACTS} says")
        except DamagedStore:
            raise DamagedStore(
                f"{self._folder / _ARRAY}: has changed since it was computed; delete {self._folder}, and the next "
                "launch computes it again"
            ) from None
        return features

    def _digests(self, signals: FrameSet) -> NDArray[np.uint64]:
        """Return the digests of the signals, which are kept beside the features: they take a second per gigabyte."""
        path = self._folder / _DIGESTS
        with contextlib.suppress(UsageError, DamagedStore):
            digests: NDArray[np.uint64] = load_npy(path)
            if digests.shape == (len(signals), signals.channels):
                return digests
        digests = signal_digests(signals, np.arange(len(signals)))
        with contextlib.suppress(OSError, UsageError):  # a folder may be read-only
            write_file(path, npy_bytes(digests))
        return digests


def _read_facts(folder: Path) -> FeatureFacts | None:
    """Return the content of `features.json` in a folder; None if it is missing or unreadable."""
    try:
        values: dict[str, Any] = read_json(folder / _FACTS)
        return FeatureFacts(**values | {"shape": tuple(map(int, values["shape"]))})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def computed_features(folder: Path) -> Sequence[FeatureFacts]:
    """Return the facts of all features in a prepared folder."""
    with one_sentence(folder):
        there = sorted((folder / FEATURES).iterdir()) if (folder / FEATURES).is_dir() else []
    return [facts for path in there if not path.name.startswith(".") and (facts := _read_facts(path)) is not None]
