"""The line about a slow start."""

from __future__ import annotations

import time
from typing import Any, cast

from clops_sweep.execution.computing.on_ray import reminded
from clops_sweep.execution.display.live import Display


class Lines:
    """A display that keeps what it shows."""

    interrupted = False

    def __init__(self) -> None:
        self.shown: list[str] = []

    def starting(self, what: str) -> None:
        self.shown.append(what)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not shown at a start")


def test_a_slow_start_says_how_long_it_has_taken_and_what_else_can_be_done() -> None:
    lines = Lines()
    with reminded(cast(Display, lines), "starting Ray (about 8 s)", seconds=0.02):
        deadline = time.monotonic() + 20
        while len(lines.shown) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    shown = list(lines.shown)
    assert shown[0] == "starting Ray (about 8 s)"
    assert shown[1].startswith("starting Ray (about 8 s): 0 s so far, as on a busy machine; ")
    assert "Ctrl-C stops" in shown[2]
    time.sleep(0.1)
    assert lines.shown == shown, "nothing after the start"


def test_a_step_that_ends_before_the_block_is_not_shown_any_more() -> None:
    """As the start of workers, which ends when the first of them starts a job."""
    lines = Lines()
    with reminded(cast(Display, lines), "starting workers", seconds=0.02, has_ended=lambda: len(lines.shown) > 1):
        time.sleep(0.3)
    first, second = lines.shown
    assert first == "starting workers"
    assert second.startswith("starting workers: 0 s so far")
