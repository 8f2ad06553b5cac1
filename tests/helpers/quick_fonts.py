"""PDF files of this process have fonts of Type 3, whose making takes a fifth of the time of those of reports."""

from __future__ import annotations

from clops_sweep.analysis.drawing import style

OF_REPORTS = style.RC["pdf.fonttype"]
"""The type of the fonts of reports."""

style.RC["pdf.fonttype"] = 3
