"""Comparison of the numbers of two versions, for `python -m benchmarks --against REF`."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
_NUMBER = re.compile(r"-?[\d.,]+%?")
_RULE = re.compile(r"\|( *:?-+:? *\|)+")


@contextlib.contextmanager
def installed(ref: str) -> Iterator[Path]:
    """Yield a temporary folder with another version, built and installed, and its benchmarks.

    Args:
        ref: a commit, tag or branch.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, site = Path(folder, "source"), Path(folder, "site")
        source.mkdir()
        archive = subprocess.run(["git", "archive", ref], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE).stdout
        subprocess.run(["tar", "-x"], cwd=source, input=archive, check=True)
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(site), str(source)]
        subprocess.run(install, check=True)
        for name in ("benchmarks", "tests"):  # not part of the installed package
            (site / name).symlink_to(source / name)
        yield site


def measured(site: Path, section: str, *, quick: bool) -> str:
    """Return a section of another version's benchmarks as Markdown; empty if that version lacks it."""
    with tempfile.NamedTemporaryFile(suffix=".md") as file:
        command = [sys.executable, "-m", "benchmarks", *["--quick"] * quick, "--only", section, "--output", file.name]
        done = subprocess.run(command, cwd=site, stdout=subprocess.DEVNULL, check=False)
        return Path(file.name).read_text() if done.returncode == 0 else ""


def beside(before: str, now: str) -> str:
    """Return `now` with `before → now` in each table cell for which both texts have a number."""
    known = {(header, row[0]): row for header, row in _rows(before)}
    lines = now.splitlines()
    for at, header, row in _numbered_rows(now):
        old = known.get((header, row[0]))
        if old is not None and len(old) == len(row):
            cells = [f"{was} → {it}" if _are_numbers(was, it) else it for was, it in zip(old[1:], row[1:], strict=True)]
            lines[at] = "| " + " | ".join([row[0], *cells]) + " |"
    return "\n".join(lines)


def _are_numbers(was: str, it: str) -> bool:
    return bool(_NUMBER.fullmatch(was) and _NUMBER.fullmatch(it))


def _rows(text: str) -> Iterator[tuple[str, list[str]]]:
    for _, header, row in _numbered_rows(text):
        yield header, row


def _numbered_rows(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield line number, table header and cells of each row of all tables."""
    header, lines = "", text.splitlines()
    for at, line in enumerate(lines):
        if not line.startswith("|"):
            header = ""
        elif at + 1 < len(lines) and _RULE.fullmatch(lines[at + 1]):
            header = line
        elif header and not _RULE.fullmatch(line):
            yield at, header, [cell.strip() for cell in line.strip("|").split("|")]
