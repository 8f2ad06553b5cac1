"""Code on pages and in notebooks is no wider than the site shows it."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
COLUMNS = 88
TO_BE_TAKEN_AS_IT_STANDS = "python3 -m venv "
"""The beginning of the commands that continuous integration takes from the README."""


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=lambda path: path.name)
def test_code_fits(path: Path) -> None:
    if path.suffix == ".ipynb":
        blocks = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    else:
        blocks = re.findall(r"^```(?:python|sh|toml)\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert [line for line in lines if len(line) > COLUMNS and not line.startswith(TO_BE_TAKEN_AS_IT_STANDS)] == []
