"""What a running sweep shows: one live display on a terminal, one plain line a finished run elsewhere."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Protocol, Self, TextIO, assert_never, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.search_space import in_words
from clops_sweep.sweep.reports import (
    Failed,
    Finished,
    FoundFinished,
    Noted,
    Paused,
    Report,
    Retrying,
    Running,
    Unrecorded,
    WorkerDied,
)
from clops_sweep.sweep.terminal import Lenient

if TYPE_CHECKING:
    from clops_sweep.sweep.jobs import Job

_RUNNING_SHOWN = 12
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; a batch system whose time is up, a stopped job or container; a terminal that was closed or has gone."""


class Display(Protocol):
    """Shows what happens in a sweep, and says when the user wants it to stop.

    Attributes:
        interrupted: the user has asked to stop.
        stops_in_order: whether the sweep is going to look at `interrupted`; if not, an interrupt ends it at once.
    """

    interrupted: bool
    stops_in_order: bool

    def begin(self, pending: int, log: Path) -> None:
        """The sweep starts, with so many runs to do; Ray's own output goes to `log`."""

    def started(self, job: Job) -> None:
        """A worker has got a job."""

    def report(self, job: Job, report: Report | WorkerDied) -> None:
        """A job has reported: progress, or how it ended; or its worker has died."""

    def trial_ended(self, text: str, left_out: int = 0, *, best: bool = False) -> None:
        """A trial of a search has ended, and so many of its runs will not be run; it may be the best so far."""

    def stopping(self) -> None:
        """The sweep has seen that the user wants it to stop, and is stopping."""

    def warn(self, text: str) -> None:
        """Something that the user has to know while the sweep goes on."""


