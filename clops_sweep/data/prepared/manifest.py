"""The manifest of a prepared data set: what lies in the folder, where it came from, and how to tell it is whole."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from clops_sweep.data.catalog import DATASETS, DatasetInfo
from clops_sweep.data.files.folder import one_sentence
from clops_sweep.data.files.hashes import file_sha256, hash_of, npy_sha256
from clops_sweep.data.frames import FRAME_LENGTH
from clops_sweep.errors import DamagedStore, UsageError
from clops_sweep.regular_files import METADATA_LIMIT, open_regular

FORMAT_VERSION: Final = 3
MANIFEST: Final = "manifest.json"
INDEX: Final = "index.parquet"
FRAMES: Final = "frames.npy"
CHECKSUM: Final = "checksum"


@dataclass(frozen=True)
class FileRecord:
    """A file of the prepared folder: size in bytes, and SHA-256 of the whole file.

    Where `array` is given, a type and a shape, of the array in it (`array_sha256`), which the data hash is made of: one
    pass then serves both.
    """

    size: int
    sha256: str
    array: Sequence[Any] | None = None


@dataclass(frozen=True)
class Manifest:
    """What a prepared folder holds; written as JSON, last of all.

    Attributes:
        files: size and SHA-256 of `frames.npy` and `index.parquet`.
        sources: SHA-256 of every file that the frames were made from, by its key.
        dropped: number of frames left out, by reason.
        skipped: records left out under --on-error skip, with the reason.
        content_hash: SHA-256 over the arrays (dtype, shape, bytes), the classes and the leads: the part of a run's data
            hash that depends on neither the split nor the normalisation.
        data_hash: the data hash for split seed 0 without normalisation.
        frame_seconds: length of a frame.
        samples: of a frame.
        sampling_rate: samples a second, if known.
        domains: names that the codes of each domain count.
        groups: names that the codes of each column for subgroups count; no run depends on them.
        multi_label: whether labels are [n, C] instead of [n].
        dated: whether frames have dates.
        whole_moments: whether rows follow one another moment by moment, with all leads of each in their order.
        fingerprint: of the code that declares the data set; None for a built-in one.
        info: what is known of a declared data set (`DatasetInfo`).
        given_split: whether the split is the same for every seed.
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
    counts: Mapping[str, Mapping[str, int]]
    dropped: Mapping[str, int]
    skipped: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    files: Mapping[str, FileRecord]
    content_hash: str
    data_hash: str
    sources: Mapping[str, str] = field(default_factory=dict)
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
    info: DatasetInfo | None = None

    def dataset_info(self) -> DatasetInfo | None:
        """What is known of the data set, from when it was prepared or else from the catalogue."""
        return self.info or DATASETS.get(self.name)

    def to_json(self) -> bytes:
        """The manifest as JSON, a line for each entry: indenting names by the hundred thousand would take its time."""
        files = {name: asdict(record) for name, record in self.files.items()}
        entries = {**vars(self), "files": files, "info": None if self.info is None else asdict(self.info)}
        entries[CHECKSUM] = _checksum(entries)
        lines = [f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in entries.items()]
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a prepared folder; None if it is missing or of another format version.

    Raises:
        DamagedStore: the file is not a manifest.
    """
    path = folder / MANIFEST
    try:
        with open_regular(path, METADATA_LIMIT) as file:
            values = json.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UsageError as error:
        raise DamagedStore(f"{error}; {remedy(folder)}") from None
    except (ValueError, OSError, RecursionError) as error:
        raise DamagedStore(f"{path}: not a readable manifest ({type(error).__name__}); {remedy(folder)}") from None
    try:
        if values["format_version"] != FORMAT_VERSION:
            return None
        if values.pop(CHECKSUM) != _checksum(values):
            raise DamagedStore(f"{path}: its content has changed since it was written; {remedy(folder)}")
        return TypeAdapter(Manifest).validate_python(values)
    except DamagedStore:
        raise
    except (KeyError, TypeError, AttributeError, ValueError):
        raise DamagedStore(f"{path}: entries of the manifest are missing; {remedy(folder)}") from None


def _checksum(entries: Mapping[str, Any]) -> str:
    """SHA-256 of all other entries: an edited manifest would give runs the identity of other data."""
    return hash_of(**entries)


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """Every file of the manifest is there and has its size.

    Raises:
        DamagedStore: names the first file that is missing or of another size.
    """
    for name, record in manifest.files.items():
        path = folder / name
        try:
            status = path.stat()
        except OSError:
            raise DamagedStore(f"{path}: the file is missing; {remedy(folder)}") from None
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            raise DamagedStore(f"{path}: is not a regular file; {remedy(folder)}")
        if size != record.size:
            raise DamagedStore(f"{path}: has {size:,} bytes instead of {record.size:,}; {remedy(folder)}")


def check_small_files(folder: Path, manifest: Manifest) -> None:
    """SHA-256 of every file but the frames, which may be gigabytes and are only checked in size.

    Raises:
        DamagedStore: names the first file whose content is not what was written.
    """
    for name, record in manifest.files.items():
        if name != FRAMES:
            check_content(folder, name, record)


def check_content(folder: Path, name: str, record: FileRecord) -> None:
    """SHA-256 of one file of the folder, compared with the manifest's; UsageError where it may not be read."""
    with one_sentence(folder / name):
        path = folder / name
        found = file_sha256(path) if record.array is None else npy_sha256(path, *record.array)
    if found != record.sha256:
        raise DamagedStore(f"{folder / name}: its content has changed since it was prepared; {remedy(folder)}")


def remedy(folder: Path) -> str:
    """What to do about a prepared folder that is damaged."""
    return f"run 'clops-sweep data prepare {folder.name}' again"


def frames_hash(content_hash: str, split_hash: str, normalize: str) -> str:
    """The data hash of a run: content, split and normalisation in one SHA-256."""
    return hash_of(content=content_hash, split=split_hash, normalize=normalize)
