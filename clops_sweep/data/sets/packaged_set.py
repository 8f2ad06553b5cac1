"""Data sets of this package: their declaration, and what is special about preparing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from clops_sweep.data.catalog import DATASETS, OptionValue, Packaged, Rules
from clops_sweep.data.recording_facts import Facts
from clops_sweep.data.records import Common, Index, Source
from clops_sweep.data.sets.data_set import DataSet

Member = TypeVar("Member", bound=Callable[..., Any])


def packaged(
    name: str, *, classes: Sequence[str], channels: Sequence[str], units: str, rules: Rules
) -> Callable[[Member], Member]:
    """Declare a data set of the catalogue: a function from the data root and the options to a list of sources.

    Args:
        name: name in the catalogue.
        classes: names of the classes.
        channels: names of the channels.
        units: unit of the samples.
        rules: how its recordings become frames.
    """

    def declare(member: Member) -> Member:
        DATASETS.add_packaged(name, Packaged(member, tuple(classes), tuple(channels), units, rules))
        return member

    return declare


class PackagedSet(DataSet):
    """A data set of this package. Its publisher's files do not change, so opening prepared frames ignores them."""

    why_uncovered = ": too few patients have it"

    def __init__(self, name: str, declaration: Packaged, options: Mapping[str, OptionValue]) -> None:
        rules = declaration.rules
        kind = np.int16 if rules.integers else np.float32
        common = Common(
            declaration.classes, declaration.channels, declaration.units, rules.multi_label, kind, name=name
        )
        super().__init__(name, rules, options, common)
        self.parallel = rules.reads_files
        self._member = declaration.member
        self._tables: tuple[Path, ...] = ()

    def look(self, data_root: Path | None) -> None:
        """Find the records, which is the only way to know that they exist."""
        self.find(data_root)

    def tables(self, data_root: Path | None) -> tuple[Path, ...]:
        """Return the tables that describe records, known once these are found."""
        return self._tables

    def find(self, data_root: Path | None) -> list[Source]:
        """Return the records of the publisher's folder."""
        sources: list[Source] = self._member(data_root, **self.chosen)
        tables = dict[Path, None]()
        for source in sources:
            tables |= dict.fromkeys(source.tables)
        self._tables = tuple(tables)
        return sources

    def file_key(self, file: Path) -> str:
        """Return the name of the file."""
        return file.name

    def check(self, index: Index, dropped: Mapping[str, int], facts: Sequence[Facts]) -> None:
        """Accept all frames: a part of the publisher's records, which may lack a class, can be prepared too."""

    def accepts(self, version: int, classes: Sequence[str]) -> bool:
        """Return whether frames are of the present version and have its classes."""
        return version == self.rules.version and tuple(classes) == self.common.classes
