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
    in_words = _CAPITALS.sub(" ", name).lower()
    words = re.split(r"[^a-z]+", in_words)
    has_word = not WORDS.isdisjoint(words)
    has_unit = isinstance(unit, str) and unit.strip().lower() in _UNITS
    return has_word or has_unit


def marker_names(names: Sequence[str], units: object = "") -> tuple[str, ...]:
    """Return the channels that look like markers, unless all do; `units` is one unit or one per channel."""
    unit_of_channel: Sequence[object] = [units] * len(names)
    if isinstance(units, Sequence) and not isinstance(units, str) and len(units) == len(names):
        unit_of_channel = units
    markers = []
    for name, unit in zip(names, unit_of_channel, strict=True):
        if looks_like_marker(name, unit):
            markers.append(name)
    if len(markers) == len(names):
        return ()
    return tuple(markers)


def left_out_note(names: Sequence[str]) -> str:
    """Return the note on channels that are left out."""
    if len(names) == 1:
        return f"channel {names[0]} is left out: it looks like triggers or markers; channels=[...] takes it"
    return f"channels {', '.join(names)} are left out: they look like triggers or markers; channels=[...] takes them"
