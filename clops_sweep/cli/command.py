"""Entry point of the command `clops-sweep`. Its output and exit status are a contract with users' scripts.

This module imports little, so that `main` handles interrupts from early on.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from clops_sweep.cli.startup_message import startup_message
from clops_sweep.data.files.termination import terminated_like_interrupted
from clops_sweep.experiment.spaces.gc_paused import gc_paused

_BAD_INPUT, _INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point: every foreseen error is one sentence on standard error and exit status 2."""
    given = sys.argv[1:] if arguments is None else arguments
    os.environ["MPLBACKEND"] = "agg"  # no window is opened; a notebook's backend may be missing in this environment
    try:
        with terminated_like_interrupted(), startup_message(given):
            status = _main(arguments)
    except KeyboardInterrupt:  # during imports or printing
        os.write(2, b"interrupted\n")
        status = _INTERRUPTED
    sys.exit(_stop_status(given) if status == _INTERRUPTED else status)


def _stop_status(arguments: Sequence[str]) -> int:
    """Return the exit status of an interrupt, which may come before the launch has read its options."""
    for option, value in zip(arguments, [*arguments[1:], ""], strict=True):
        name, is_given, text = option.partition("=")
        text = text if is_given else value
        if name == "--stop-status" and text.isdecimal() and 1 <= int(text) <= 255:
            return int(text)
    return _INTERRUPTED


def _main(arguments: Sequence[str] | None) -> int:
    _no_warning_is_an_error()
    if sys.flags.optimize > 1 and {"-h", "--help"} & set(sys.argv[1:] if arguments is None else arguments):
        sys.stderr.write("clops-sweep: PYTHONOPTIMIZE=2 removes docstrings, and most help with them; unset it\n")
    from clops_sweep.errors import one_line
    from clops_sweep.execution.display.terminal import lenient_output, matters

    with lenient_output() as output:
        status = _exit_status(arguments)
    if output.error is not None:
        if matters(output.error) and status != _BAD_INPUT:  # the sentence is already on standard error
            sys.stderr.write(f"clops-sweep: standard output: {one_line(output.error)}\n")
            status = status or 1
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else Python would flush the rest again at exit, and fail again
    return status


def _exit_status(arguments: Sequence[str] | None) -> int:
    with gc_paused():  # what imports create stays
        import click

        from clops_sweep.cli.options import EXIT_BAD_INPUT, EXIT_FINISHED, EXIT_INTERRUPTED, Ended
        from clops_sweep.errors import UsageError

    try:
        _check_current_folder()
        is_first = "clops_sweep.cli.commands" not in sys.modules
        with gc_paused():
            from clops_sweep.cli.commands import command

            if is_first:
                gc.freeze()  # no collection looks at what imports have created

        command.main(arguments, prog_name="clops-sweep", standalone_mode=False)
    except Ended as ended:
        return int(ended.code or EXIT_FINISHED)
    except SystemExit as error:
        _refuse(
            f"{_place(error)} ends the command (SystemExit: {error}); expected an ordinary exception, or no exception"
        )
        return EXIT_BAD_INPUT
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return EXIT_BAD_INPUT
    except (UsageError, click.ClickException) as error:
        _refuse(error.format_message() if isinstance(error, click.ClickException) else str(error))
        return EXIT_BAD_INPUT
    except MemoryError as error:
        _refuse(f"not enough memory ({error or 'MemoryError'}); use smaller frames, or a machine with more")
        return EXIT_BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    return EXIT_FINISHED


def _refuse(message: str) -> None:
    """Print one sentence on standard error, which a user's code may have closed."""
    import textwrap

    import click

    from clops_sweep.errors import one_line, sentence
    from clops_sweep.store.rows import printable

    with contextlib.suppress(OSError, ValueError):
        text = f"clops-sweep: {printable(sentence(one_line(message)))}"
        if sys.stderr.isatty():  # which would break lines within words
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            text = textwrap.fill(text, max(width, 20), break_long_words=False, break_on_hyphens=False)
        click.echo(text, err=True)


def _place(error: BaseException) -> str:
    """Return the function that raised an error, with its file."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}, line {last.lineno}: {last.name}"


def _no_warning_is_an_error() -> None:
    """Ignore PYTHONWARNINGS=error: users set it for their own programs, not for libraries used here."""
    if sys.warnoptions:
        warnings.filters[:] = [entry for entry in warnings.filters if entry[0] != "error"]  # type: ignore[index]
        os.environ.pop("PYTHONWARNINGS", None)  # workers would inherit it


def _check_current_folder() -> None:
    from clops_sweep.errors import UsageError, one_line

    try:
        os.getcwd()
    except OSError as error:
        raise UsageError(f"the current folder: {one_line(error)}; change to a folder that exists") from None
