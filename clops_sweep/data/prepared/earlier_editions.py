"""Earlier editions of prepared frames, which are kept beside the present ones for reports of stored runs.

If a declared data set is prepared anew with other frames, the folder that is replaced becomes `NAME@HASH/NAME` under
the prepared root, where HASH begins its data hash. So `NAME@HASH` is itself a folder of prepared data sets, with one
set. A preparation that no run has used is not kept.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from clops_sweep.data.files.folder import shorten, write_file
from clops_sweep.data.prepared.commands import default_prepared_root
from clops_sweep.data.prepared.manifest import MANIFEST, Manifest
from clops_sweep.errors import UsageError, listed, shown

EARLIER: Final = "earlier_edition"
"""File in a folder `NAME@HASH`, which tells it from a data set."""

_UNUSED: Final = "no_runs_yet"
"""File in a prepared folder until a launch or a report of runs uses its frames."""

_DIGITS: Final = 12


def mark_unused(staging: Path, now: Manifest, folder: Path, before: Manifest | None) -> None:
    """Record in a new preparation that no run has used its frames, unless it equals a used one that it replaces.

    Args:
        staging: the folder of the new preparation.
        now: its manifest.
        folder: the prepared folder that it replaces.
        before: the manifest of that folder; None without a valid one.
    """
    is_used = before is not None and before.data_hash == now.data_hash and not (folder / _UNUSED).exists()
    if now.info is not None and not is_used:
        write_file(staging / _UNUSED, b"")


def mark_used(folder: Path) -> None:
    """Record that runs have used prepared frames, so that these are kept when the data set is prepared anew."""
    with contextlib.suppress(OSError):
        (folder / _UNUSED).unlink(missing_ok=True)


def place_of_earlier(folder: Path, before: Manifest | None, now: Manifest) -> Path | None:
    """Return where a prepared folder goes when another preparation replaces it; None if it is not kept.

    Args:
        folder: the prepared folder.
        before: its manifest; None without a valid one.
        now: the manifest of the preparation that replaces it.
    """
    if before is None or before.info is None or before.data_hash == now.data_hash or (folder / _UNUSED).exists():
        return None
    kept = _named(folder.parent, before)
    if (kept / folder.name).exists():  # the same edition was kept earlier
        return None
    kept.mkdir(exist_ok=True)
    write_file(kept / EARLIER, b"")
    return kept / folder.name


def is_earlier(folder: Path) -> bool:
    """Return whether a prepared folder is an earlier edition, whose source files have changed on purpose."""
    return (folder.parent / EARLIER).is_file()


def earlier_roots(name: str, prepared_root: Path) -> list[Path]:
    """Return the folders `NAME@HASH` with earlier editions of a data set, the one that was prepared last first."""
    dated = []
    for root in prepared_root.glob(f"{name}@*"):
        with contextlib.suppress(OSError):
            if (root / EARLIER).is_file():
                dated.append(((root / name / MANIFEST).stat().st_mtime, root))
    return [root for _, root in sorted(dated, reverse=True)]


def is_edition(manifest: Manifest, edition: str) -> bool:
    """Return whether prepared frames are of an edition, given as in `earlier_root`."""
    return manifest.data_hash.startswith(edition.removeprefix(f"{manifest.name}@"))


def earlier_root(name: str, prepared_root: Path | None, edition: str) -> Path:
    """Return the folder `NAME@HASH` of an earlier edition.

    Args:
        name: name of the data set.
        prepared_root: folder of prepared sets; None for that of the commands.
        edition: the beginning of its hash, also with the name: "wards@27c8".

    Raises:
        UsageError: no edition or several editions have a hash that begins so.
    """
    root = default_prepared_root() if prepared_root is None else prepared_root
    there = earlier_roots(name, root)
    begin = f"{name}@{edition.removeprefix(f'{name}@')}"
    matching = [folder for folder in there if folder.name.startswith(begin)]
    if len(matching) != 1:
        many = "no earlier edition" if not matching else f"{len(matching)} earlier editions"
        known = listed(folder.name for folder in there) or "none"
        raise UsageError(f"edition {shown(edition)}: {many} of {name} in {shorten(root)}; those that are kept: {known}")
    return matching[0]


def _named(prepared_root: Path, manifest: Manifest) -> Path:
    return prepared_root / f"{manifest.name}@{manifest.data_hash[:_DIGITS]}"
