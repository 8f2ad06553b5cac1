"""The keys of `--json` as docs/commands.md lists them."""

from __future__ import annotations

import re
from pathlib import Path

_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| .+ \|$", re.MULTILINE)


def documented(command: str) -> set[str]:
    """The keys that a command prints."""
    text = Path(__file__).parents[2].joinpath("docs", "commands.md").read_text(encoding="utf-8")
    rows = _ROW.findall(text)
    assert rows
    return {key for key, commands in rows if commands == "every command" or f"`{command}`" in commands.split(", ")}
