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
    """

    begin: str
    sentence: str


_NUMBER: Final = r"[0-9]{1,3}(,[0-9]{3})*"
_TWO_SPLITS: Final = "and may be in two splits"
_KINDS: Final = (
    _Kind(
        rf"records with the samples of an earlier record: {_NUMBER}",
        f"{{0}}; they are there twice, {_TWO_SPLITS} if the patients differ",
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
    _Kind("domains of ", "domains with names that look alike or are misspelt; each is a task of its own"),
)
_OTHERS: Final = "a note of the preparation says that one person may be there under two names"


def leaks_without_names(notes: Sequence[str]) -> list[str]:
    """Return those of a manifest's notes that `leaks_of` returns, without names of people, recordings and files.

    The sentences are made of fixed words and the number before the first name; nothing behind it is read.
    """
    sentences = dict.fromkeys(_without_names(note) for note in leaks_of(notes))
    return list(sentences)


def _without_names(note: str) -> str:
    for kind in _KINDS:
        begin = re.match(kind.begin, note)
        if begin is not None:
            return kind.sentence.format(begin.group())
    return _OTHERS
