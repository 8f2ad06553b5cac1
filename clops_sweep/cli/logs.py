"""`clops-sweep logs`: what a run has printed."""

from __future__ import annotations

import click

from clops_sweep.cli.options import results_option, run_id_argument
from clops_sweep.errors import UsageError
from clops_sweep.execution.run_log import printed_by, stacks_file
from clops_sweep.store.rows import printable
from clops_sweep.store.run_store import RunStore


@click.command()
@run_id_argument
@results_option
def logs(run_id: str, results: str) -> None:
    """What a run has printed, in launches from this machine, and its error. RUN_ID may be any unambiguous prefix."""
    store = RunStore.named(results)
    store.files.check_is_there()
    unknown: UsageError | None = None
    error = None
    try:
        run_id = store.find(run_id)
    except UsageError as reason:  # it is under way, or has never come to an end
        unknown = reason
    else:
        error = next(iter(store.rows("runs", ["error"], [run_id])))["error"]
    folder = store.log_folder / "logs"
    found = False
    for log in sorted(folder.glob("*.log")):
        for number, line in enumerate(printed_by(run_id, log)):
            if number == 0:
                click.echo(f"{log}:")
            click.echo(f"  {printable(line)}")
            found = True
    if (stacks := stacks_file(folder, run_id)).is_file():
        click.echo(f"{stacks}:\n{printable(stacks.read_text(errors='replace').rstrip())}")
        found = True
    if unknown is not None and not found:
        raise unknown
    if error:
        click.echo(f"error:\n{printable(error)}")
    elif not found:
        click.echo(f"run {run_id} has printed nothing into {folder}")
