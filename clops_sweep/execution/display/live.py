"""The display of a running sweep: live on a terminal, a bar in a notebook, one line per finished run elsewhere."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TextIO, assert_never, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from clops_sweep.errors import several
from clops_sweep.execution.display.best_cell import BestCell
from clops_sweep.execution.display.console import nearby, own_output
from clops_sweep.execution.display.display_lines import WIDTH, at, ended, fitted, name_of, resumed, time_left
from clops_sweep.execution.display.notebook import NotebookBar
from clops_sweep.execution.display.terminal import Lenient
from clops_sweep.execution.display.time_left import TimeLeft
from clops_sweep.execution.reports import (
    Failed,
    Finished,
    FoundFinished,
    Paused,
    Report,
    Retrying,
    Running,
    Unrecorded,
)
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.events import Progress as RunProgress
from clops_sweep.experiment.metrics import columns_behind
from clops_sweep.experiment.spaces.run_names import RunName

if TYPE_CHECKING:
    from clops_sweep.execution.jobs import Job

_SECONDS_BETWEEN_REFRESHES = 0.25
_RUNNING_SHOWN = 12
_PADDING, _WIDEST_PROGRESS = 2, len("task 10/12, epoch 40/40")
_INTERRUPTS = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1") if hasattr(signal, name)
)
"""Ctrl-C; the time limit of a batch system; a closed terminal; Slurm before preemption. Windows has only two."""


Results = Callable[[], Iterable[tuple[RunName, RunConfig, Mapping[str, float]]]]
"""Name, config and headline metrics of each run; the first metric ranks runs."""


class Display(Protocol):
    """Shows the progress of a sweep, and tells when the user wants to stop it.

    Attributes:
        interrupted: whether the user wants to stop.
        stops_in_order: whether the sweep checks `interrupted`; if not, an interrupt ends it at once.
    """

    interrupted: bool
    stops_in_order: bool

    def begin(self, runs: Sequence[RunConfig], log: Path, of: str = "", later: Sequence[RunConfig] = ()) -> None:
        """Start with a number of runs, perhaps `of` a search, before those of later steps; output goes to `log`."""

    def finished_before(self, results: Results) -> None:
        """Add runs that earlier launches finished, which count for the best cell."""

    def starting(self, what: str) -> None:
        """Show a slow step before the first job starts."""

    def started(self, job: Job) -> None:
        """Show that a worker started a job."""

    def taken_back(self, job: Job) -> None:
        """Show that a worker gave a job back before its end; it is queued again."""

    def report(self, job: Job, report: Report) -> None:
        """Show a report of a job: progress, its end, or the death of its worker."""

    def trial_ended(self, text: str, left_out: Collection[str] = (), *, best: bool = False) -> None:
        """Show the end of a trial, which may be the best so far; some of its runs may be skipped."""

    def left_out(self, run_ids: Collection[str]) -> None:
        """Count runs that are not computed to their end, because their trial has ended."""

    def not_stored(self, runs: int) -> None:
        """Show how many of the runs that are over are not in the store yet."""

    def stopping(self) -> None:
        """Show that the sweep is stopping at the user's request."""

    def warn(self, text: str) -> None:
        """Show a warning while the sweep continues."""

    def unfinished(self) -> list[Job]:
        """The jobs that have been begun and have not ended."""


