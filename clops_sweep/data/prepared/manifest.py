"""The manifest of a prepared folder: its content, its origin, and checks that it is complete."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from clops_sweep.data.catalog import DATASETS, DatasetInfo
from clops_sweep.data.files.folder import is_file, one_sentence
from clops_sweep.data.files.hashes import file_sha256, hash_of, npy_sha256
from clops_sweep.data.files.regular_files import METADATA_LIMIT, read_json
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.data.left_out import RECORDINGS, WHOLE_FRAMES, LeftOut, Reason
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.data.splits.fixed_folds import FixedFolds
from clops_sweep.errors import DamagedStore, UsageError, either, listed

FORMAT_VERSION: Final = 3
MANIFEST: Final = "manifest.json"
INDEX: Final = "index.parquet"
FRAMES: Final = "frames.npy"
_CHECKSUM: Final = "checksum"
_COUNTED: Final = ("recordings", "records", "intervals", "labels", "links")
"""First words of the reasons, in manifests of earlier versions, that count other things than frames."""


@dataclass(frozen=True)
class FileRecord:
    """A file of the prepared folder: its size in bytes and the SHA-256 of the whole file.

    `array` is dtype and shape of the array in the file and its `array_sha256`, from which the data hash is computed.
    """

    size: int
    sha256: str
    array: Sequence[Any] | None = None


@dataclass(frozen=True)
class DomainFacts:
    """What was read of the recordings of a domain: sampling rates in Hz, and frames left out, by reason."""

    rates: tuple[float, ...]
    dropped: Mapping[str, int]


@dataclass(frozen=True)
class Manifest:
    """Content of `manifest.json`, which is written last.

    Attributes:
        files: size and SHA-256 of `frames.npy` and `index.parquet`.
        sources: SHA-256 of every file that the frames were made from, by its key.
        frames: number of stored rows, one for each frame and channel; `instances` is that of frames.
        dropped: number of frames left out, by reason. A frame of all channels counts once.
        left_out: what else is left out, ordered by reason.
        missing: number of frames with missing samples, by channel; they are among `dropped`.
        skipped: records left out under --on-error skip, with the reason.
        content_hash: SHA-256 over the arrays (dtype, shape, bytes), the classes and the leads: the part of a run's data
            hash that depends on neither the split nor the normalisation.
        data_hash: the data hash for split seed 0 without normalisation.
        frame_seconds: length of a frame in seconds.
        samples: samples per frame.
        sampling_rate: samples per second, if known.
        domains: names of the codes of each domain.
        groups: names of the codes of each column for subgroups; no run depends on them.
        multi_label: whether labels are [n, C] instead of [n].
        dated: whether frames have dates.
        whole_moments: whether the rows of each moment are adjacent and hold all leads in order.
        fingerprint: SHA-256 of the code that declares the data set; None for a built-in one.
        equal_code: fingerprints of other declarations of this name that gave the same frames from the same files.
        info: facts about a declared data set (`DatasetInfo`).
        given_split: whether the split is the same for every seed.
        folds: the folds that the declaration gives, of each split seed; empty without any.
        by_domain: what was read of each domain of each column of domains, of declared data; the column "" has one
            entry "" for all recordings. Empty for frames of earlier versions.
    """

    format_version: int
    name: str
    reader_version: int
    options: Mapping[str, Any]
    on_error: str
    unit: str
    classes: tuple[str, ...]
    lead_names: tuple[str, ...]
    patient_names: tuple[str, ...]
    frames: int
    dropped: Mapping[str, int]
    skipped: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    files: Mapping[str, FileRecord]
    content_hash: str
    data_hash: str
    sources: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    multi_label: bool = False
    dated: bool = False
    frame_seconds: float | None = None
    samples: int = FRAME_LENGTH
    sampling_rate: float | None = None
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    given_split: bool = False
    whole_moments: bool = False
    fingerprint: str | None = None
    equal_code: tuple[str, ...] = ()
    info: DatasetInfo | None = None
    folds: tuple[FixedFolds, ...] = ()
    by_domain: Mapping[str, Mapping[str, DomainFacts]] = field(default_factory=dict)

    def dataset_info(self) -> DatasetInfo | None:
        """Facts about the data set: those recorded when it was prepared, or else those of the catalogue."""
        return self.info or DATASETS.get(self.name)

    def with_equal_code(self, before: Manifest | None) -> Manifest:
        """Return this manifest with the code of an earlier one that differs from it in its code alone."""
        if before is None or before.fingerprint is None or self.fingerprint is None:
            return self
        alike = replace(before, fingerprint=self.fingerprint, equal_code=self.equal_code, by_domain=self.by_domain)
        if alike.to_json() != self.to_json():
            return self
        codes = {before.fingerprint, *before.equal_code} - {self.fingerprint}
        return replace(self, equal_code=tuple(sorted(codes)))

    @property
    def rows_per_frame(self) -> int:
        """Stored rows of a frame: one for each channel if frames have all channels, otherwise one."""
        info = self.dataset_info()
        return rows_per_frame(info, self.lead_names) if self.whole_moments and info is not None else 1

    @property
    def instances(self) -> int:
        """Number of frames, as runs of the data set's default `leads` have them."""
        return self.frames // self.rows_per_frame

    @property
    def frame_words(self) -> str:
        """The unit of `instances`, in the plural."""
        is_one_of_many = self.rows_per_frame == 1 and len(self.lead_names) > 1
        return "frames of one channel each" if is_one_of_many else "frames"

    def to_json(self) -> bytes:
        """Return the manifest as JSON, one line per entry; indenting 100,000s of names would take too long."""
        files = {name: asdict(record) for name, record in self.files.items()}
        left_out = [asdict(record) for record in self.left_out]
        info = None if self.info is None else asdict(self.info)
        entries = {**vars(self), "files": files, "left_out": left_out, "info": info}
        del entries["folds"], entries["by_domain"]
        if self.folds:
            entries["folds"] = [asdict(folds) for folds in self.folds]
        if self.by_domain:
            entries["by_domain"] = _as_data(self.by_domain)
        entries[_CHECKSUM] = hash_of(**entries)
        lines = [f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in entries.items()]
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def _as_data(by_domain: Mapping[str, Mapping[str, DomainFacts]]) -> dict[str, dict[str, Any]]:
    as_data = {}
    for column, domains in by_domain.items():
        as_data[column] = {name: asdict(facts) for name, facts in domains.items()}
    return as_data


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a prepared folder; None if it is missing or of another format version.

    Raises:
        DamagedStore: the file is not a manifest.
    """
    path = folder / MANIFEST
    try:
        values = read_json(path, METADATA_LIMIT)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UsageError as error:
        raise DamagedStore(f"{error}; {remedy(folder)}") from None
    except (ValueError, OSError) as error:
        raise DamagedStore(f"{path}: not a readable manifest ({type(error).__name__}); {remedy(folder)}") from None
    try:
        if values["format_version"] != FORMAT_VERSION:
            return None
        if values.pop(_CHECKSUM) != hash_of(**values):
            raise DamagedStore(f"{path}: its content has changed since it was written; {remedy(folder)}")
        return _schema().validate_python(_with_left_out(values))
    except DamagedStore:
        raise
    except (KeyError, TypeError, AttributeError, ValueError):
        raise DamagedStore(f"{path}: entries of the manifest are missing; {remedy(folder)}") from None


def valid_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a prepared folder; None without a valid one."""
    try:
        return read_manifest(folder)
    except DamagedStore:
        return None


