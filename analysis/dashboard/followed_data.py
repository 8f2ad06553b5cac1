"""Prepared data sets that may be prepared again while a dashboard is open."""

from __future__ import annotations

import os
from collections.abc import Hashable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.prepared.earlier_editions import earlier_roots
from clops_sweep.data.prepared.manifest import MANIFEST, prepared_content, valid_manifest
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError

_State = tuple[int, int, int]
"""Time of change, inode and size of a manifest."""


class FollowedData:
    """Prepared data sets, of which `mark` notices those that were prepared again.

    Args:
        data: the prepared data; it forgets what it has read when a data set is prepared again.
    """

    def __init__(self, data: PreparedData) -> None:
        self._data = data
        self._states = _states(data.root)
        self._contents: dict[str, str] = {}
        for name in self._states:
            self._keep(name)
        self._said: dict[str, str] = {}

    def mark(self) -> Hashable:
        """Return a value that changes when a data set is prepared, prepared again, or removed."""
        states = _states(self._data.root)
        if states != self._states:
            changed = [name for name in states if states[name] != self._states.get(name)]
            self._data.forget()
            self._states = states
            for name in changed:
                self._notice(name)
        return tuple(sorted(states.items()))

    def prepared_again(self) -> list[str]:
        """Return a sentence without a full stop for each data set that was prepared again with other content."""
        return list(self._said.values())

    def _notice(self, name: str) -> None:
        """Say what changed in a data set that was prepared again."""
        before = self._contents.get(name)
        self._keep(name)
        now = self._contents.get(name)
        if before is None or now == before:
            return
        changed = ""
        for earlier in earlier_roots(name, self._data.root):  # an edition that no run has used is not kept
            with suppress(UsageError, OSError):
                if prepared_content(earlier / name) == before:
                    changed = self._data.labels_changed(name, PreparedData(earlier, None))
        prepared = datetime.fromtimestamp(self._states[name][0] / 1e9, UTC)
        self._said[name] = (
            f"Data set {name} was prepared again at {prepared:%Y-%m-%d %H:%M} UTC, while this dashboard ran: "
            f"{changed or 'its content differs'}"
        )

    def _keep(self, name: str) -> None:
        """Keep the content of a data set; make its facts known if no file declares it in this process."""
        manifest = valid_manifest(self._data.root / name)
        if manifest is None:
            return
        before = self._contents.get(name)
        self._contents[name] = manifest.data_hash
        is_undeclared = DATASETS.needs_file(name) and DATASETS.declared(name) is None
        if before not in (None, manifest.data_hash) and is_undeclared and manifest.info is not None:
            DATASETS.register(manifest.info)


def _states(root: Path) -> dict[str, _State]:
    """Return the state of the manifest of each prepared data set under a folder, without earlier editions."""
    states = {}
    with suppress(OSError):
        for entry in os.scandir(root):
            with suppress(OSError):
                status = (root / entry.name / MANIFEST).stat()
                states[entry.name] = (status.st_mtime_ns, status.st_ino, status.st_size)
    return states
