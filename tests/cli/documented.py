"""The keys of `--json` as docs/commands.md lists them."""

from __future__ import annotations

import re
from pathlib import Path

_ROW = re.compile(r"^\| (`.+?`|every command) \| (`.+`) \|$", re.MULTILINE)


def documented(command: str) -> set[str]:
    """The keys that a command prints."""
    text = Path(__file__).parents[2].joinpath("docs", "commands.md").read_text(encoding="utf-8")
    rows = [
        keys for commands, keys in _ROW.findall(text) if {"every command", f"`{command}`"} & {*commands.split(", ")}
    ]
    assert len(rows) == 2
    return {key for keys in rows for key in re.findall(r"`(\w+)`", keys)}
