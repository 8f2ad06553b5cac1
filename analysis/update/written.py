"""Where an update report is written: a page with parts that the new one lacks is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path

from clops_sweep.errors import listed

from ..page_head import PARTS

_HEAD = 2**16
"""Bytes at the start of a page that contain the list of its parts."""


def page_to_write(path: Path, parts: frozenset[str]) -> Path:
    """Return the first of NAME.html, NAME-2.html, ... that is missing or has no part that the new page lacks.

    Args:
        path: NAME.html.
        parts: the parts of the new page.
    """
    return next(candidate for candidate in _names(path) if not why_kept(candidate, parts))


def why_kept(path: Path, parts: frozenset[str]) -> str:
    """Return why a page with `parts` should not replace a file, as a clause; empty if nothing is lost."""
    if not path.exists():
        return ""
    there = _parts_of(path)
    if there is None:
        return "an earlier version or another program wrote it"
    lost = sorted(there - parts)
    return f"it has {listed(lost)}, which this report lacks" if lost else ""


def _names(path: Path) -> Iterator[Path]:
    yield path
    number = 2
    while True:
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1


def _parts_of(path: Path) -> frozenset[str] | None:
    """Return the parts of a page; None for a file that does not list them."""
    with suppress(OSError, ValueError, TypeError):
        with path.open("rb") as opened:
            head = opened.read(_HEAD).decode(errors="replace")
        entries = _Entries()
        entries.feed(head)
        if PARTS in entries.contents:
            return frozenset(json.loads(entries.contents[PARTS] or ""))
    return None


class _Entries(HTMLParser):
    """Collects the `meta` entries of a page, name to content."""

    def __init__(self) -> None:
        super().__init__()
        self.contents: dict[str | None, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add an entry."""
        if tag == "meta":
            attributes = dict(attrs)
            self.contents[attributes.get("name")] = attributes.get("content")
