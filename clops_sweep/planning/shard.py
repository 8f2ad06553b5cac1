"""Shards: the runs of a sweep divided among independent processes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_DIGITS = 12
"""Hexadecimal digits of a run's id that decide its shard."""


@dataclass(frozen=True)
class Shard:
    """One of `count` parts. A run's id alone decides its part, so adding runs moves none.

    Attributes:
        index: number of the part, from 1.
        count: number of parts.
    """

    index: int
    count: int

    @classmethod
    def parsed(cls, text: object) -> Self:
        """Read "3/16".

        Raises:
            ValueError: the text is not a shard; the message says what is expected.
        """
        match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text, re.ASCII) if isinstance(text, str) else None
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError("expected i/n with i from 1 to n, such as 3/16")
        return cls(int(match[1]), int(match[2]))

    def has(self, run_id: str) -> bool:
        """Return whether a run is in this part."""
        return int(run_id[:_DIGITS], 16) % self.count == self.index - 1

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"
