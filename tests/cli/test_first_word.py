"""A terminal has a word of the command at once, and keeps nothing of it."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

COMMAND = [sys.executable, "-m", "clops_sweep.cli", "status", "--results", "mistyped"]
SAID = "clops-sweep: results "


def test_a_terminal_has_it_until_something_is_said(tmp_path: Path) -> None:
    child, end = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        os.execve(sys.executable, COMMAND, {**os.environ, "TERM": "xterm"})
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    written = b""
    while True:
        try:
            written += os.read(end, 4096)
        except OSError:  # all is said
            break
    os.close(end)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    word, _, rest = written.decode().partition("\x1b[2K\r")
    assert word == "clops-sweep: status ...\r"
    assert rest.startswith(SAID.rstrip())
    assert "\x1b" not in rest
    lines = rest.splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 40 or " " not in line for line in lines), "broken between words, where the terminal ends"


def test_nobody_else_has_it(tmp_path: Path) -> None:
    ended = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "TERM": "xterm"})
    assert (ended.returncode, ended.stdout, ended.stderr.startswith(SAID)) == (2, "", True)


def test_without_docstrings_the_missing_help_is_explained(tmp_path: Path) -> None:
    command = [sys.executable, "-OO", "-m", "clops_sweep", "plan", "--help"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.partition(";")[0]) == (
        0,
        "clops-sweep: PYTHONOPTIMIZE=2 removes docstrings, and most help with them",
    )
    assert ended.stdout.startswith("Usage: clops-sweep plan [OPTIONS] SPACE.py ...")