class SweepDisplay:
    """Counts and shows the progress; a context manager around the sweep.

    It writes to a duplicate of standard output, which remains the terminal while the sweep redirects its own. An
    interrupt (Ctrl-C or SIGTERM) is only recorded here, since it may arrive while a line is being written; the sweep
    checks for it and stops its trials. A second one stops everything at once.

    Args:
        status: the command that explains failures.
        stop_at: when to stop as on an interrupt, in seconds of `time.monotonic`; None for never.
    """

    def __init__(self, status: str = "clops-sweep status", stop_at: float | None = None) -> None:
        self._status, self._stop_at = status, math.inf if stop_at is None else stop_at
        self._output = own_output()
        self.console = Console(
            file=cast(TextIO, Lenient(self._output)), force_terminal=sys.stdout.isatty(), highlight=False, markup=False
        )
        self._is_live = self.console.is_terminal and not self.console.is_dumb_terminal
        self._notebook = NotebookBar() if self.console.is_jupyter else None
        self._shows_bar = self._is_live or self._notebook is not None
        self._interrupted = self.stops_in_order = False
        self._pending = self._finished = self._failed = self._left_out = self._not_stored = 0
        self._doing = ""
        self._of_search = False
        self._columns_named = False
        self._time_left: TimeLeft | None = None
        self._ends_at: float | None = None
        self._workers = 0
        self._running: dict[str, tuple[Job, RunProgress | None]] = {}
        self._unfinished: dict[str, Job] = {}
        self._best = BestCell()
        self._best_trial = ""
        self._met: set[str] = set()
        """Jobs with progress in this sweep; when they resume from a checkpoint, no line is printed."""
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(bar_width=None), MofNCompleteColumn(), expand=True
        )
        self._bar = self._progress.add_task("runs", total=None)
        self._live = Live(
            get_renderable=self._render,
            console=self.console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            transient=True,
        )
        self._printing, self._ended = threading.RLock(), threading.Event()
        """Without this lock a refresh may move the cursor while a printed line replaces the display, and erase it."""
        self._thread = threading.Thread(target=self._keep_fresh, name="display", daemon=True)

    def __enter__(self) -> Self:
        if self._is_live:
            self._live.start()
            self._thread.start()
        here = threading.current_thread() is threading.main_thread()  # other threads may not handle signals
        noticed = [number for number in _INTERRUPTS if here and (number.name != "SIGHUP" or not _ignored(number))]
        self._previous = {number: signal.signal(number, self._on_interrupt) for number in noticed}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._ended.set()
        if self._is_live:
            self._thread.join()
            self._live.stop()
            if not self._of_search and (best := str(self._best)):
                self._print(f"best: {best}")
        self._draw_in_notebook()
        if self._output is not sys.stdout:
            with contextlib.suppress(OSError):
                self._output.close()

    @property
    def interrupted(self) -> bool:
        """Whether the user wants to stop, or the time is up."""
        return self._interrupted or time.monotonic() >= self._stop_at

    @interrupted.setter
    def interrupted(self, value: bool) -> None:
        self._interrupted = value

    def begin(self, runs: Sequence[RunConfig], log: Path, of: str = "", later: Sequence[RunConfig] = ()) -> None:
        """Start with a number of pending runs; print it and the path of the log.

        One count goes over all steps of a launch, such as the searches of several methods.

        Args:
            runs: the runs of this step.
            log: the file with the output of runs and Ray.
            of: words about the search that has them; empty without one.
            later: the runs that later steps of the launch may have.
        """
        self._draw_in_notebook()  # the bar of an earlier step
        is_first = not self._pending
        self._of_search = bool(of)
        announced = self._pending
        self._pending = self._done + len(runs) + len(later)
        self._best, self._best_trial = BestCell(), ""
        self._time_left = TimeLeft((*runs, *later), self._time_left) if self._shows_bar else None
        if self._notebook and is_first:
            self._notebook.begin()
        self._progress.update(self._bar, total=self._pending, completed=self._done)
        to_do = f"{of}{several(len(runs), 'run')} to do"
        if self._pending > len(runs):
            to_do += f", of {'up to ' if later else ''}{self._pending} in this launch"
            if fewer := max(0, announced - self._pending):
                to_do += f" ({fewer} fewer than announced: stored already, or equal to others)"
        if self._is_live:
            self._print(to_do)
            self._print(f"log: {nearby(log)}", wrapped=False)
        else:
            self._print(f"{to_do}; log: {log}")

    def finished_before(self, results: Results) -> None:
        """Add runs that earlier launches finished to the best cell. Without a bar, none is shown or read."""
        for name, config, values in results() if self._shows_bar else ():
            self._best.add(name, config, values)

    def starting(self, what: str) -> None:
        """Show a slow step before the first job starts."""
        self._doing = what
        if not self._is_live:
            self._print(what)

    def started(self, job: Job) -> None:
        """Show that a worker started a job."""
        self._doing = self._doing if self.interrupted else ""
        self._running[job.run_id] = (job, None)
        self._unfinished.setdefault(job.run_id, job)
        self._workers = max(self._workers, len(self._running))
        self._draw_in_notebook(soon=True)

    def taken_back(self, job: Job) -> None:
        """Show that a worker gave a job back before its end."""
        self._running.pop(job.run_id, None)
        self._draw_in_notebook(soon=True)

    def report(self, job: Job, report: Report) -> None:
        """Show a report of a job."""
        match report:
            case Running(progress, is_resumed):
                if not is_resumed:
                    self._running[job.run_id] = (job, progress)
                elif job.run_id not in self._met:
                    self._print(resumed(job, progress))
                self._met.add(job.run_id)
                self._draw_in_notebook(soon=True)
                return
            case Retrying():
                self._running.pop(job.run_id, None)
                self._met.discard(job.run_id)
                return
            case Paused():  # further reports follow
                self._running.pop(job.run_id, None)
                self._met.add(job.run_id)
                return
            case Failed() | Unrecorded():
                self._failed += 1
                self._are_over([job.config])
            case FoundFinished():
                self._finished += 1
                self._are_over([job.config])
            case Finished(values, seconds):
                self._finished += 1
                self._best.add(name_of(job), job.config, values)
                self._are_over([job.config], seconds)
            case _:
                assert_never(report)
        self._running.pop(job.run_id, None)
        self._unfinished.pop(job.run_id, None)
        self._met.discard(job.run_id)
        self._progress.update(self._bar, completed=self._done)
        if not self._shows_bar:
            if isinstance(report, Finished):
                self._name_columns(report.values)
            count = f"[{self._done}/{self._pending}] "
            self._print(count + ended(job, report, self._status, WIDTH - len(count)))
        elif isinstance(report, Failed | Unrecorded):
            self._print(ended(job, report, self._status))
        self._draw_in_notebook(soon=True)

    def _name_columns(self, values: Mapping[str, float]) -> None:
        """Print once the columns of `runs` behind the scores of finished runs, where the words do not name them."""
        columns = columns_behind(values)
        if columns and not self._columns_named:
            self._columns_named = True
            self._print(columns)

    def trial_ended(self, text: str, left_out: Collection[str] = (), *, best: bool = False) -> None:
        """Show the end of a trial of a search."""
        self.left_out(left_out)
        if best:
            self._best_trial = text
        self._print(text)

    def left_out(self, run_ids: Collection[str]) -> None:
        """Count runs that are not computed to their end."""
        self._left_out += len(run_ids)
        for run_id in run_ids:
            self._unfinished.pop(run_id, None)
            self._running.pop(run_id, None)
            self._met.discard(run_id)
        self._are_over([None] * len(run_ids))
        self._progress.update(self._bar, completed=self._done)

    def not_stored(self, runs: int) -> None:
        """Show how many of the runs that are over are not in the store yet."""
        self._not_stored = runs

    def stopping(self) -> None:
        """Show that the sweep is stopping; from now on an interrupt stops it at once, also if the time was up."""
        self._interrupted = True
        if self._doing != "stopping":
            self._doing = "stopping"
            self._print("stopping: running trials are being checkpointed (Ctrl-C again stops at once)")

    def warn(self, text: str) -> None:
        """Print a warning on a separate line."""
        self._print(text)

    def unfinished(self) -> list[Job]:
        """The jobs that have been begun and have not ended."""
        return list(self._unfinished.values())

    def refresh(self) -> None:
        """Draw the live display anew."""
        with self._printing:
            self._live.refresh()

    def _keep_fresh(self) -> None:
        while not self._ended.wait(_SECONDS_BETWEEN_REFRESHES):
            self.refresh()

    def _print(self, text: str, *, wrapped: bool = True) -> None:
        """Print a line, wrapped on a terminal."""
        with self._printing:
            self.console.print(text, soft_wrap=not (wrapped and self._is_live))

    def _on_interrupt(self, number: int, frame: Any) -> None:
        del number, frame
        at_once = self._interrupted or not self.stops_in_order
        self._interrupted = True  # Ray may swallow the exception while the sweep starts
        if at_once:
            raise KeyboardInterrupt

    def _are_over(self, configs: Sequence[RunConfig | None], seconds: float | None = None) -> None:
        """Expect the end of the sweep anew after runs have ended; `seconds` is the duration of each, if it is known."""
        if self._time_left:
            self._time_left.ended(configs, seconds)
            left = self._time_left.seconds(self._workers)
            self._ends_at = None if left is None else time.monotonic() + left

    @property
    def counts(self) -> tuple[int, int]:
        """The number of runs that are over, and of all."""
        return self._done, self._pending

    @property
    def _done(self) -> int:
        return self._finished + self._failed + self._left_out

    def _render(self) -> RenderableType:
        if not self._pending:  # before `begin`
            return ""
        jobs = list(self._running.values())
        lines: list[RenderableType] = [self._progress, self._summary()]
        if best := self._best_so_far():
            lines.append(best)
        table = Table(box=None, padding=(0, _PADDING, 0, 0), show_header=False, expand=True)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, min_width=_WIDEST_PROGRESS)
        of_jobs = [f"seed {job.config.seed}" for job, _ in jobs[:_RUNNING_SHOWN]]
        room = self.console.width - max(map(len, of_jobs), default=0) - _WIDEST_PROGRESS - 3 * _PADDING
        names = fitted([name_of(job) for job, _ in jobs[:_RUNNING_SHOWN]], room)
        for name, of_job, (_, progress) in zip(names, of_jobs, jobs, strict=False):
            table.add_row(Text(name), of_job, at(progress) if progress else "starting")
        if len(jobs) > _RUNNING_SHOWN:
            table.add_row(f"and {len(jobs) - _RUNNING_SHOWN} more", "", "")
        return Group(*lines, table, "")  # leaves room for the terminal's echo of Ctrl-C behind the last line

    def _draw_in_notebook(self, *, soon: bool = False) -> None:
        """Draw the bar of a notebook, unless the sweep has not begun."""
        if self._notebook and self._pending:
            texts = [self._summary(), self._best_so_far()]
            self._notebook.draw(self._done, self._pending, [text.plain for text in texts if text], soon=soon)

    def _best_so_far(self) -> Text | None:
        best = self._best_trial or str(self._best)
        return Text(f"best so far: {best}") if best else None

    def _summary(self) -> Text:
        """Return a line with the numbers of runs by state, and the time left."""
        running = len(self._running)
        waits = f" ({self._not_stored} not stored yet)" if self._not_stored and not self._ended.is_set() else ""
        summary = Text(f"{self._finished} finished{waits}, {running} running, ", overflow="ellipsis", no_wrap=True)
        summary.append(f"{self._failed} failed", style="bold red" if self._failed else "")
        summary.append(f", {max(0, self._pending - self._done - running)} pending")
        if self._ended.is_set():
            return summary
        if self._doing:
            summary.append(f"; {self._doing}")
        elif 0 < self._pending <= self._done:
            summary.append("; finishing")
        elif self._ends_at is not None:
            summary.append(f"; {time_left(self._ends_at - time.monotonic())}")
        return summary


def _ignored(number: signal.Signals) -> bool:
    """Return whether the user ignores the signal, as `nohup` does."""
    return signal.getsignal(number) == signal.SIG_IGN
