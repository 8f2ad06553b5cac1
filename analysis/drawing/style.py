"""Style of all figures, and their output as reproducible files.

Figures use matplotlib's objects only: no pyplot, and no global state that outlives a call.
"""

from __future__ import annotations

import io
import math
import os
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from PIL import Image
from scipy.optimize import isotonic_regression

_P = ParamSpec("_P")
_R = TypeVar("_R")

SEQUENTIAL = "viridis"
"""Perceptually uniform, also with colour vision deficiencies."""

DIVERGING = "PuOr"
"""Orange below the centre, purple above: distinguishable without red or green."""

GRID = "#d9d9d9"
MUTED = "#5f6368"
SCREEN, PRINT = 150, 300
"""Resolution in dots per inch, on screen and of the report's PNG files."""

_LONGEST = 2**15
"""Longest side in pixels of a PNG file at the resolution `PRINT`; larger figures use `SCREEN`."""

_COMPRESSION = 2
"""Compression level of PNG files, of 9: much faster than 6, slightly larger."""

# Okabe and Ito (2008), without black, and with a darker yellow that is visible on white.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A5195", "#8C8C00")
PALETTE_SIZE = len(_PALETTE)
"""Number of lines that have a colour of their own."""

_DASHES = ("solid", (0, (4, 1.5)), (0, (1, 1)))
_HATCHES = ("", "////", "....")
_DARKENED = 0.6

FONT: ContextVar[Mapping[Any, Any] | None] = ContextVar("FONT", default=None)
"""Settings of matplotlib that differ from `RC`, such as another font."""

RC: dict[Any, Any] = {
    "figure.dpi": SCREEN,
    "savefig.dpi": SCREEN,
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 9.0,
    "axes.edgecolor": "#444444",
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "hatch.linewidth": 0.6,
    "hatch.color": "#8a8a8a",
    "pdf.fonttype": 42,  # embeds fonts so that text stays text, as journals require
    "text.parse_math": False,  # dollar signs in labels are not mathematics
    "path.simplify": True,
    "figure.constrained_layout.w_pad": 0.06,
    "figure.constrained_layout.h_pad": 0.06,
}


def styled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Apply this package's matplotlib settings in the block and restore the user's afterwards."""

    @wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with mpl.rc_context(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a glyph is missing in the font
            mpl.rcdefaults()
            mpl.rcParams.update(RC | dict(FONT.get() or {}))
            return function(*args, **kwargs)

    return wrapper


class ReportFigure(Figure):
    """A figure that notebooks display without pyplot."""

    def _repr_png_(self) -> bytes:
        return as_png(self)


def new_figure(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> ReportFigure:
    """Return an empty figure of a size in inches, by default with constrained layout."""
    return ReportFigure(figsize=(width, height), layout=layout)


def panels(figure: Figure, lines: int, columns: int, count: int, **shared: Any) -> Any:
    """Return axes [lines, columns], the first `count` of them to draw in; the others are empty."""
    grid = figure.subplots(lines, columns, squeeze=False, **shared)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    return grid


def colour(position: int) -> str:
    """Return the colour of line number `position`; from the ninth on, colours repeat, darker."""
    cycle = position // PALETTE_SIZE % len(_DASHES)
    red, green, blue = to_rgb(_PALETTE[position % PALETTE_SIZE])
    return to_hex((red * _DARKENED**cycle, green * _DARKENED**cycle, blue * _DARKENED**cycle))


def dash(position: int) -> str | tuple[int, Sequence[float]]:
    """Return the style of line number `position`: solid for the first eight, then dashed, then dotted."""
    return _DASHES[position // PALETTE_SIZE % len(_DASHES)]


def hatch(position: int) -> str:
    """Return the hatch of area number `position`: none for the first eight, then lines, then dots."""
    return _HATCHES[position // PALETTE_SIZE % len(_HATCHES)]


def decimals(spread: float, least: int = 3) -> int:
    """Return the number of decimals that show two digits of a spread; `least` if it is zero or not finite."""
    return max(least, 1 - math.floor(math.log10(spread))) if 0 < spread < math.inf else least


def luminance(colour_name: object) -> float:
    """Return the relative luminance of a colour, 0 (black) to 1 (white), as in WCAG 2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour_name)]  # type: ignore[arg-type]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def readable_on(background: object) -> str:
    """Return black or white, whichever has more contrast with a background; the ratio is at least 4.5."""
    return "black" if (luminance(background) + 0.05) ** 2 > 0.05 * 1.05 else "white"


def spread(positions: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move label positions apart to at least `gap`, keeping their order, with the least sum of squared moves.

    x_k - x_(k-1) >= gap means that x_k - gap k is nondecreasing, so this is an isotonic regression.
    """
    order = np.argsort(positions, kind="stable")
    gap = min(gap, (high - low) / max(len(order) - 1, 1))
    steps = gap * np.arange(len(order))
    placed = np.empty(len(order))
    if len(order):
        rising = isotonic_regression(np.asarray(positions, dtype=float)[order] - steps).x
        placed[order] = np.clip(rising, low, high - steps[-1]) + steps
    return [float(position) for position in placed]


@styled
def as_png(figure: Figure, dpi: float = SCREEN) -> bytes:
    """Return the figure as PNG, without date or version; very large figures at screen resolution."""
    dpi = dpi if dpi * max(figure.get_size_inches()) < _LONGEST else SCREEN
    canvas, stream = FigureCanvasAgg(figure), io.BytesIO()
    figure.dpi = dpi
    canvas.draw()
    figure.dpi = SCREEN
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")  # figures are opaque
    pixels.save(stream, "png", dpi=(dpi, dpi), compress_level=_COMPRESSION)
    return stream.getvalue()


@styled
def lay_out(figure: Figure) -> None:
    """Compute the layout of a figure that is not drawn as PNG."""
    # draw_without_rendering would prepare every artist, too, which takes half as long again
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)


@styled
def as_pdf(figure: Figure) -> bytes:
    """Return the figure as PDF, without date or version, in the layout computed for the PNG."""
    stream = io.BytesIO()
    figure.set_layout_engine("none")
    FigureCanvasPdf(figure).print_pdf(stream, metadata={"CreationDate": None, "Creator": None, "Producer": None})
    figure.dpi = SCREEN
    return stream.getvalue()


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file atomically: readers see the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