def prepared_content(folder: Path) -> str | None:
    """Return the data hash of a prepared folder, also if its files have changed since; None without a valid one."""
    manifest = valid_manifest(folder)
    return None if manifest is None else manifest.data_hash


def _with_left_out(values: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a manifest; recordings in `dropped` of an earlier version are in `left_out` instead.

    Their reasons are text alone, so that their labels are unknown.
    """
    if "left_out" in values:
        return values
    names = values.pop("names_left_out", {})
    frames = dict[str, int]()
    records = list[dict[str, Any]]()
    for reason, count in values["dropped"].items():
        what, _, why = reason.partition(" ")
        if what in _COUNTED:
            records.append({"reason": {"what": what, "why": why}, "count": count, "names": names.get(reason, ())})
        else:
            frames[reason] = count
    return {**values, "dropped": frames, "left_out": records}


@cache
def _schema() -> TypeAdapter[Manifest]:
    """Return what checks the entries of a manifest; making it takes longer than using it."""
    return TypeAdapter(Manifest)


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """Check that every file of the manifest exists and has its size.

    Raises:
        DamagedStore: a file is missing or of another size.
    """
    for name, record in manifest.files.items():
        path = folder / name
        if not is_file(path):
            raise DamagedStore(f"{path}: the file is missing, or not a regular file; {remedy(folder)}")
        if (size := path.stat().st_size) != record.size:
            raise DamagedStore(f"{path}: has {size:,} bytes instead of {record.size:,}; {remedy(folder)}")


def check_small_files(folder: Path, manifest: Manifest) -> None:
    """Check the SHA-256 of every file except the frames, which may be gigabytes: of these only the size is checked.

    Raises:
        DamagedStore: a file has another content than was written.
    """
    for name, record in manifest.files.items():
        if name != FRAMES:
            check_content(folder, name, record)


def check_content(folder: Path, name: str, record: FileRecord) -> None:
    """Check the SHA-256 of one file of the folder.

    Raises:
        DamagedStore: it differs from the manifest's.
        UsageError: the file cannot be read.
    """
    with one_sentence(folder / name):
        path = folder / name
        sha256 = file_sha256(path) if record.array is None else npy_sha256(path, *record.array)
    if sha256 != record.sha256:
        raise DamagedStore(f"{folder / name}: its content has changed since it was prepared; {remedy(folder)}")


def left_out(manifest: Manifest) -> list[LeftOut]:
    """Return what was left out, without the records that were skipped."""
    frames = [LeftOut(Reason(WHOLE_FRAMES, why), count) for why, count in manifest.dropped.items() if count]
    return [*manifest.left_out, *frames]


def mostly_dropped(manifest: Manifest, recordings: int) -> str:
    """Return a warning if at least half of the recordings or frames were dropped; empty otherwise.

    Args:
        manifest: the manifest.
        recordings: number of the recordings that have frames.
    """
    for kept, what in ((recordings, RECORDINGS), (manifest.instances, WHOLE_FRAMES)):
        dropped = [omission for omission in left_out(manifest) if omission.reason.what == what]
        count = sum(omission.count for omission in dropped)
        if count and count >= kept:
            most, *others = sorted(dropped, key=lambda omission: -omission.count)
            why = most.reason.clause(asks=most.reason.is_likely)
            rest = f", {most.count:,} of them {why}" if others else f", all {why}"
            used = "" if most.reason.label is None else f"; the data set uses the classes {listed(manifest.classes)}"
            return f"{count:,} of {count + kept:,} {what} are dropped{rest}{used}"
    return ""


def rows_per_frame(info: DatasetInfo, channels: Sequence[str]) -> int:
    """Return the stored rows of a frame of a data set whose channels stay together."""
    return len(channels) if info.leads == "all" else 1


def remedy(folder: Path) -> str:
    """Return what to do about a damaged prepared folder."""
    command = data_command("prepare", folder.name, prepared_root=folder.parent)
    call = either(f"'{command}'", f"prepare({folder.name!r}, ...)")
    return f"run {call} again"


def frames_hash(content_hash: str, split_hash: str, normalize: str) -> str:
    """Return the data hash of a run: SHA-256 of content, split and normalisation."""
    return hash_of(content=content_hash, split=split_hash, normalize=normalize)
