"""People whose names differ in writing alone, such as P7 and p07, who may be one person in two splits."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import shown

_PARTS: Final = re.compile(r"[^\W\d_]+|\d+")
"""Words and numbers in a name."""


def alike_people(names: Iterable[str]) -> str | None:
    """Return a note on names that differ only in case, in what stands between words and numbers, or in leading zeros.

    None if there are no such names.
    """
    first: dict[tuple[str, ...], str] = {}
    pairs = list[tuple[str, str]]()
    for name in names:
        plain = unicodedata.normalize("NFKC", name).casefold()
        parts = tuple(part.lstrip("0") or "0" if part.isdigit() else part for part in _PARTS.findall(plain))
        other = first.setdefault(parts or (name,), name)
        if other != name:
            pairs.append((other, name))
    if not pairs:
        return None
    one, other = (shown(shorten(name)) for name in pairs[0])
    return (
        f"people with names that differ only in case, marks, spaces or leading zeros: {len(pairs):,}, such as {one} "
        f"and {other}: one person may be in two splits; give each person one name"
    )
