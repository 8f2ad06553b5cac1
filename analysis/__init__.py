"""Figures, tables and the report page, computed from the store alone.

Every figure has a function that computes a small typed record from the store, and another that draws it::

    from clops_sweep.analysis import draw_heatmap, heatmap, open_sweep

    grid, *others = open_sweep("search_spaces/quickstart.py", "results")
    draw_heatmap(heatmap(grid, "bwt"))
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
