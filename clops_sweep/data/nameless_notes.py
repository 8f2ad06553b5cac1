"""Notes on people who may be there under two names, in sentences without names, for pages that others read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from clops_sweep.data.same_samples import leaks_of


class _Kind(NamedTuple):
    """A kind of notes, and its sentence without names.

    Attributes:
        begin: a regular expression for the begin of such a note, up to its number and before any name.
        sentence: the sentence; {0} is the begin.
        end: a regular expression for its end, after all names; what its group matches follows the sentence.
    """

    begin: str
    sentence: str
    end: str = ""


_NUMBER: Final = r"[0-9]{1,3}(,[0-9]{3})*"
_DOMAINS: Final = "domains with names"
_SAME_PATIENT: Final = "the same patient as the earlier one"
_TWO_SPLITS: Final = "and may be in two splits"
_KINDS: Final = (
    _Kind(
        rf"records with the samples of an earlier record: {_NUMBER}",
        "{0}",
        rf"(; each is of {_SAME_PATIENT}|; {_NUMBER} of them (is|are) of another patient than the earlier one); "
        "leave them out with data prepare --on-error skip$",
    ),
    _Kind(
        rf"(frames|moments) with the samples of one of another person: {_NUMBER}",
        f"{{0}}; parts of a recording may be there twice, {_TWO_SPLITS}",
    ),
    _Kind(
        rf"(frames|moments) with the shape of one of another person, in another scale, offset or rounding: {_NUMBER}",
        f"{{0}}; a recording may be there twice, {_TWO_SPLITS}",
    ),
    _Kind(
        rf"(frames|moments) with a piece of one of another person, at least {_NUMBER} samples in a row: {_NUMBER}",
        f"{{0}} or more; they may be cut from one recording, {_TWO_SPLITS}",
    ),
    _Kind(
        rf"people with names that (differ only in case, marks, spaces or leading zeros|look alike, with letters of two "
        rf"alphabets): {_NUMBER}",
        f"{{0}}; one person may be there under two names, {_TWO_SPLITS}",
    ),
    _Kind(
        "people with names as a spreadsheet rounds long numbers",
        "{0}; several people may have one name",
    ),
    _Kind("domains of ", f"{_DOMAINS} that look alike or are misspelt; each is a task of its own"),
)
_OTHERS: Final = "a note of the preparation says that one person may be there under two names"


def leaks_without_names(notes: Sequence[str]) -> list[str]:
    """Return those of a manifest's notes that `leaks_of` returns, without names of people, recordings and files.

    The sentences are made of fixed words and of numbers.
    """
    sentences = dict.fromkeys(_without_names(note) for note in leaks_of(notes))
    return list(sentences)


def doubt_people(leaks: Sequence[str]) -> bool:
    """Return whether sentences of `leaks_without_names` say that one person may be there under two names."""
    return any(not leak.startswith(_DOMAINS) and not leak.endswith(_SAME_PATIENT) for leak in leaks)


def _without_names(note: str) -> str:
    for kind in _KINDS:
        begin = re.match(kind.begin, note)
        if begin is not None:
            end = re.search(kind.end, note) if kind.end else None
            return kind.sentence.format(begin.group()) + ("" if end is None else end.group(1))
    return _OTHERS
