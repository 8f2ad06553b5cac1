"""Names of domains, such as wards, that are probably other spellings of a more frequent name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from typing import Final

_PARTS: Final = re.compile(r"[^\W\d_]+|\d+")
"""Words and numbers in a name."""

_CYRILLIC: Final = (
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405"
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455"
)
_GREEK: Final = "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf"
_LATIN: Final = str.maketrans(_CYRILLIC + _GREEK, "ABEKMHOPCTYXIJSaeopcyxijsABEZHIKMNOPTYXo")
"""Letters of other alphabets that look like Latin ones."""

_SHORTEST: Final = 5
"""Fewest letters of a word that is taken for a misspelling: MICU and SICU are two wards."""
_MOST_LETTERS: Final = 2
"""Most letters that only one of two spellings has: one left out or added, or one replaced by another."""

_FEW: Final = 3
_TIMES_MORE: Final = 20
"""How many times as often as a misspelling the right name is there, if the misspelling is there more than `_FEW` times.

Otherwise, the right name is there more than twice as often.
"""


def latin(name: str) -> str:
    """Return a name with Latin letters instead of those of the Cyrillic and Greek alphabets that look alike."""
    return name.translate(_LATIN)


def written(name: str) -> tuple[str, ...]:
    """Return the words and numbers of a name without case, marks, spaces and leading zeros, in letters of `latin`."""
    plain = latin(unicodedata.normalize("NFKC", name)).casefold()
    return tuple(part.lstrip("0") or "0" if part.isdigit() else part for part in _PARTS.findall(plain)) or (name,)


def respelt(name: str, known: Iterable[str]) -> str | None:
    """Return the first known name that `name` may be another spelling of, else None.

    They differ in case, marks, spaces or leading zeros alone, or one of their words of five letters or more differs in
    one or two letters, such as genral and general. They do not differ in numbers, or in the first or only the last
    letter of a word: unit 1 and unit 2, or wardA and wardB, are different.
    """
    parts = written(name)
    for other in known:
        if other == name or len(written(other)) != len(parts):
            continue
        pairs = zip(parts, written(other), strict=True)
        differing = [pair for pair in pairs if pair[0] != pair[1]]
        if not differing or (len(differing) == 1 and _is_slip(*differing[0])):
            return other
    return None


def likely_meant(name: str, counts: Mapping[str, int]) -> str | None:
    """Return the name that a rare name probably is a misspelling of, else None.

    Args:
        name: the rare name.
        counts: how often each name is there, such as its number of people.
    """
    rare = counts[name]
    least = 2 * rare if rare <= _FEW else _TIMES_MORE * rare - 1
    frequent = sorted(counts, key=lambda other: -counts[other])
    return respelt(name, [other for other in frequent if counts[other] > least])


def hint(name: str, counts: Mapping[str, int]) -> str:
    """Return " (did you mean 'general'?)" if a rare name probably is a misspelling of a frequent one, else ""."""
    meant = likely_meant(name, counts)
    return "" if meant is None else f" (did you mean {meant!r}?)"


def _is_slip(one: str, other: str) -> bool:
    """Return whether two words may be one, with a slip of the keyboard."""
    if min(len(one), len(other)) < _SHORTEST or one[0] != other[0] or one[:-1] == other[:-1]:
        return False
    if not (one.isalpha() and other.isalpha()):
        return False
    common = sum(block.size for block in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks())
    return len(one) + len(other) - 2 * common <= _MOST_LETTERS
