"""SVG output of figures, with tooltips.

matplotlib writes the URL of an artist as a link around it. Here, artists carry their tooltip as URL, and the link is
replaced by a group with the text as its `<title>`, which browsers show.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import cast
from xml.etree import ElementTree

import matplotlib as mpl
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from .style import SCREEN, styled

_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
ElementTree.register_namespace("", _SVG)
ElementTree.register_namespace("xlink", _LINK)

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_FRACTION = re.compile(r"(\.\d\d)\d+")
_PLACES = ("d", "x", "y", "transform")
_ON_TOP = 10
_REACH = 80.0
"""Area in square points around a data point that shows its tooltip."""


@styled
def as_svg(figure: Figure, name: str, alt: str) -> str:
    """Return the figure as SVG that can be embedded in an HTML page.

    Text can be selected and edited; coordinates have two decimals.

    Args:
        figure: a figure that was drawn as PNG, whose layout is kept.
        name: name of the figure; makes ids unique within a page.
        alt: description of the figure in words.
    """
    stream = io.StringIO()
    figure.set_layout_engine("none")
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        # not savefig, which would compute the layout again
        FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None, "Creator": None})
    figure.dpi = SCREEN  # print_svg sets its own resolution
    root = ElementTree.fromstring(_NOT_IN_XML.sub("?", stream.getvalue()))
    for part in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(part)
    # a number in a cell must not hide the cell's tooltip
    root.attrib |= {
        "class": "drawing",
        "role": "img",
        "aria-label": _NOT_IN_XML.sub("?", alt),
        "pointer-events": "none",
    }
    for part in root.iter():
        part.tail = None
        if not (part.text or "").strip():
            part.text = None
        if part.tag == f"{{{_SVG}}}a":
            _make_tooltip(part)
        elif part.tag == f"{{{_SVG}}}g":
            part.attrib.pop("id", None)  # ids such as axes_1, which every figure has
        for attribute in _PLACES:
            if attribute in part.attrib:
                part.set(attribute, _FRACTION.sub(r"\1", part.attrib[attribute]))
    return ElementTree.tostring(root, encoding="unicode")


def tell_points(axes: Axes, x: npt.ArrayLike, y: npt.ArrayLike, texts: Sequence[str]) -> None:
    """Give points a tooltip each, by invisible artists."""
    points = axes.scatter(x, y, s=_REACH, color=(0, 0, 0, 0), linewidths=0, zorder=_ON_TOP, clip_on=False)
    points.set_urls(texts)
    points.set_in_layout(False)


def _make_tooltip(link: ElementTree.Element) -> None:
    title = ElementTree.Element(f"{{{_SVG}}}title")
    title.text = cast(str, link.get(f"{{{_LINK}}}href"))
    link.tag = f"{{{_SVG}}}g"
    link.attrib = {"pointer-events": "all"}
    link.insert(0, title)
