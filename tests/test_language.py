"""Texts keep clear of phrases that make readers stumble."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PHRASES = (
    *("is to be", "be had", "there is none", "is told", "are told", "stands for it", "as ever", "of before"),
    *("by and by", "in the place of", "whoever", "somebody", "nobody", "is none", "are none", "what is said of"),
)
UNCLEAR = re.compile(r"\b(" + "|".join(PHRASES).replace(" ", r"[\s#]+") + r")\b")


def test_no_unclear_phrase() -> None:
    folders = ("clops_sweep", "analysis", "search_spaces", "benchmarks", "docs")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.md"))
    texts = {path: path.read_text("utf-8") for path in paths if path.suffix in (".py", ".md", ".html", ".js", ".css")}
    assert len(texts) > 400
    assert not [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}: {found.group()}"
        for path, text in texts.items()
        for found in UNCLEAR.finditer(text)
    ]
