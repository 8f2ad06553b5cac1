"""One case: a command or a call with bad input, run in a forked process of its own, and whether it was answered.

An answer is exit status 2, or `UsageError` from Python, with one sentence; no traceback; no worker started; nothing
written. A case may name further exit statuses that are an answer, where what is odd may also do no harm.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clops_sweep.cli.command import main
from clops_sweep.errors import UsageError

PRELOADED = (
    *(
        "clops_sweep.analysis.report.write",
        "clops_sweep.analysis.claims.verdicts",
        "clops_sweep.cli.commands",
        "clops_sweep.learning.run",
    ),
    *(
        "clops_sweep.search.feed",
        "clops_sweep.search.study",
        "clops_sweep.execution.rerun",
        "clops_sweep.execution.tune",
        "wfdb",
    ),
)
"""What most cases would import, each in its own process."""

LONGEST_SENTENCE = 600
SECONDS = 30.0
MOST_MEMORY = 6 * 2**30
WORKER_STARTED = 98

Make = Callable[[Path], object]
"""Makes at a path what is no plain file of text."""


@dataclass(frozen=True)
class Case:
    """Something bad.

    Attributes:
        name: what is bad, for the list.
        command: the arguments of `clops-sweep`.
        call: in place of a command, a Python function.
        files: what lies in the case's folder, beside what is in every such folder.
        environment: variables of the process.
        fine: the exit statuses that are an answer.
        process: whether the command is started as a process of its own, with an interpreter of its own.
        before: called in that process before Python starts.
        secret: what no line may repeat.
        may_write: folders that may change.
    """

    name: str
    command: Sequence[str] = ()
    call: Callable[[], object] | None = None
    files: Mapping[str, str | bytes | Make] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    fine: tuple[int, ...] = (2,)
    process: bool = False
    before: Callable[[], None] | None = None
    secret: str = ""
    may_write: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """What became of a case: `problem` is empty where it was answered."""

    name: str
    problem: str
    said: str = ""


@dataclass
class _Running:
    case: Case
    place: Path
    before: dict[str, Any]
    began: float


class Engine:
    """Runs cases, several at a time, each in a folder of its own that is a copy of the template.

    Args:
        template: a folder with what every case finds in its own.
        prepared: the folder of prepared data, which cases see through links.
        jobs: how many processes at a time.
    """

    def __init__(self, template: Path, prepared: Path, jobs: int = 2) -> None:
        self._template, self._prepared, self._jobs = template, prepared, jobs
        self._running: dict[int, _Running] = {}
        for module in PRELOADED:
            importlib.import_module(module)

    def results(self, cases: Iterable[Case]) -> Iterator[Result]:
        """What becomes of each case, in the order in which they end."""
        waiting = iter(cases)
        more = True
        try:
            while more or self._running:
                while more and len(self._running) < self._jobs:
                    case = next(waiting, None)
                    if case is None:
                        more = False
                    else:
                        self._start(case)
                yield from self._ended()
        finally:
            for pid in self._running:
                _kill(pid)

    def _start(self, case: Case) -> None:
        place = Path(tempfile.mkdtemp(prefix="hostile-"))
        shutil.copytree(self._template, place, dirs_exist_ok=True, symlinks=True)
        (place / "prepared").mkdir(exist_ok=True)
        for folder in self._prepared.iterdir():
            (place / "prepared" / folder.name).symlink_to(folder)
        for name, content in sorted(case.files.items(), key=lambda it: it[0].count("/")):  # folders first
            path = place / name
            if callable(content):
                content(path)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        before = _tree(place, case)
        pid = os.fork()
        if pid == 0:
            _run(case, place)
        self._running[pid] = _Running(case, place, before, time.monotonic())

    def _ended(self) -> Iterator[Result]:
        time.sleep(0.005)
        for pid, running in list(self._running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            late = time.monotonic() - running.began > SECONDS
            if not ended and not late:
                continue
            del self._running[pid]
            _kill(pid)  # and what it left behind
            if not ended:
                os.waitpid(pid, 0)
            code = None if not ended else os.waitstatus_to_exitcode(status)
            output, errors = (_text(running.place / f"..{name}") for name in ("out", "err"))
            try:
                changed = _difference(running.before, _tree(running.place, running.case))
                yield judged(running.case, code, output, errors, changed)
            finally:
                for stream in ("out", "err"):
                    Path(f"{running.place}..{stream}").unlink(missing_ok=True)
                shutil.rmtree(running.place, ignore_errors=True)


def _text(path: Path) -> str:
    return Path(f"{path.parent}{path.name}").read_text("utf-8", "replace")


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _tree(place: Path, case: Case) -> dict[str, Any]:
    """Every path below a folder, with what tells whether it has changed."""
    found: dict[str, Any] = {}
    for folder, folders, files in os.walk(place):
        for name in (*folders, *files):
            path = Path(folder, name)
            relative = path.relative_to(place)
            if "__pycache__" in relative.parts or any(str(relative).startswith(it) for it in case.may_write):
                continue
            state = path.lstat()
            found[str(relative)] = (state.st_mode, state.st_ino, state.st_size if name in files else 0)
    return found


def _difference(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _run(case: Case, place: Path) -> None:
    """In the child: never returns."""
    status = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for handle, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{place}..{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), handle)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(place)
        status = _executed(case, place) if case.process else _in_this_process(case, place)
    except BaseException:
        os.write(2, traceback.format_exc().encode("utf-8", "backslashreplace"))
    finally:
        os._exit(status)


def environment_of(case: Case, place: Path) -> dict[str, str]:
    """The variables of a case's process."""
    left_out = ("CLOPS_DATA_ROOT", "PYTEST_CURRENT_TEST")
    common = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**common, "CLOPS_PREPARED_ROOT": str(place / "prepared"), "COLUMNS": "200", **case.environment}


