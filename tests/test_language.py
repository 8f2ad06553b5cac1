"""Texts keep clear of phrases that make readers stumble."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PHRASES = (
    *("is to be", "be had", "is told", "are told", "stands for it", "as ever", "of before"),
    *("by and by", "in the place of", "whoever", "somebody", "nobody", "what is said of"),
)
SUFFIXES = (".py", ".md", ".html", ".js", ".css", ".jinja", ".ipynb")
_ANY_CASE = "|".join(PHRASES).replace(" ", r"[\s#]+")
UNCLEAR = re.compile(rf"\b((?i:{_ANY_CASE})|there[\s#]+is[\s#]+none|(?:is|are)[\s#]+none(?! [%}}]| else))\b")
"""In upper and lower case, except `is None`, which is Python."""


def test_no_unclear_phrase() -> None:
    folders = ("clops_sweep", "analysis", "search_spaces", "benchmarks", "docs")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.md"))
    texts = {path: path.read_text("utf-8") for path in paths if path.suffix in SUFFIXES}
    assert len(texts) > 400
    assert not [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1}: {found.group()}"
        for path, text in texts.items()
        for found in UNCLEAR.finditer(text)
    ]


def test_markdown_is_wrapped() -> None:
    """At 100 characters; tables, code, captions and generated text may be wider."""
    wide = []
    for path in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        prose = re.sub(r"^(```+).*?^\1$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        lines = re.sub(r"^(:::+)\{.*?^\1$", "", prose, flags=re.MULTILINE | re.DOTALL).splitlines()
        of_tables = ("|", "![", "*", "    ")
        wide += [
            f"{path.name}: {it[:60]}"
            for it in lines
            if len(it) > 100 and " " in it.strip() and not it.startswith(of_tables)
        ]
    assert not wide


def test_the_errors_of_the_page_of_troubleshooting_are_printed() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    files = [*(ROOT / "clops_sweep").rglob("*.py"), *(ROOT / "analysis").rglob("*.py")]
    sources = re.sub(r"\"\s+f?\"", "", "\n".join(path.read_text("utf-8") for path in files))
    messages = re.findall(r"^```text\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert len(messages) >= 15
    for message in messages:
        assert any(message[at : at + 14] in sources for at in range(len(message) - 13)), message
