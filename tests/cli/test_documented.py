"""Every command of README.md, CONTRIBUTING.md and docs is one that the command-line parser takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from clops_sweep.cli.commands import command

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted(
    [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *(REPOSITORY / "docs").rglob("*.md")],
    key=lambda path: path.relative_to(REPOSITORY).as_posix(),
)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_IN_TEXT = re.compile(r"`(?:\w+=\S+ )*clops-sweep\s([^`]+)`")
_DOCSTRING = re.compile(r'"""[^"\n]*: clops-sweep ([^"\n]+)"""')
_LINE = re.compile(r"^(?:\$ )?(?:.*&& )?(?:\w+=\S+ )*(?:\S*/)?clops-sweep (\S.*)$")


def commands_of(text: str) -> Iterator[str]:
    """Yield what follows `clops-sweep` in the code of a page: blocks, docstrings within them, and code in text."""
    for block in _FENCED.findall(text):
        yield from _DOCSTRING.findall(block)
        for line in block.replace("\\\n", " ").splitlines():
            if found := _LINE.match(line):
                yield found[1].partition(" > ")[0]  # without the file that the output goes to
    for found in _IN_TEXT.findall(_FENCED.sub("", text)):
        yield " ".join(found.split())


def parse(words: list[str]) -> None:
    """Parse a command line as the program does, without running the command or reading files that it names.

    Raises:
        click.ClickException: the parser refuses it.
    """
    context = click.Context(command, info_name="clops-sweep")
    of: click.Command = command
    while isinstance(of, click.Group) and words:
        name, found, words = of.resolve_command(context, words)
        assert found is not None
        of, context = found, click.Context(found, info_name=name, parent=context)
    callbacks = {parameter: parameter.callback for parameter in of.params}
    try:
        for parameter in of.params:
            parameter.callback = None  # --plugins imports a file
        of.parse_args(context, words)
    finally:
        for parameter, callback in callbacks.items():
            parameter.callback = callback


def names_a_command(line: str) -> bool:
    """Return whether a text only names a command, such as `clops-sweep plan`, whose arguments are up to the reader."""
    words = line.split()
    of: click.Command = command
    while isinstance(of, click.Group) and words:
        of = of.commands[words.pop(0)]
    return not words


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_the_parser_takes_every_command(page: Path) -> None:
    for line in commands_of(page.read_text()):
        if line.startswith(("--", "\\|")):
            continue  # --help and --version of the program, and a pipe in a table
        try:
            parse(shlex.split(line, comments=True))
        except (click.ClickException, ValueError) as error:
            if not (isinstance(error, click.MissingParameter) and names_a_command(line)):
                pytest.fail(f"clops-sweep {line}: {error}")


def test_commands_are_found_in_blocks_and_in_text() -> None:
    block = "$ clops-sweep a.py \\\n  --seeds 2  # two\nA=1 .venv/bin/clops-sweep b.py"
    text = f"Run `clops-sweep\nplan a.py`.\n```\n{block}\n```\n"
    assert [shlex.split(line, comments=True) for line in commands_of(text)] == [
        ["a.py", "--seeds", "2"],
        ["b.py"],
        ["plan", "a.py"],
    ]
    assert sum(len(list(commands_of(page.read_text()))) for page in PAGES) > 90


@pytest.mark.parametrize("line", ["a.py --sees 2", "plan", "data verifi mitbih", "a.py --device tpu", "show"])
def test_the_parser_refuses_what_is_wrong(line: str) -> None:
    with pytest.raises(click.ClickException):
        parse(line.split())
