"""`clops-sweep logs`: prints the output of a run."""

from __future__ import annotations

import click

from clops_sweep.cli.options import json_option, print_json, results_option, run_id_argument
from clops_sweep.errors import UsageError
from clops_sweep.store.rows import printable
from clops_sweep.store.run_logs import log_folder, printed_by, stacks_file
from clops_sweep.store.run_store import RunStore


@click.command()
@run_id_argument
@results_option
@json_option
def logs(run_id: str, results: str, as_json: bool) -> None:
    """Print the output of a run and its error. Only launches from this machine are searched.

    RUN_ID may be any unambiguous prefix.
    """
    store = RunStore.named(results)
    store.files.check_is_there()
    unknown: UsageError | None = None
    error = None
    try:
        run_id = store.find(run_id)
    except UsageError as reason:  # it is running, or never ended
        unknown = reason
    else:
        error = next(iter(store.rows("runs", ["error"], [run_id])))["error"]
    folder = log_folder(store)
    found = {log: lines for log in sorted(folder.glob("*.log")) if (lines := list(printed_by(run_id, log)))}
    if (stacks := stacks_file(folder, run_id)).is_file():
        found[stacks] = stacks.read_text(errors="replace").rstrip().splitlines()
    if unknown is not None and not found:
        raise unknown
    if as_json:
        logs = [{"file": log, "lines": lines} for log, lines in found.items()]
        print_json({"run_id": run_id, "logs": logs, "error": error})
        return
    for log, lines in found.items():
        click.echo(f"{log}:")
        for line in lines:
            click.echo(f"  {printable(line)}")
    if error:
        click.echo(f"error:\n{printable(error)}")
    elif not found:
        click.echo(f"run {run_id} has printed nothing into {folder}")
