"""The pages of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FOLLOWED = ("paper", "ward", "against_five")
"""Pages whose files and commands `tests/analysis/test_readers.py` runs in order."""


def examples(page: str) -> list[str]:
    """The Python of a page, block by block."""
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / f"{page}.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
