"""The source files of a declared data set under a data root."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from clops_sweep.data.files.folder import one_sentence, shorten, visible
from clops_sweep.errors import AbsentData, UsageError, one_line, option


def declared_files(name: str, patterns: Sequence[str], data_root: Path) -> dict[str, Path]:
    """Return the declared files by path under the data root, sorted; folders with all their visible files.

    Raises:
        AbsentData: a pattern matches nothing.
    """
    by_path: dict[str, Path] = {}
    with one_sentence(data_root):
        for pattern in patterns:
            try:
                exact = os.path.lexists(data_root / pattern)
                matched = [data_root / pattern] if exact else visible(data_root.glob(pattern), data_root)
            except ValueError as error:  # a pattern that glob cannot parse, or a null byte
                raise UsageError(f"dataset {name!r}: files: {pattern!r}: {one_line(error)}; correct it") from None
            files = [file for match in matched for file in ([match] if match.is_file() else _below(match))]
            if not files:
                raise AbsentData(
                    f"dataset {name!r}: files: data root {shorten(data_root)} has no {pattern}; look at the path, or "
                    f"give the folder that holds it with {option('data_root', 'DIR')}"
                )
            by_path |= {file.relative_to(data_root).as_posix(): file for file in files}
    return dict(sorted(by_path.items()))


def _below(folder: Path) -> list[Path]:
    """Yield the regular files below a folder."""
    below = (Path(parent) / name for parent, _, names in os.walk(folder) for name in names)
    return [file for file in visible(below, folder) if file.is_file()]
