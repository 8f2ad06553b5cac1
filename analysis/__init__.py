"""Figures, tables and the report page, computed from the store alone.

Every figure has a function that computes a small typed record from the store, and another that draws it::

    from clops_sweep.analysis import draw_heatmap, heatmap, open_sweep

    grid, *others = open_sweep("search_spaces/quickstart.py", "results")
    draw_heatmap(heatmap(grid, "bwt"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .names import *  # noqa: F403


def __getattr__(name: str) -> object:
    """Import the public names on first use: `show` needs none of them, and matplotlib takes 0.5 s."""
    found: object = getattr(import_module(".names", __name__), name)
    return found
