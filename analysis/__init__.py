"""Figures, tables and the report page, computed from the store alone.

Every figure has a function that computes a small typed record from the store, and another that draws it. In a
notebook::

    from clops_sweep.analysis.figures.heatmaps import draw_heatmap, heatmap
    from clops_sweep.analysis.report.notebook import open_sweep

    grid, *others = open_sweep("search_spaces/quickstart.py", "results")
    draw_heatmap(heatmap(grid, "bwt"))
"""
