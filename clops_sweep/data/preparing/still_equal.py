"""Whether prepared frames are still those of source files that have changed, as when a ward was added to a folder.

A data set declares files, such as a folder that wards share, and reads some of them. If the others change, its frames
stay as they are, and so do its runs.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.files.folder import write_file
from clops_sweep.data.files.hashes import file_sha256
from clops_sweep.data.prepared.freshness import (
    Change,
    changes,
    changes_in_words,
    is_known_to_differ,
    listing_of,
    remember,
    remember_differing,
    source_files_now,
    states_of,
)
from clops_sweep.data.prepared.listing import listing_hash
from clops_sweep.data.prepared.manifest import MANIFEST, Manifest, read_manifest
from clops_sweep.data.prepared.prepared_folder import PreparedSet, prepared_set, required_set
from clops_sweep.data.records import OnError
from clops_sweep.data.sets.named import data_set
from clops_sweep.errors import UsageError

READ_AGAIN: Final = 200e6
"""Bytes of source files from which recordings are not read again to compare them; a launch does."""

_SAID_FROM: Final = 5e6
"""Bytes of source files from which a line says that they are read again."""


def current_set(name: str, prepared_root: Path, data_root: Path | None = None) -> PreparedSet | None:
    """Return `prepared_set`, also if files changed on which its frames do not depend.

    Then the state of the files is remembered, and a line on standard error says what changed.

    Raises:
        DamagedStore: a file is missing or has another size than was written.
    """
    prepared = prepared_set(name, prepared_root, data_root)
    if prepared is not None or not _is_confirmed(name, prepared_root, data_root):
        return prepared
    return prepared_set(name, prepared_root, data_root)


def required_current_set(name: str, prepared_root: Path, data_root: Path | None = None) -> PreparedSet:
    """Return `current_set`, which must exist.

    Raises:
        UsageError: the set is not prepared, has changed since (the message names the command), or is damaged.
    """
    prepared = current_set(name, prepared_root, data_root)
    return required_set(name, prepared_root, data_root) if prepared is None else prepared


def _is_confirmed(name: str, prepared_root: Path, data_root: Path | None) -> bool:
    """Return whether files of a data set changed, and not its frames; False if this is not known."""
    folder = prepared_root / name
    manifest = read_manifest(folder)
    if manifest is None or DATASETS.declared(name) is None:
        return False
    changed = list(changes(folder, manifest, data_root))
    root, there = source_files_now(folder, manifest, data_root)
    states = states_of(there)
    if not changed or any(change.is_code for change in changed) or is_known_to_differ(folder, states):
        return False
    try:
        if not data_set(name).accepts(manifest.reader_version, manifest.classes):
            return False
        present = _present_manifest(folder, manifest, root, there, changed)
    except UsageError:  # a launch, which reads the recordings again, says what is wrong
        return False
    if present is None:
        return False
    if states_of(there) != states:
        return False
    try:
        write_file(folder / MANIFEST, present.to_json())
        remember(folder, name, root, states, listing_of(folder))
    except OSError:  # a read-only folder
        return False
    print(f"{name}: {changes_in_words(changed)}; the recordings that it reads are the same", file=sys.stderr)
    return True


def _present_manifest(
    folder: Path, manifest: Manifest, root: Path, there: Mapping[str, Path], changed: Sequence[Change]
) -> Manifest | None:
    """Return the manifest with the present source files if they give the same frames; None otherwise, or if unknown."""
    from clops_sweep.data.preparing.files_read import may_be_read

    data = data_set(manifest.name, manifest.options)
    records = data.find(root)
    if isinstance(records, list):
        listing = listing_hash(data.common, records, data.file_key)
        known = listing_of(folder)
        if listing is not None and known is not None:
            if listing != known:
                return None
            if not may_be_read(data, records, changed):
                return replace(manifest, sources=_sources_now(manifest, there, changed))
    del records
    size = sum(_size(file) for file in there.values())
    if size > READ_AGAIN:
        return None
    if size > _SAID_FROM:
        what = changes_in_words(changed)
        print(f"{manifest.name}: {what}; reading its recordings to see whether they are the same ...", file=sys.stderr)
    return _read_again(folder, manifest, root, there)


def _size(file: Path) -> int:
    with contextlib.suppress(OSError):
        return file.stat().st_size
    return 0


def _sources_now(manifest: Manifest, there: Mapping[str, Path], changed: Sequence[Change]) -> dict[str, str]:
    """Return the SHA-256 of the source files; files that were added, which are not read, are left out."""
    sources = dict(manifest.sources)
    for change in changed:
        if change.how == "removed":
            del sources[change.what]
        elif change.how == "edited":
            sources[change.what] = file_sha256(there[change.what])
    return sources


def _read_again(folder: Path, manifest: Manifest, root: Path, there: Mapping[str, Path]) -> Manifest | None:
    """Return the manifest of the present source files, whose recordings are read, if all frames are the same."""
    from clops_sweep.data.preparing.preparation import make_prepared_folder

    data = data_set(manifest.name, manifest.options)
    states = states_of(there)
    on_error: OnError = "skip" if manifest.on_error == "skip" else "stop"
    with tempfile.TemporaryDirectory() as scratch:
        again = Path(scratch) / manifest.name
        make_prepared_folder(data, again, root, progress=False, on_error=on_error, workers=1)
        now = read_manifest(again)
    if now is None:
        return None
    present = replace(
        manifest,
        sources=now.sources,
        notes=now.notes,
        dropped=now.dropped,
        left_out=now.left_out,
        missing=now.missing,
        skipped=now.skipped,
        by_domain=now.by_domain,
        fingerprint=now.fingerprint,
        equal_code=now.equal_code,
    )
    if present.to_json() == now.to_json():
        return replace(present, fingerprint=manifest.fingerprint, equal_code=manifest.equal_code)
    remember_differing(folder, states)
    return None
