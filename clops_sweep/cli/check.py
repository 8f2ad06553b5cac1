"""`clops-sweep check`: reads every part of a store and says what is damaged."""

from __future__ import annotations

import click

from clops_sweep.cli.options import EXIT_FAILED, Ended, results_option
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep.verification import faults


@click.command()
@results_option
def check(results: str) -> None:
    """Read every part of the store and say what is damaged. Changes nothing; exit 1 if anything is."""
    store = RunStore.named(results)
    store.files.check_is_there()
    whole = True
    for fault in faults(store):
        click.echo(fault)
        whole = False
    if not whole:
        raise Ended(EXIT_FAILED)
    click.echo(f"every part in {store.files.shown} is whole: {len(store.statuses())} runs")
