"""Figures as a part of the page: SVG whose text is text, in a font that the page brings along."""

from __future__ import annotations

import base64
import html
import io
import re
import string
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import matplotlib as mpl

_FAMILY = "Figures"
_FONTS = {400: "DejaVuSans.ttf", 700: "DejaVuSans-Bold.ttf"}
"""Weight to file: those that figures are laid out with, which matplotlib brings along."""

_ALWAYS = string.digits + string.ascii_letters + string.punctuation + " "
"""So that most pages have the same letters, which are then looked for once."""

_OUTSIDE = re.compile(r"^.*?(?=<svg )|<!--.*?-->|<metadata>.*?</metadata>|<style[^>]*>.*?</style>|\s+(?=<)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_TEXT = re.compile(r"<text[^>]*>([^<]*)</text>")
_USED = re.compile(r'(?:href="#|url\(#)([^")]+)')
_ID = re.compile(r' id="([^"]*)"')
_FRACTION = re.compile(r"(\d\d\.\d\d)\d+")
_LEVEL = re.compile(r' transform="rotate\(-?0 [^"]*\)"')
_LINES = re.compile(r' d="[MLz\d\s.-]*"')
"""Paths of straight lines: without another letter, what follows a place is the next one."""

_SIZE = re.compile(r' (width|height)="([\d.]+)pt"')


def inline(svg: bytes, name: str, alt: str) -> str:
    """An SVG file with its text as text (`as_svg`), as an element of the page.

    Args:
        svg: the file.
        name: of the figure; the names of its parts begin with it, as no two parts of a page may have one name.
        alt: what it shows, in words.
    """
    drawing = _OUTSIDE.sub("", svg.decode())
    used = {part: f"{name}-{number}" for number, part in enumerate(sorted(set(_USED.findall(drawing))))}
    drawing = _TAG.sub(lambda tag: _shorter(tag[0], used), drawing)
    for empty in ("<g></g>", "<g/>", "<defs></defs>", "<defs/>"):
        drawing = drawing.replace(empty, "")
    return drawing.replace("<svg ", f'<svg class="drawing" role="img" aria-label="{html.escape(alt)}" ', 1)


def font_faces(drawings: Iterable[str]) -> str:
    """The style rules that bring along the letters of drawings; none where there are no drawings."""
    texts = [html.unescape(text) for drawing in drawings for text in _TEXT.findall(drawing)]
    if not texts:
        return ""
    letters = "".join(sorted({*_ALWAYS, *"".join(texts)}))
    faces = []
    for weight, file in _FONTS.items():
        data = base64.b64encode(_letters_of(file, letters)).decode()
        source = f"url(data:font/woff;base64,{data})"
        faces.append(f'@font-face {{ font-family: "{_FAMILY}"; font-weight: {weight}; src: {source}; }}')
    return "\n".join([*faces, f'.drawing text {{ font-family: "{_FAMILY}"; }}'])


def _shorter(tag: str, used: dict[str, str]) -> str:
    """A tag without names that nobody uses, and with coordinates of a hundredth of a point."""
    tag = _ID.sub(lambda found: f' id="{used[found[1]]}"' if found[1] in used else "", tag)
    tag = _USED.sub(lambda found: found[0].replace(found[1], used[found[1]]), tag)
    tag = _LEVEL.sub("", tag)
    tag = _LINES.sub(lambda lines: lines[0].replace("L ", ""), tag)
    tag = _SIZE.sub(lambda found: f' {found[1]}="{float(found[2]) * 4 / 3:.0f}"', tag)
    return " ".join(_FRACTION.sub(r"\1", tag).replace("font-family: 'DejaVu Sans'; ", "").split())


@cache
def _letters_of(file: str, letters: str) -> bytes:
    """A font with some of its letters, the same bytes each time."""
    from fontTools import subset

    options = subset.Options(flavor="woff", notdef_outline=True)
    options.drop_tables += ["FFTM"]  # when the font was made
    path, stream = Path(mpl.get_data_path(), "fonts", "ttf", file), io.BytesIO()
    with subset.load_font(str(path), options) as font:
        chosen = subset.Subsetter(options)
        chosen.populate(text=letters)
        chosen.subset(font)
        subset.save_font(font, stream, options)
    return stream.getvalue()
