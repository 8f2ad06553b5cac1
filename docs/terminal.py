"""Record a sweep in a terminal, and write it as an animated SVG: docs/display.svg.

python docs/terminal.py SPACE.py      in a folder that contains only SPACE.py; needs `pip install pyte`
"""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
import time
from collections.abc import Iterator
from html import escape
from itertools import groupby, pairwise
from pathlib import Path

import pyte

COLUMNS, ROWS = 92, 16
WIDTH, HEIGHT = 8.43, 19  # size of a character at 14 px
SPEED, SAMPLED, HELD = 4.0, 1.0, 6.0  # least playback speed; seconds between pictures; seconds of the last picture
PICTURES, LONGEST = 40, 12.0  # at most so many pictures, and seconds before the last one, also on a slow machine
COLOURS = {"default": "#d6dadf", "green": "#8fbf6a", "cyan": "#6fb3c4", "red": "#e0706c", "brown": "#d9b36c"}
PAGE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" aria-label="{label}">
<style>
text {{ font: 14px "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; fill: #d6dadf }}
.film {{ animation: play {seconds:.1f}s step-end infinite }}
@keyframes play {{ {keys} }}
@media (prefers-reduced-motion: reduce) {{ .film {{ animation: none; transform: translateY({last}px) }} }}
</style>
<rect width="100%" height="100%" rx="8" fill="#1d2129"/>
<g transform="translate(14 24)">{still}</g>
<svg x="14" y="{top}" width="{inner:.0f}" height="{shown}"><g class="film" transform="translate(0 14)">{film}</g></svg>
</svg>
"""

Run = tuple[int, str, str, bool]
"""A piece of text of one style in a row: first column, text, colour, whether it is bold."""


def recorded(command: list[str]) -> Iterator[tuple[float, str]]:
    """Yield the output of a command in a terminal, with the seconds since its start."""
    began = time.monotonic()
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(COLUMNS), LINES=str(ROWS))
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    while True:
        try:
            written = os.read(terminal, 1 << 16)
        except OSError:  # Linux: the command has ended
            break
        if not written:
            break
        yield time.monotonic() - began, written.decode("utf-8", "replace")
    if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]):
        sys.exit("the sweep failed")


def rows_of(screen: pyte.Screen) -> list[list[Run]]:
    """Return the text on a screen by row."""
    rows = []
    for row in range(ROWS):
        cells = [(column, screen.buffer[row][column]) for column in range(COLUMNS)]
        runs = []
        for (colour, bold), of in groupby(cells, lambda cell: (cell[1].fg, cell[1].bold)):
            (first, _), *_ = together = list(of)
            text = "".join(character.data for _, character in together)
            if text.strip():
                runs.append((first, text.rstrip(), COLOURS.get(colour, f"#{colour}"), bold))
        rows.append(runs)
    return rows


def frames(events: Iterator[tuple[float, str]]) -> list[tuple[float, list[list[Run]]]]:
    """Return the changes of the screen, at most one per `SAMPLED` seconds, and the last one."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream, found, at, due = pyte.Stream(screen), [(0.0, rows_of(screen))], 0.0, SAMPLED
    for at, written in events:
        if at >= due:
            found.append((due, rows_of(screen)))
            due = at - at % SAMPLED + SAMPLED
        stream.feed(written)
    found.append((at, rows_of(screen)))
    return [found[0], *(new for old, new in pairwise(found) if new[1] != old[1])]


def thinned(film: list[tuple[float, list[list[Run]]]]) -> list[tuple[float, list[list[Run]]]]:
    """Return at most `PICTURES` changes of the screen and the last one."""
    step = -(-len(film) // PICTURES)
    return [*film[:-1:step], film[-1]]


def drawn(rows: list[list[Run]], top: int = 0) -> str:
    """Return rows of text as SVG."""
    texts = []
    for row, runs in enumerate(rows):
        for column, text, colour, bold in runs:
            fill = "" if colour == COLOURS["default"] else f' style="fill:{colour}"'
            weight = ' font-weight="bold"' if bold else ""
            place = f'x="{column * WIDTH:.1f}" y="{top + row * HEIGHT}" textLength="{len(text) * WIDTH:.1f}"'
            texts.append(f"<text {place}{fill}{weight}>{escape(text, quote=False)}</text>")
    return "".join(texts)


def main(space: str) -> None:
    """Run the sweep and write the picture."""
    above = [f"$ cat {space}", *Path(space).read_text().splitlines(), f"$ clops-sweep {space}"]
    film = thinned(frames(recorded([str(Path(sys.executable).with_name("clops-sweep")), space])))
    speed = max(SPEED, film[-1][0] / LONGEST)
    seconds, shown = film[-1][0] / speed + HELD, ROWS * HEIGHT
    tops = [14 - place * shown for place in range(len(film))]
    places = zip(film, tops, strict=True)
    page = PAGE.format(
        width=COLUMNS * WIDTH + 28,
        inner=COLUMNS * WIDTH,
        height=24 + len(above) * HEIGHT + shown,
        shown=shown,
        top=10 + len(above) * HEIGHT,
        label=f"A terminal in which clops-sweep runs {space}",
        seconds=seconds,
        keys=" ".join(f"{at / speed / seconds:.2%} {{ transform: translateY({top}px) }}" for (at, _), top in places),
        last=tops[-1],
        still=drawn([[(0, line, COLOURS["default"], line.startswith("$"))] for line in above]),
        film="".join(drawn(rows, 14 - top) for (_, rows), top in zip(film, tops, strict=True)),
    )
    Path(__file__).with_name("display.svg").write_text(page)
    print(f"{film[-1][0]:.0f} s, {len(film)} pictures, {len(page):,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
