"""The prepared data that runs need: which of them are there, what they hold, and the frames themselves."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from clops_sweep.data.catalog import DataKey

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet


@dataclass(frozen=True)
class PreparedData:
    """Prepared data sets under one folder.

    Attributes:
        root: that folder.
        source: the publishers' files, if anywhere.
    """

    root: Path
    source: Path | None = None
    _hashes: dict[DataKey, str] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def found(cls, root: str | PathLike[str] | None = None, source: str | PathLike[str] | None = None) -> PreparedData:
        """Where they are said to be, else where CLOPS_PREPARED_ROOT and CLOPS_DATA_ROOT say, else in a cache."""
        from clops_sweep.data.prepared.prepared_folder import default_prepared_root

        chosen = source or os.environ.get("CLOPS_DATA_ROOT")
        return cls(Path(root) if root else default_prepared_root(), Path(chosen) if chosen else None)

    def data_hash(self, key: DataKey) -> str | None:
        """The content hash of some frames; None where they are not prepared here. Nothing is written or solved.

        Raises:
            UsageError: the patients cannot be split as the key asks for.
        """
        from clops_sweep.data.preparing.prepare import data_hash

        if key not in self._hashes:
            found = data_hash(key.dataset, prepared_root=self.root, data_root=self.source, **key.view)
            if found is None:
                return None
            self._hashes[key] = found
        return self._hashes[key]

    def prepare(self, keys: Iterable[DataKey]) -> None:
        """Prepares what is not prepared yet, with the splits of all patients that are asked for.

        Raises:
            UsageError: files are missing or not as published.
        """
        from clops_sweep.data.preparing.prepare import prepare

        seeds: dict[str, set[int]] = {}
        for key in keys:
            seeds.setdefault(key.dataset, set()).update([key.split_seed] if key.split is None else [])
        for name, split_seeds in seeds.items():
            prepare(name, prepared_root=self.root, data_root=self.source, progress=True, split_seeds=split_seeds)

    def frames(self, key: DataKey) -> FrameSet:
        """The frames, mapped from the disk.

        Raises:
            UsageError: they are not prepared.
        """
        from clops_sweep.data.preparing.prepare import open_frames

        return open_frames(key.dataset, prepared_root=self.root, data_root=self.source, **key.view)

    def of_prepared(self, keys: Iterable[DataKey]) -> list[FrameSet]:
        """The frames of those that are prepared."""
        return [self.frames(key) for key in dict.fromkeys(keys) if self.data_hash(key) is not None]
