"""The command as a process of its own that begins with all imported: it is forked from one that waits for that.

A start of Python that imports pandas, PyTorch and Matplotlib takes seconds of processor time, and the tests start
hundreds of commands. What is special about a command's own start and end is tested on the installed script.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

if __name__ == "__main__":  # a script, which finds what lies beside it
    import forked_worker
else:
    from tests.helpers import forked_worker

TAG = "CLOPS_TEST_TAG"

COMMANDS = (
    "clops_sweep.analysis.report.write",
    "clops_sweep.cli.command",
    "clops_sweep.cli.commands",
    "clops_sweep.learning.run",
    "clops_sweep.search.study",
    "clops_sweep.store.rerun",
    "few_records",
    "quick_fonts",
    *forked_worker.IMPORTED,
)
"""What commands import that start no sweep, and workers: all but Ray, which goes by the environment of its import."""

SWEEPS = (
    "clops_sweep.execution.driver",
    "clops_sweep.execution.feeding.search_feed",
    "clops_sweep.execution.computing.on_ray",
    "clops_sweep.execution.computing.tune",
    "ray.dag.compiled_dag_node",
)
"""What a launch imports beside that."""


def new_tag() -> str:
    """A name for what is started together; the processes have it in their environment."""
    return f"clops-sweep-test-{uuid.uuid4().hex}"


class Forked:
    """A command that runs, with what the tests use of `subprocess.Popen`.

    Attributes:
        pid: its id.
        stdout: what it prints, as it comes.
        stderr: the same of standard error.
        returncode: its exit status, or minus the signal that ended it; None until that is known.
    """

    def __init__(self, stdout: TextIO, stderr: TextIO, report: int) -> None:
        self.stdout, self.stderr = stdout, stderr
        self.returncode: int | None = None
        self._report = report
        self.pid = self._next_number()

    def _next_number(self) -> int:
        return int.from_bytes(os.read(self._report, 4), "little", signed=True)

    def poll(self) -> int | None:
        return self._ended(0)

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._report], [], [], seconds)[0]:
            self.returncode = self._next_number()
            os.close(self._report)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """The rest of what it prints, once it has ended."""
        found: dict[TextIO, str] = {}
        streams = [stream for stream in (self.stdout, self.stderr) if not stream.closed]
        readers = [threading.Thread(target=lambda it=it: found.update({it: it.read()}), daemon=True) for it in streams]
        for reader in readers:
            reader.start()
        if self._ended(timeout) is None:
            raise subprocess.TimeoutExpired("clops-sweep", timeout or 0)
        for reader in readers:
            reader.join(timeout)
        for stream in streams:
            stream.close()
        return found.get(self.stdout, ""), found.get(self.stderr, "")

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Preloaded:
    """A process that waits, with some modules imported, and starts commands.

    Attributes:
        environment: what it was started in.

    Args:
        environment: what it is started in; libraries that look at it when they are imported go by this one.
        modules: what is imported.
        base: one that has the most of it imported already, and that it is forked from.
    """

    def __init__(self, environment: Mapping[str, str], modules: Sequence[str], base: Preloaded | None = None) -> None:
        self.environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            if base is not None:
                base.ask({"commands": modules, "environment": dict(environment)}, theirs.fileno())
                return
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), *modules],
                env={**environment, TAG: new_tag()},
                cwd="/",
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def ask(self, request: Mapping[str, object], *handles: int) -> None:
        socket.send_fds(self._socket, [json.dumps(request).encode()], handles)

    def serve_workers(self, environment: Mapping[str, str]) -> None:
        """Forks a process that workers of a Ray are forked from; it ends when it is killed.

        Args:
            environment: that of their Ray: it names the socket at which workers are asked for, and has a tag.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(environment[forked_worker.PLACE])
            listening.listen(64)
            self.ask({"workers": True, "environment": dict(environment)}, listening.fileno())

    def start(
        self, folder: Path, environment: Mapping[str, str], *arguments: str, program: str | None = None
    ) -> Forked:
        """Starts a command, the first in a group of processes of its own, in a folder and an environment.

        Or a program in the place of the command, as `python -c` would: for tests in which it does not matter what is
        imported when it begins.
        """
        request = {
            "folder": str(folder), "environment": dict(environment), "arguments": arguments, "program": program,
        }  # fmt: skip
        (out, their_out), (errors, their_errors), (report, their_report) = os.pipe(), os.pipe(), os.pipe()
        self.ask(request, their_out, their_errors, their_report)
        for end in (their_out, their_errors, their_report):
            os.close(end)
        return Forked(open(out), open(errors), report)  # closed with what it prints

    def run(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *arguments: str,
        program: str | None = None,
        seconds: float = 280,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end, or a program in its place, for at most so many seconds."""
        process = self.start(folder, environment, *arguments, program=program)
        output, errors = process.communicate(timeout=seconds)
        return subprocess.CompletedProcess(arguments, process.returncode or 0, output, errors)

    def close(self) -> None:
        """Ends it; commands that run go on."""
        self._socket.close()
        if self._process is not None:
            self._process.wait()


# --- in the process that waits ----------------------------------------------------------------------------------------


def _next_request(requests: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Waits for requests, and returns each in a process of its own; None at the end of all."""
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, handles, _, _ = socket.recv_fds(requests, 2**20, 3)
        if not message:
            return None
        if os.fork() == 0:
            requests.close()
            return json.loads(message), handles
        for handle in handles:
            os.close(handle)


def _load(modules: Sequence[str]) -> dict[str, str]:
    """Imports modules, and tells which environment variables they have made."""
    before = set(os.environ)
    for name in modules:
        importlib.import_module(name)
    return {name: value for name, value in os.environ.items() if name not in before}


def _begin(request: dict[str, Any], settings: Mapping[str, str], out: int, errors: int, report: int) -> list[str]:
    """Forks once more: the command goes on, and this process tells how it has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    command = os.fork()
    if command:
        os.close(out)
        os.close(errors)
        os.write(report, command.to_bytes(4, "little"))
        status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        os.write(report, status.to_bytes(4, "little", signed=True))
        os._exit(0)
    os.close(report)
    os.setsid()
    for ours, handle in ((1, out), (2, errors)):
        os.dup2(handle, ours)
        os.close(handle)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update({**settings, **request["environment"]})
    tempfile.tempdir = None
    return list(request["arguments"])


def _serve_workers(listening: socket.socket, tag: str) -> None:
    """Forks workers, each with the tag of its launch; those that have none yet have that of their Ray."""
    _show_tag(tag)
    os.environ[TAG] = tag
    forked_worker.serve(listening, begin=lambda environment: _show_tag(environment.get(TAG, "")))


def _show_tag(tag: str) -> None:
    """Writes a tag over the one that this process has been started with, in what others see of its environment."""
    before = os.environ[TAG].encode()
    with open("/proc/self/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    first, last = int(fields[47]), int(fields[48])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(first)
        place = memory.read(last - first).find(TAG.encode() + b"=" + before)
        if place >= 0 and len(tag) == len(before):
            memory.seek(first + place + len(TAG) + 1)
            memory.write(tag.encode())


def _run_command(arguments: list[str]) -> None:
    from clops_sweep.cli.command import main

    sys.argv = [str(Path(sys.executable).with_name("clops-sweep")), *arguments]
    sys.path[0] = os.path.dirname(sys.argv[0])
    main()


def _run_program(program: str, arguments: list[str]) -> None:
    """As `python -c`: in a `__main__` that has no file, so that no process that it starts looks for one."""
    sys.argv = ["-c", *arguments]
    sys.path[0] = ""
    sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(program, "<string>", "exec", dont_inherit=True), vars(sys.modules["__main__"]))


def _main() -> None:
    requests, settings = socket.socket(fileno=int(sys.argv[1])), _load(sys.argv[2:])
    while True:
        found = _next_request(requests)
        if found is None:
            return
        request, handles = found
        if "arguments" in request:
            break
        os.setsid()
        if "workers" in request:
            _serve_workers(socket.socket(fileno=handles[0]), request["environment"][TAG])
            return
        os.environ.clear()
        os.environ.update({**settings, **request["environment"]})
        requests, settings = socket.socket(fileno=handles[0]), settings | _load(request["commands"])
    arguments = _begin(request, settings, *handles)
    status: object = 0
    try:
        if request["program"] is None:
            _run_command(arguments)
        else:
            _run_program(request["program"], arguments)
    except SystemExit as end:
        status = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else 0)  # what is imported need not be taken apart


if __name__ == "__main__":
    _main()
