"""Channels of triggers, status words and markers: they tell the label and are no signals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

Markers = Literal["refuse", "keep"]
"""What to do about channels that look like markers: leave them out or refuse them, or keep them."""

WORDS: Final = frozenset(
    {
        "status", "trig", "trigger", "triggers", "triggerin", "sti", "stim", "stims", "stimulus", "stimuli", "stimtrak",
        "event", "events", "evt", "marker", "markers", "mark", "marks", "mkr", "mrk", "annotation", "annotations",
        "ttl", "din", "trg", "eventcode", "eventcodes", "eventid", "markercode", "markerid", "triggercode",
        "stimcode", "stimuluscode",
    }
)  # fmt: skip
"""Words in the names of such channels, in lower case."""
_UNITS: Final = frozenset({"boolean", "bool"})
_CAPITALS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def looks_like_marker(name: str, unit: object = "") -> bool:
    """Return whether a channel holds triggers or markers, by a word of its name or by its unit."""
    words = re.split(r"[^a-z]+", _CAPITALS.sub(" ", name).lower())
    return not WORDS.isdisjoint(words) or (isinstance(unit, str) and unit.strip().lower() in _UNITS)


def marker_names(names: Sequence[str], units: object = "") -> tuple[str, ...]:
    """Return the channels that look like markers, unless all do; `units` is one unit or one per channel."""
    several = isinstance(units, Sequence) and not isinstance(units, str) and len(units) == len(names)
    given: Sequence[object] = units if several else [units] * len(names)  # type: ignore[assignment]
    found = tuple(name for name, unit in zip(names, given, strict=True) if looks_like_marker(name, unit))
    return () if len(found) == len(names) else found


def left_out_note(names: Sequence[str]) -> str:
    """Return the note on channels that are left out."""
    if len(names) == 1:
        return f"channel {names[0]} is left out: it looks like triggers or markers; channels=[...] takes it"
    return f"channels {', '.join(names)} are left out: they look like triggers or markers; channels=[...] takes them"
