"""What the table of a declared data set has, without its recordings: for a plan before anything is prepared."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final

from clops_sweep.data.declared.fields import TableFields
from clops_sweep.data.declared.label_table import read_rows

READERS: Final = frozenset({"from_wfdb", "from_folder", "from_hdf5"})
"""Methods of `Recordings` that call `stop_at_table`."""


@dataclass(eq=False)
class TableAlone:
    """The domains that a declaration names.

    Attributes:
        domains: names of the columns of domains; None until a reader is called.
        recordings_have_more: whether recordings may have domains that the table lacks.
    """

    domains: tuple[str, ...] | None = None
    recordings_have_more: bool = False


class _TableRead(Exception):
    """Ends a function that declares a data set, once its table is read."""


_ASKED: ContextVar[TableAlone | None] = ContextVar("table_alone", default=None)


@contextmanager
def table_alone() -> Iterator[TableAlone]:
    """In this block, `Recordings.from_...` read their table and raise an exception instead of reading recordings."""
    asked = TableAlone()
    before = _ASKED.set(asked)
    try:
        yield asked
    finally:
        _ASKED.reset(before)


def stop_at_table(folder: str | PathLike[str], fields: TableFields, recordings_have_more: bool = False) -> None:
    """In a block of `table_alone`, read the table, record its domains, and end the function that declares the data.

    Args:
        folder: the folder of the recordings.
        fields: the columns and the table.
        recordings_have_more: whether recordings may have domains that the table lacks.

    Raises:
        UsageError: the table or a column does not exist.
    """
    asked = _ASKED.get()
    if asked is None:
        return
    if fields.table is not None:
        read_rows(Path(folder), fields)
    asked.domains = tuple(fields.domains)
    asked.recordings_have_more = recordings_have_more
    raise _TableRead