class SweepDisplay:
    """Counts what happens and shows it; a context manager around the sweep.

    Writes to a duplicate of the real standard output, which stays the terminal while the sweep redirects its own. An
    interrupt (Ctrl-C, or SIGTERM) is only noted here: it may come at any moment, also in the middle of a line that is
    being written, and it is the sweep that stops its trials when it next looks. A second one stops everything at once.

    Args:
        varying: config fields that tell the runs apart; a run is called by its values of these.
    """

    def __init__(self, varying: list[str]) -> None:
        self._varying = varying
        self._output = _own_output()
        self._stream = Lenient(self._output)
        self.console = Console(
            file=cast(TextIO, self._stream), force_terminal=sys.stdout.isatty() or None, soft_wrap=True
        )
        self.interrupted = self.stops_in_order = False
        self._pending = self._finished = self._failed = self._left_out = 0
        self._began = time.monotonic()
        self._running: dict[tuple[str, ...], tuple[Job, Running | None]] = {}
        self._best: tuple[float, str] | None = None
        self._best_trial: str | None = None
        self._noted: set[str] = set()
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn(), expand=True
        )
        self._bar = self._progress.add_task("runs", total=None)
        self._live = Live(
            get_renderable=self._render,
            console=self.console,
            refresh_per_second=4,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        here = threading.current_thread() is threading.main_thread()  # elsewhere nobody may handle signals
        noticed = [number for number in _INTERRUPTS if here and (number != signal.SIGHUP or not _ignored(number))]
        self._previous = {number: signal.signal(number, self._on_interrupt) for number in noticed}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        if self.console.is_terminal:
            self._live.stop()
        if self._output is not sys.stdout:
            with contextlib.suppress(OSError):
                self._output.close()

    def begin(self, pending: int, log: Path) -> None:
        """The sweep starts."""
        self._pending = pending
        self._began = time.monotonic()
        self._progress.update(self._bar, total=pending)
        self.console.print(f"{pending} runs to do; Ray's own output goes to {log}", highlight=False)

    def started(self, job: Job) -> None:
        """A trial has started."""
        self._running[job.run_ids] = (job, None)

    def report(self, job: Job, report: Report | WorkerDied) -> None:
        """A job has reported."""
        runs, name = len(job.run_ids), self._name_of_all(job.configs)
        match report:
            case Running():
                self._running[job.run_ids] = (job, report)
                return
            case Retrying():
                self._running[job.run_ids] = (job, None)
                return
            case Noted(text, about):
                if not about or about not in self._noted:
                    self.warn(text)
                self._noted.add(about)
                return
            case WorkerDied() | Paused():  # it will be run again, or be said to have failed; or more is to come of it
                self._running.pop(job.run_ids, None)
                return
            case Failed(run_ids):
                self._failed += len(run_ids)
                if job.until is None:
                    self._finished += runs - len(run_ids)
                some = f"{len(run_ids)} of " if len(run_ids) < runs else ""
                line = f"failed    {some}{name}  (clops-sweep status shows why)"
            case Unrecorded(error):
                self._failed += runs
                line = f"not recorded  {name}: {error}"
                if self.console.is_terminal:
                    self.console.print(line, highlight=False, markup=False)
            case FoundFinished(elsewhere):
                self._finished += runs
                line = f"finished  {name}, {'by another sweep on this store' if elsewhere else 'in the store already'}"
            case Finished(auc, bwt):
                self._finished += runs
                if self._best is None or auc > self._best[0]:
                    self._best = (auc, name)
                line = f"finished  {name}: AUC {auc:.3f}, BWT {bwt:+.3f}"
            case _:
                assert_never(report)
        self._running.pop(job.run_ids, None)
        self._progress.update(self._bar, completed=self._done)
        if not self.console.is_terminal:
            self.console.print(f"[{self._done}/{self._pending}] {line}", highlight=False, markup=False)

    def trial_ended(self, text: str, left_out: int = 0, *, best: bool = False) -> None:
        """A trial of a search has ended."""
        self._left_out += left_out
        if best:
            self._best_trial = text
        self._progress.update(self._bar, completed=self._done)
        self.console.print(text, highlight=False, markup=False)

    def stopping(self) -> None:
        """The sweep is stopping."""
        self.console.print("stopping: running trials are being checkpointed (Ctrl-C again stops at once)")

    def warn(self, text: str) -> None:
        """Says something on a line of its own."""
        self.console.print(text, highlight=False, markup=False)

    def _on_interrupt(self, number: int, frame: Any) -> None:
        del number, frame
        at_once = self.interrupted or not self.stops_in_order
        self.interrupted = True  # also for a sweep that swallows the exception while it starts
        if at_once:
            raise KeyboardInterrupt

    @property
    def _done(self) -> int:
        return self._finished + self._failed + self._left_out

    def _name(self, config: RunConfig) -> str:
        values = {field: config.get(field) for field in self._varying}
        return in_words(values) or config.strategy

    def _name_of_all(self, configs: Sequence[RunConfig]) -> str:
        first, runs = configs[0], len(configs)
        if runs == 1:
            return f"{self._name(first)}, seed {first.seed}"
        if len({config.replace(seed=0) for config in configs}) == 1:
            return f"{self._name(first)}, {runs} seeds"
        return f"{self._name(first)}, seed {first.seed}, and {runs - 1} others in lockstep"

    def _render(self) -> RenderableType:
        done = self._done
        summary = Text(f"{self._finished} finished, {len(self._running)} running, ")
        summary.append(f"{self._failed} failed", style="bold red" if self._failed else "")
        summary.append(f", {max(0, self._pending - done - len(self._running))} pending")
        if done and done < self._pending:
            left = (time.monotonic() - self._began) / done * (self._pending - done)
            summary.append(f"; about {_duration(left)} left")
        lines: list[RenderableType] = [self._progress, summary]
        best = self._best_trial or (f"AUC {self._best[0]:.3f} ({self._best[1]})" if self._best else None)
        if best:
            lines.append(Text(f"best so far: {best}", overflow="ellipsis", no_wrap=True))
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, expand=True)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column(no_wrap=True, min_width=len("task 10/12, epoch 40/40"))
        for job, at in list(self._running.values())[:_RUNNING_SHOWN]:
            where = f"task {at.task}/{at.tasks}, epoch {at.epoch}/{at.epochs}" if at else "starting"
            table.add_row(f"seed {job.configs[0].seed}, {self._name(job.configs[0])}", where)
        if len(self._running) > _RUNNING_SHOWN:
            table.add_row(f"and {len(self._running) - _RUNNING_SHOWN} more", "")
        return Group(*lines, table)


def _own_output() -> IO[str]:
    """Where the display writes while what libraries print goes elsewhere: a duplicate of the real standard output.

    In a notebook standard output is an object that sends text to a page, and that is not redirected.
    """
    try:
        real = sys.stdout.fileno() == 1
    except (OSError, ValueError, AttributeError):  # io.UnsupportedOperation is both of the first
        real = False
    return os.fdopen(os.dup(1), "w", buffering=1) if real else sys.stdout


def _ignored(number: signal.Signals) -> bool:
    """Whether the user has asked for that, as `nohup` does."""
    return signal.getsignal(number) == signal.SIG_IGN


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
