"""`clops-sweep check`: reads every part of a store and reports damage."""

from __future__ import annotations

import click

from clops_sweep.cli.options import EXIT_FAILED, Ended, json_option, print_json, results_option
from clops_sweep.errors import several
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep import faults, files_of_no_run


@click.command()
@results_option
@json_option
def check(results: str, as_json: bool) -> None:
    """Read every part of the store and report damage. Changes nothing; exit status 1 if anything is damaged."""
    store = RunStore.named(results)
    store.files.check_is_there()
    found = []
    for fault in faults(store):
        found.append(fault)
        if not as_json:
            click.echo(fault)
    runs = None if found else len(store.statuses())
    unnamed = 0 if found else files_of_no_run(store)
    if as_json:
        whole = not found
        print_json({"results": store.files.shown, "whole": whole, "runs": runs, "unnamed": unnamed, "faults": found})
    elif not found:
        click.echo(f"every part in {store.files.shown} is intact: {runs} runs")
        if unnamed:
            click.echo(
                f"{several(unnamed, 'file')} of other tables without a part of runs: left by a killed launch, or the "
                "store was copied incompletely; copy it again before the next launch, which moves them to .work/left"
            )
    if found:
        raise Ended(EXIT_FAILED)
