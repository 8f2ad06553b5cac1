"""Texts keep clear of phrases that make readers stumble."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SUFFIXES = (".py", ".md", ".html", ".js", ".css", ".jinja", ".ipynb")

FROM_LIBRARIES = ("No available agent",)
"""Sentences of Ray that tests assert to be absent."""


@pytest.mark.nightly
def test_a_sentence_that_must_not_appear_is_one_that_could() -> None:
    """`assert "a sentence" not in page` cannot fail once the sentence is reworded: the product must still have it.

    It may also be asserted to appear elsewhere in the same file.
    """
    product = [path for folder in ("clops_sweep", "analysis") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text("utf-8") for path in product if path.suffix in SUFFIXES]
    source = re.sub(r"\"\s+f?\"", "", "\n".join(texts))
    gone = []
    for path in (ROOT / "tests").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        tests = [it for it in ast.walk(tree) if isinstance(it, ast.Compare) and isinstance(it.left, ast.Constant)]
        present = {it.left.value for it in tests if isinstance(it.ops[0], ast.In)}  # type: ignore[attr-defined]
        for it in tests:
            said = it.left.value  # type: ignore[attr-defined]
            if isinstance(it.ops[0], ast.NotIn) and isinstance(said, str) and " " in said.strip():
                gone += [] if said in source or said in present else [f"{path.name}:{it.lineno}: {said}"]
    assert len(gone) == len(FROM_LIBRARIES), gone
    assert all(any(said in it for it in gone) for said in FROM_LIBRARIES)


@pytest.mark.nightly
def test_the_errors_of_the_page_of_troubleshooting_are_printed() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    files = [*(ROOT / "clops_sweep").rglob("*.py"), *(ROOT / "analysis").rglob("*.py")]
    sources = re.sub(r"\"\s+f?\"", "", "\n".join(path.read_text("utf-8") for path in files))
    messages = re.findall(r"^```text\n(.*?)\n```$", page, re.MULTILINE | re.DOTALL)
    assert len(messages) >= 15
    for message in messages:
        assert any(message[at : at + 14] in sources for at in range(len(message) - 13)), message
