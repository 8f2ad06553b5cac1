"""Sections of the report, drawn in a background thread while a browser shows them."""

from __future__ import annotations

import gc
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pandas as pd
from markupsafe import Markup

from clops_sweep.errors import reason

from ..drawing.pictures import Picture, Sketch
from ..formats import TextTable, plural
from ..report.page import Section, part
from ..report.planned import PlannedSection
from ..report.sections import SectionFiles, with_pictures

_MOST_KEPT = 8
_MOST_WAITING = 200
"""Most configurations whose figures wait for the tables. With more, tables take longer than the first figures."""
_COLUMNS = ("run_id", "status", "started_at")


_ONE_DRAWS = threading.Lock()
"""Matplotlib draws in one thread at a time."""


def on_screen(item: Sketch) -> Picture:
    """Draw a figure for a page, after one that another thread draws now."""
    with _ONE_DRAWS:
        return item.drawn(files=False)


class Stopped(Exception):
    """The server ends while a section is drawn."""


@dataclass
class ScreenFiles(SectionFiles):
    """Figures for the screen, of which no file is made. Once `stop` is set, nothing is drawn.

    Args:
        stop: tells the drawing to end.
        waits: whether figures wait until all are known; otherwise each is drawn as soon as it is computed.
        waiting: the figures that wait.
        drawn: the figures that are drawn, as HTML.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    waits: bool = False
    waiting: list[Sketch] = field(default_factory=list)
    drawn: list[Markup] = field(default_factory=list)

    def add_picture(self, item: Sketch) -> Picture:
        """Draw a figure for a page only, now or later."""
        if self.waits:
            self.waiting.append(item)
            return item.undrawn()
        picture = self.draw(item)
        self.drawn.append(part("figure", picture, None))
        return picture

    def draw(self, item: Sketch) -> Picture:
        """Draw a figure now."""
        if self.stop.is_set():
            raise Stopped
        picture = on_screen(item)
        gc.collect(1)
        return picture

    def add_table(self, table: TextTable, exact: str | None = None) -> tuple[str, ...]:
        """Return no files."""
        return ()


@dataclass
class Drawing:
    """A section on the screen.

    Attributes:
        planned: the section as it is now in the store.
        mark: a number that changes with its runs.
        drawn: the mark of what is shown; None before the first drawing.
        section: the last complete drawing.
        begun: the first drawing while figures are missing: they have a title and a caption alone; None before it.
        ready: number of its figures that are drawn.
        html: its HTML, which takes a second for two thousand configurations.
        problem: why it could not be drawn.
        files: the figures of the drawing that goes on.
        times: how often it was drawn.
    """

    planned: PlannedSection
    mark: int
    drawn: int | None = None
    section: Section | None = None
    begun: Section | None = None
    ready: int = 0
    html: Markup | None = None
    problem: str = ""
    files: ScreenFiles = field(default_factory=ScreenFiles)
    times: int = 0

    @property
    def figures(self) -> list[Markup]:
        """The figures that are ready while the section is drawn for the first time, without its tables."""
        return list(self.files.drawn) if self.section is None and self.begun is None else []

    @property
    def progress(self) -> str:
        """How many figures of the first drawing are ready, in words; empty once it is complete."""
        if self.section is not None:
            return ""
        if self.begun is not None:
            return f"drawing: {self.ready} of {plural(len(self.files.waiting), 'figure')}"
        return f"drawing: {plural(len(self.figures), 'figure')} so far" if self.figures else "drawing"

    def shown(self) -> Markup | None:
        """Return the section as HTML, whole or begun; None before its tables are known."""
        if self.section is not None or self.begun is None:
            return self.html
        return part("section_of", self.begun, False)

    @property
    def version(self) -> str:
        """A text that changes with everything that is new to see."""
        return f"{self.times}.{len(self.figures)}.{self.begun is not None}.{self.ready}"


class Drawings:
    """The sections that browsers show. A section is first drawn at once, and again only after a rest.

    Args:
        share: the most that drawing again takes of one core.
    """

    def __init__(self, share: float = 0.1) -> None:
        self._share = share
        self._drawings: dict[str, Drawing] = {}
        self._thread = ThreadPoolExecutor(1, "drawings")
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._is_drawing = False
        self.rests_until = 0.0

    def of(self, name: str, planned: PlannedSection) -> Drawing:
        """Return the last drawing of a section, and begin to draw it if it is new or its runs have changed."""
        with self._lock:
            drawing = self._drawings.pop(name, None) or Drawing(planned, _mark(planned))
            self._drawings[name] = drawing  # the last of those that are kept
            if drawing.planned is not planned:
                drawing.planned, drawing.mark = planned, _mark(planned)
            for other in list(self._drawings)[:-_MOST_KEPT]:
                del self._drawings[other]
            rests = drawing.drawn is not None and time.monotonic() < self.rests_until
            if drawing.drawn != drawing.mark and not (self._is_drawing or rests or self._stop.is_set()):
                self._is_drawing = True
                self._thread.submit(self._draw, drawing)
        return drawing

    def close(self) -> None:
        """Stop drawing after the current figure."""
        self._stop.set()
        self._thread.shutdown(cancel_futures=True)

    def _draw(self, drawing: Drawing) -> None:
        began, mark = time.thread_time(), drawing.mark
        waits = drawing.section is None and len(drawing.planned.experiment.cells) <= _MOST_WAITING
        drawing.files = ScreenFiles(stop=self._stop, waits=waits)
        try:
            section = drawing.planned.draw(drawing.files, None)
            tables = (replace(it, links=("",) * len(it.links)) for it in section.tables)
            section = replace(section, runs=(), tables=tuple(tables))
            if waits:
                section = self._with_figures(drawing, section)
            drawing.html, drawing.section, drawing.problem = part("section_of", section, False), section, ""
        except Stopped:
            return
        except Exception as error:  # a store is untrusted input, and later drawings must go on
            logging.getLogger(__name__).exception("the section on %s", drawing.planned.experiment.name)
            drawing.problem = f"This section cannot be drawn: {reason(error)}"
        drawing.drawn, drawing.times = mark, drawing.times + 1
        drawing.begun = None
        drawing.files = ScreenFiles()
        self.rests_until = time.monotonic() + (time.thread_time() - began) * (1 / self._share - 1)
        self._is_drawing = False

    def _with_figures(self, drawing: Drawing, section: Section) -> Section:
        """Draw the figures that wait, and show each one at once."""
        pictures = {item.name: item.undrawn() for item in drawing.files.waiting}
        drawing.begun, drawing.ready = section, 0
        for item in drawing.files.waiting:
            pictures[item.name] = drawing.files.draw(item)
            drawing.begun = with_pictures(section, pictures)
            drawing.ready += 1
        return with_pictures(section, pictures)


def _mark(planned: PlannedSection) -> int:
    """Return a number that changes when a run of a section or of its references ends, or a trial."""
    experiments = {id(it): it for it in (planned.experiment, *(r.experiment for r in planned.references))}.values()
    frames = [it.runs[[name for name in _COLUMNS if name in it.runs]].astype(str) for it in experiments]
    trials = tuple((it.number, it.state) for it in planned.study.trials) if planned.study is not None else ()
    return hash((trials, *(int(pd.util.hash_pandas_object(it, index=False).sum()) for it in frames)))
