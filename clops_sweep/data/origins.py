"""Origin of a plug-in's code: the file that registered it. Imports no NumPy."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clops_sweep.data.read_values import read_hash
from clops_sweep.data.source_code import CodeHashes, code_hashes

_PACKAGE = __name__.partition(".")[0]


@dataclass(frozen=True)
class Origin:
    """The file that registered a plug-in; its fields are None if it is unknown, as in a notebook.

    Attributes:
        file: path of the file, relative to the current folder if it is inside.
        sha256: hex SHA-256 of the whole file.
        code: SHA-256 of the plug-in's code and of the code that it uses (see `code_hash`), which does not change with
            the search space in the same file; None if it is not a function or class of a module.
        read: SHA-256 of its own text and of the values that it reads (see `read_hash`), by which definitions of one
            name in one file differ; None in a notebook, whose `code` has them, and in runs of earlier versions.
        beside: the code hash as earlier versions recorded it, only with modules beside the file; not stored.
    """

    file: str | None = None
    sha256: str | None = None
    code: str | None = None
    read: str | None = None
    beside: str | None = None

    def differs(self, other: Origin) -> bool:
        """Return whether the code differs from that of a stored run; without code hashes, whether the file does."""
        if None not in (self.read, other.read) and self.read != other.read:
            return True
        if self.code is not None and other.code is not None:
            return other.code not in (self.code, self.beside)
        return None not in (self.sha256, other.sha256) and self.sha256 != other.sha256


ORIGINS: dict[tuple[str, str], Origin] = {}
"""Origins of all plug-ins registered in this process, by config field and name; a worker has the driver's."""


def remember_origin(field: str, name: str, member: Any) -> None:
    """Record the file that registers a plug-in: that of the first caller outside this package."""
    path = _registering_file()
    try:
        shown = None if path is None else _relative(path)
        sha256 = None if path is None else hashlib.sha256(path.read_bytes()).hexdigest()
        hashes = _code(member)
        whole, beside = hashes or (None, None)
        ORIGINS[field, name] = Origin(shown, sha256, whole, read_hash(member), beside)
    except (
        OSError,
        TypeError,
        ValueError,
        SyntaxError,
    ):  # the file is gone or being written: no error here
        ORIGINS[field, name] = Origin()


def _registering_file() -> Path | None:
    frame = inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(f"{_PACKAGE}."):
        frame = frame.f_back
    path = None if frame is None else Path(frame.f_code.co_filename)
    return path.resolve() if path is not None and path.is_file() else None


def _relative(path: Path) -> str:
    here = Path.cwd()
    return (path.relative_to(here) if path.is_relative_to(here) else path).as_posix()


def _code(member: Any) -> CodeHashes | None:
    named = inspect.isfunction(member) or isinstance(member, type)
    in_module = named and all(part.isidentifier() for part in member.__qualname__.split("."))
    return code_hashes(member) if in_module else None
