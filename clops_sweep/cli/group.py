"""A group of commands: its help, and suggestions for unknown commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

from clops_sweep.errors import nearest, shown

_WHOLE = 1000
"""Maximum length of a description, longer than any; click's default cuts them."""


class SectionedGroup(click.Group):
    """Lists its commands by section, each with its whole first sentence."""

    @property
    def sections(self) -> Mapping[str, Iterable[click.Command]]:
        """Return its commands by heading in the help."""
        return {"Commands": self.commands.values()}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of the help; click calls this."""
        for heading, commands in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(str(it.name), it.get_short_help_str(_WHOLE)) for it in commands])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest the most similar for an unknown one."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise click.UsageError(self.unknown(args[0]) + (nearest(args[0], self.commands) or self._see_help(ctx)))
        return super().resolve_command(ctx, args)

    def unknown(self, name: str) -> str:
        """Return the beginning of the sentence about an unknown command."""
        return f"{shown(name)} is not a subcommand"

    def _see_help(self, ctx: click.Context) -> str:
        return f"; {ctx.command_path} --help lists them"
