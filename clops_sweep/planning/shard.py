"""Shards: the runs of a sweep divided among processes that know nothing of each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_DIGITS = 12
"""Of a run's id, hexadecimal: enough for shards of equal size."""


@dataclass(frozen=True)
class Shard:
    """One of `count` parts, counted from 1. A run's id alone says which part has it, so more runs move none.

    Attributes:
        index: which part, from 1.
        count: of how many.
    """

    index: int
    count: int

    @classmethod
    def parsed(cls, text: object) -> Self:
        """Read "3/16".

        Raises:
            ValueError: the text is no shard; the message says what is expected.
        """
        found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII) if isinstance(text, str) else None
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError("expected i/n with i from 1 to n, such as 3/16")
        return cls(int(found[1]), int(found[2]))

    def has(self, run_id: str) -> bool:
        """Return whether a run is in this part."""
        return int(run_id[:_DIGITS], 16) % self.count == self.index - 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
