"""Hash of the recordings that a declaration lists: whether it reads the same ones from a folder that has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from clops_sweep.data.declared.formats.read_files import Shipped
from clops_sweep.data.declared.label_table import Labels
from clops_sweep.data.files.hashes import array_sha256, hash_of
from clops_sweep.data.records import Common, Source

_NOT_READ: Final[Mapping[type, Sequence[str]]] = {Common: ("left_out", "notes")}
"""Fields that no frame depends on: counts and sentences."""


class _UnknownValueError(Exception):
    """A value of another kind, so that there is no hash."""


def listing_hash(common: Common, sources: Sequence[Source], key_of: Callable[[Path], str]) -> str | None:
    """Return the hex SHA-256 of all that a declaration says of its recordings, apart from the content of their files.

    Two listings with one hash give the same frames if the files of their recordings are the same.

    Args:
        common: values common to the recordings.
        sources: the recordings.
        key_of: returns the key of a file in a manifest.

    Returns:
        None if a recording has a value of a kind that cannot be compared.
    """
    try:
        return hash_of(common=_plain(common, key_of), sources=[_plain(source, key_of) for source in sources])
    except _UnknownValueError:
        return None


def _plain(value: Any, key_of: Callable[[Path], str]) -> Any:
    """Return a value as JSON has it; equal ones only for equal values."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return ["float", repr(value)]
    if isinstance(value, Path):
        return ["file", key_of(value)]
    if isinstance(value, type):
        return ["type", value.__qualname__]
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return ["array", list(value.shape), _plain(value.ravel().tolist(), key_of)]
        return ["array", value.dtype.str, list(value.shape), array_sha256(value)]
    if isinstance(value, np.generic):
        return ["number", value.dtype.str, repr(value.item())]
    if isinstance(value, Shipped):
        return ["function", getattr(value.function, "__module__", ""), getattr(value.function, "__qualname__", "")]
    if isinstance(value, Labels):
        return ["labels", _plain(value.settings, key_of)]
    if is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value) if field.name not in _NOT_READ.get(type(value), ())]
        return [type(value).__qualname__, {name: _plain(getattr(value, name), key_of) for name in names}]
    if isinstance(value, Mapping):
        return ["mapping", [[_plain(key, key_of), _plain(value[key], key_of)] for key in value]]
    if isinstance(value, Set):
        return ["set", sorted(map(repr, value))]
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_plain(entry, key_of) for entry in value]
    raise _UnknownValueError