def _executed(case: Case, place: Path) -> int:
    script = str(Path(sys.executable).with_name("clops-sweep"))
    environment = {name: value for name, value in environment_of(case, place).items() if value}
    done = subprocess.run([script, *case.command], env=environment, preexec_fn=case.before, check=False)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def _in_this_process(case: Case, place: Path) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    os.environ.clear()
    os.environ.update(environment_of(case, place))
    sys.stdout, sys.stderr = (
        open(handle, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False) for handle in (1, 2)
    )
    sys.path.insert(0, str(place))
    sys.addaudithook(_no_worker)
    try:
        if case.call is None:
            main(list(case.command))
            return 0
        answer = case.call()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
    except UsageError as error:
        os.write(2, f"clops-sweep: {error}\n".encode("utf-8", "backslashreplace"))
        return 2
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the case may have closed or replaced it
                stream.flush()
    print(f"it was taken: {answer!r:.200}")
    return 0


def _no_worker(event: str, arguments: tuple[Any, ...]) -> None:
    """Ends the process where it is about to start Ray's own processes."""
    if event == "subprocess.Popen" and any(it in str(arguments[1]) for it in ("gcs_server", "raylet", "ray/core")):
        os._exit(WORKER_STARTED)


def judged(case: Case, status: int | None, output: str, errors: str, changed: Sequence[str] = ()) -> Result:
    """Whether a case was answered."""
    return Result(case.name, _problem(case, status, output, errors, changed), _last_line(errors) or _last_line(output))


def _problem(case: Case, status: int | None, output: str, errors: str, changed: Sequence[str]) -> str:
    everything = output + errors
    if case.secret and case.secret in everything:
        return f"a secret is repeated: {_last_line(everything)}"
    if status is None:
        return f"no answer within {SECONDS:g} s"
    if status == WORKER_STARTED and status not in case.fine:
        return "a worker was about to start"
    if "Traceback (most recent call last)" in everything or "Exception ignored" in everything:
        return f"exit status {status} with a traceback: {_last_line(everything)}"
    if status not in case.fine:
        return f"exit status {status}: {_last_line(errors) or _last_line(output)}"
    if status != 2:
        return ""
    lines = errors.splitlines()
    if len(lines) != 1:
        return f"{len(lines)} lines on standard error: {errors[:200]!r}"
    sentence = lines[0].removeprefix("clops-sweep: ")
    if sentence == lines[0]:
        return f"no sentence of clops-sweep: {lines[0][:200]}"
    if not sentence.strip() or not (sentence.isprintable() or case.call):
        return f"a sentence that cannot be printed: {sentence!r:.200}"
    if len(sentence) >= LONGEST_SENTENCE:
        return f"a sentence of {len(sentence)} characters: {sentence[:200]}..."
    if changed:
        return f"wrote {', '.join(changed[:3])}: {sentence}"
    return ""


def _last_line(text: str) -> str:
    return (text.rstrip().splitlines() or [""])[-1][:300]
