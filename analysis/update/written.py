"""Where an update report is written: a page with parts that the new one lacks is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import takewhile
from pathlib import Path

from clops_sweep.errors import listed

from ..page_head import JUDGED_BY, PARTS, VERDICT

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


def judged_before(path: Path, parts: frozenset[str], limits: Mapping[str, float]) -> str:
    """Return sentences on the pages beside a new one that were judged by other criteria; empty without any.

    Args:
        path: NAME.html; NAME-2.html and so on are looked at, too.
        parts: the parts of the new page.
        limits: the limits of its criteria, by name.
    """
    judged = _judged_by(parts)
    sentences = []
    for candidate in takewhile(Path.exists, _names(path)):
        there = _parts_of(candidate)
        if there is None or not _judged_by(there) or _judged_by(there) == judged:
            continue
        day = datetime.fromtimestamp(candidate.stat().st_mtime, UTC).date()
        sentence = f"Judged by other criteria on {day} ({candidate.name})"
        with suppress(ValueError, TypeError, KeyError, AttributeError):  # of an earlier version, or of another program
            earlier = json.loads(_entries_of(candidate)[VERDICT] or "")
            changed = "; ".join(_changed_limits(earlier["limits"], limits)) if limits else ""
            sentence += f": {str(earlier['verdict']).rstrip('.')}"
            sentence += f". Limits that differ: {changed}" if changed else ""
        sentences.append(f"{sentence}.")
    return " ".join(sentences)


def _judged_by(parts: frozenset[str]) -> set[str]:
    return {part for part in parts if part.startswith(JUDGED_BY)}


def _changed_limits(earlier: Mapping[str, float], now: Mapping[str, float]) -> Iterator[str]:
    """Yield the limits that differ, such as "max_flips 0.05 there, 0.5 here"."""
    for name in dict.fromkeys([*earlier, *now]):
        values = []
        for limits in (earlier, now):
            values.append(f"{limits[name]:g}" if name in limits else "none")
        if values[0] != values[1]:
            yield f"{name} {values[0]} there, {values[1]} here"


def _names(path: Path) -> Iterator[Path]:
    yield path
    number = 2
    while True:
        yield path.with_name(f"{path.stem}-{number}{path.suffix}")
        number += 1


def _parts_of(path: Path) -> frozenset[str] | None:
    """Return the parts of a page; None for a file that does not list them."""
    with suppress(OSError, ValueError, TypeError):
        contents = _entries_of(path)
        if PARTS in contents:
            return frozenset(json.loads(contents[PARTS] or ""))
    return None


def _entries_of(path: Path) -> dict[str | None, str | None]:
    """Return the `meta` entries of a page, name to content."""
    with path.open("rb") as opened:
        head = opened.read(_HEAD).decode(errors="replace")
    entries = _Entries()
    entries.feed(head)
    return entries.contents


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
