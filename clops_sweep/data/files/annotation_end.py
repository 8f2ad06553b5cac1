"""Detection of truncated MIT annotation files (100.atr).

The format does not count annotations, so a reader of a truncated file would not notice, and would extend the last
rhythm to the end of the record. Complete files end with a word of zeros (annot(5) of the WFDB Software Package).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError

_SKIP: Final = 59
"""Code of an interval of four bytes."""
_AUX: Final = 63
"""Code of a note: its length in bytes is in the word, and it is padded to whole words."""


def require_end(path: Path) -> None:
    """Raise a UsageError if an annotation file does not end with the final word.

    Parses all words, because two zero bytes also occur inside notes and long intervals.
    """
    content = path.read_bytes()
    position = 0
    while position + 1 < len(content):
        word = int.from_bytes(content[position : position + 2], "little")
        position += 2
        if word == 0:
            break
        kind, value = word >> 10, word & 0x3FF
        if kind == _SKIP:
            position += 4
        elif kind == _AUX:
            position += value + value % 2
    else:
        raise UsageError(f"{shorten(path)}: truncated, its end mark is missing; download the record again")
    if position != len(content):
        raise UsageError(
            f"{shorten(path)}: its end mark is at byte {position:,} of {len(content):,}; download the record again"
        )
