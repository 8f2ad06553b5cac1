"""Fitting of names into the available space: wrapped, rotated or, as a last resort, shortened."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

_LEADING = 1.3
"""Line height relative to the font size."""

_TOGETHER = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"

_UPRIGHT = 1.9
"""Maximum length in inches of a vertical name below a column."""

_LEAST = 4
"""Length in characters, with the ellipsis, up to which a shortened name is useless."""

TO_THE_LEFT = 2.2
"""Maximum width in inches of a name beside a row."""


@lru_cache(maxsize=4096)
def inches(text: str, size: float, bold: bool = False) -> float:
    """Return the width in inches of a line of text, at a font size in points."""
    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width) / 72


def in_lines(text: str, width: float, size: float, most: int = 3, bold: bool = False) -> str:
    """Wrap a text into at most `lines` lines of a width in inches; text that does not fit ends in an ellipsis.

    "b = 0.5" is never split.
    """
    lines = [""]
    for word in _parts(text):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and inches(longer, size, bold) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    kept = [*lines[: most - 1], " ".join(lines[most - 1 :])] if len(lines) > most else lines
    return "\n".join(shortened(line.replace(_TOGETHER, " = "), width, size, bold) for line in kept)


def widest_part(text: str, size: float, bold: bool = False) -> float:
    """Return the width in inches of the longest part of a text that `in_lines` never splits."""
    return max(inches(word.replace(_TOGETHER, " = "), size, bold) for word in _parts(text))


def _parts(text: str) -> list[str]:
    """Return the parts of a text that stay together: its words, and "b = 0.5" as one."""
    return " ".join(text.split()).replace(" = ", _TOGETHER).split(" ")


def shortened(text: str, width: float, size: float, bold: bool = False) -> str:
    """Shorten a text with an ellipsis to a width in inches."""
    if inches(text, size, bold) <= width:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if inches(text[:middle] + "…", size, bold) <= width:
            fits = middle
        else:
            too_long = middle
    return text[:fits].rstrip() + "…"


def in_one_size(
    names: Sequence[str], widths: Sequence[float], sizes: Sequence[float], most: int
) -> tuple[list[str], float]:
    """Fit names into given widths in the first font size that fits all; else shorten them in the last size."""
    for size in sizes:
        texts = [in_lines(name, width, size, most) for name, width in zip(names, widths, strict=True)]
        if not any("…" in text for text in texts):
            return texts, size
    texts = [shortened(name, width, size) for name, width in zip(names, widths, strict=True)]
    return [text if len(text) > _LEAST or "…" not in text else "" for text in texts], size


def name_columns(axes: Axes, names: Sequence[str], places: Sequence[float], width: float, size: float = 8.5) -> None:
    """Write names below columns of a width in inches: horizontal if all fit in two lines, else vertical.

    Without names the axis is removed, which saves layout time.
    """
    if not names:
        axes.xaxis.set_visible(False)
        return
    level = [in_lines(name, 0.92 * width, size, 2) for name in names]
    if not any("…" in text for text in level):
        axes.set_xticks(places, level, fontsize=size)
        return
    size = min(size, 8.0, 72 * width / _LEADING)
    most = max(1, int(72 * width / (_LEADING * size)))
    upright = [in_lines(name, _UPRIGHT, size, min(most, 3)) for name in names]
    axes.set_xticks(places, upright, fontsize=size, rotation=90, linespacing=1.1)


def name_rows(
    axes: Axes,
    names: Sequence[str],
    places: Sequence[float],
    height: float,
    size: float = 8.5,
    width: float = TO_THE_LEFT,
) -> None:
    """Write names beside rows of a height in inches, in as many lines as fit; without names, remove the axis."""
    if not names:
        axes.yaxis.set_visible(False)
        return
    size = min(size, 72 * height / _LEADING)
    most = max(1, int(72 * height / (_LEADING * size)))
    axes.set_yticks(places, [in_lines(name, width, size, min(most, 3)) for name in names], fontsize=size)


def legend_columns(names: Sequence[str], width: float, size: float = 8.5, most: int = 4) -> int:
    """Return the number of legend columns that fit into a width in inches; at least one."""
    return max(1, min(len(names), most, int(width / (max(inches(name, size) for name in names) + 0.6))))
