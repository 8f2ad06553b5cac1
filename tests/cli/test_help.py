"""The help of the command, and what unknown subcommands are answered with."""

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import SECTIONS, command


def _help(*arguments: str) -> str:
    return CliRunner().invoke(command, [*arguments, "--help"], terminal_width=80).stdout


def test_the_help_lists_every_command_by_section() -> None:
    assert re.findall(r"^(\w.*):$", _help(), re.MULTILINE) == ["Options", *SECTIONS]
    assert sorted(str(it.name) for section in SECTIONS.values() for it in section) == sorted(command.commands)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["staus"], "'staus' is neither a search-space file (*.py) nor a subcommand (did you mean 'status'?)"),
        (
            ["nothing"],
            "'nothing' is neither a search-space file (*.py) nor a subcommand; clops-sweep --help lists them",
        ),
        (["data", "lst"], "'lst' is not a subcommand (did you mean 'list'?)"),
        (["data", "nothing"], "'nothing' is not a subcommand; clops-sweep data --help lists them"),
    ],
)
def test_an_unknown_subcommand_gets_the_nearest(arguments: list[str], sentence: str) -> None:
    done = CliRunner().invoke(command, arguments, prog_name="clops-sweep", standalone_mode=False)
    assert isinstance(done.exception, click.UsageError)
    assert done.exception.format_message() == sentence
