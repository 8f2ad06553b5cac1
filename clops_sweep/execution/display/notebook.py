"""The progress of a sweep in a notebook: a bar that is drawn in place."""

from __future__ import annotations

import time
import uuid
from html import escape

_SECONDS_BETWEEN_DRAWINGS = 0.5


class NotebookBar:
    """A progress bar with lines of text, as one output of a notebook's cell.

    It is an HTML `<progress>`, so it needs no widgets and stays in the saved notebook.
    """

    def __init__(self) -> None:
        self._id = ""
        self._drawn_at = 0.0

    def begin(self) -> None:
        """Start a new bar, as a further output of the cell."""
        self._id = ""

    def draw(self, done: int, total: int, lines: list[str], *, soon: bool = False) -> None:
        """Draw the bar anew.

        Args:
            done: number of runs that have ended.
            total: number of runs.
            lines: what is written below the bar.
            soon: whether the drawing may be left out if the last one was just before.
        """
        from IPython.display import display, update_display

        now = time.monotonic()
        if soon and self._id and now - self._drawn_at < _SECONDS_BETWEEN_DRAWINGS:
            return
        self._drawn_at = now
        page = {"text/html": _html(done, total, lines), "text/plain": "\n".join([f"{done}/{total}", *lines])}
        if self._id:
            update_display(page, display_id=self._id, raw=True)
            return
        self._id = uuid.uuid4().hex
        display(page, display_id=self._id, raw=True)


def _html(done: int, total: int, lines: list[str]) -> str:
    bar = f'<progress value="{done}" max="{total}" style="width: 20em"></progress> {done}/{total}'
    return "<br>".join([bar, *map(escape, lines)])
