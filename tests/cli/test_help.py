"""The help of the command, and what unknown subcommands are answered with."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from clops_sweep.cli.commands import SECTIONS, command
from clops_sweep.cli.data import data


def _help(*arguments: str) -> str:
    return CliRunner().invoke(command, [*arguments, "--help"], terminal_width=80).stdout


def test_the_help_lists_every_command_by_section() -> None:
    assert re.findall(r"^(\w.*):$", _help(), re.MULTILINE) == ["Options", *SECTIONS]
    assert sorted(str(it.name) for section in SECTIONS.values() for it in section) == sorted(command.commands)


@pytest.mark.parametrize(("group", "arguments"), [(command, []), (data, ["data"])], ids=["all", "data"])
def test_no_description_is_cut_at_80_columns(group: click.Group, arguments: list[str]) -> None:
    shown = _help(*arguments)
    _, descriptions = shown.split("Options:")
    assert "..." not in descriptions
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    for it in group.commands.values():
        first, *_ = (it.help or "").split("\n\n")
        assert f"{it.name} {it.get_short_help_str(10_000)}" in words
        assert " ".join(first.split()).startswith(it.get_short_help_str(10_000))


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


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["plan", "--sedes", "2"], "--seeds"), (["show", "a", "--resuls", "x"], "--results")],
)
def test_an_unknown_option_gets_the_nearest(arguments: list[str], meant: str) -> None:
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert isinstance(done.exception, click.NoSuchOption)
    assert meant in done.exception.format_message()
    assert "one of" not in done.exception.format_message() or len(done.exception.possibilities or ()) <= 3


def test_options_are_documented_as_they_are_typed() -> None:
    """Sphinx's smart quotes would print an en dash instead of the two hyphens of each option."""
    settings = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "conf.py"))
    assert settings["smartquotes"] is False
