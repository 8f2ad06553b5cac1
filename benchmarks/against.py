"""This version's numbers beside those of another: what `python -m benchmarks --against REF` prints."""

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
    """A folder with another version, built and installed, and its benchmarks; it is thrown away at the end.

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
        for name in ("benchmarks", "tests"):  # not installed, and to be found beside what is
            (site / name).symlink_to(source / name)
        yield site


def measured(site: Path, section: str, *, quick: bool) -> str:
    """What another version's own benchmarks say of it; nothing where it has no such section."""
    with tempfile.NamedTemporaryFile(suffix=".md") as file:
        command = [sys.executable, "-m", "benchmarks", *["--quick"] * quick, "--only", section, "--output", file.name]
        done = subprocess.run(command, cwd=site, stdout=subprocess.DEVNULL, check=False)
        return Path(file.name).read_text() if done.returncode == 0 else ""


def beside(before: str, now: str) -> str:
    """The text of now with `before → now` wherever both have a number in a row and a column of the same names."""
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
    """The rows of all tables: the line that each is on, the head of its table, and its cells."""
    header, lines = "", text.splitlines()
    for at, line in enumerate(lines):
        if not line.startswith("|"):
            header = ""
        elif at + 1 < len(lines) and _RULE.fullmatch(lines[at + 1]):
            header = line
        elif header and not _RULE.fullmatch(line):
            yield at, header, [cell.strip() for cell in line.strip("|").split("|")]
