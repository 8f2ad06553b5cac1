"""What the wfdb package does not see in MIT annotation files (100.atr): that they are truncated, and notes at sample 0.

The format does not count annotations, so a reader of a truncated file would not notice, and would extend the last
rhythm to the end of the record. Complete files end with a word of zeros (annot(5) of the WFDB Software Package).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError

_NOTE: Final = 22
"""Code of a comment."""
_SKIP: Final = 59
"""Code of an interval of four bytes."""
_OF_ANNOTATION: Final = (60, 61, 62)
"""Codes of numbers that belong to the annotation before."""
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


def comments_at_first_sample(path: Path) -> list[str]:
    """Return the texts of comments at sample 0, which the wfdb package drops as definitions, without definitions.

    The file is complete.
    """
    comments = []
    in_definitions = False
    for text in _at_first_sample(path.read_bytes()):
        if text == "## annotation type definitions":
            in_definitions = True
        if not in_definitions and not text.startswith("## "):
            comments.append(text)
        if text == "## end of definitions":
            in_definitions = False
    return comments


def _at_first_sample(content: bytes) -> Iterator[str]:
    """Yield the texts of all comments at sample 0."""
    position = sample = 0
    text: str | None = None
    while position + 1 < len(content):
        word = int.from_bytes(content[position : position + 2], "little")
        position += 2
        kind, value = word >> 10, word & 0x3FF
        if kind == _AUX:
            if text is not None:
                text = content[position : position + value].decode("latin-1").rstrip("\0").strip()
            position += value + value % 2
        elif kind not in _OF_ANNOTATION:
            if text is not None:
                yield text
            text = None
            if kind == _SKIP:
                high, low = content[position : position + 2], content[position + 2 : position + 4]
                sample += int.from_bytes(low + high, "little", signed=True)
                position += 4
            else:
                sample += value
                text = "" if kind == _NOTE and sample == 0 else None
