"""The generated reference of fields and options is that of the code."""

from __future__ import annotations

import runpy
from pathlib import Path

from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import BUILT_IN

FOLDER = Path(__file__).parents[1] / "docs" / "reference"


def test_the_pages_are_fresh_and_every_option_has_a_meaning() -> None:
    pages = runpy.run_path(str(FOLDER / "generate.py"))["pages"]()
    assert FOLDER / "config.md" in pages
    assert [path.name for path, text in pages.items() if path.read_text("utf-8") != text] == []
    assert [name for name in BUILT_IN if not OPTIONS[name].description] == []


def test_the_table_of_layers_is_what_lowering_does() -> None:
    page = (FOLDER / "layers.md").read_text("utf-8")
    assert page == runpy.run_path(str(FOLDER / "layers.py"))["page"]()
