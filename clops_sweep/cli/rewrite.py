"""Commands that rewrite a store: delete and merge."""

from __future__ import annotations

import sys

import click

from clops_sweep.cli.options import NotEmpty, json_option, print_json
from clops_sweep.errors import UsageError, one_line, several
from clops_sweep.store.run_store import RunStore

_results_argument = click.argument("results", type=NotEmpty(), metavar="RESULTS")


@click.command()
@_results_argument
@click.option(
    "--where",
    required=True,
    type=NotEmpty(),
    metavar="EXPRESSION",
    help="Condition on columns of the table runs, such as \"strategy == 'clops' and status == 'failed'\". "
    "!= and not in also match runs without a value of the column.",
)
@click.option("--dry-run", is_flag=True, help="Only print how many runs match.")
@click.option("--yes", is_flag=True, help="Delete without asking for confirmation.")
@json_option
def delete(results: str, where: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Delete runs from all tables of a store. RESULTS is a folder or s3://...

    If the command is interrupted, repeat it: each run is deleted completely or not at all.
    """
    from clops_sweep.store.upkeep import delete_runs, matching

    store = RunStore.named(results)
    store.files.check_is_there()
    chosen = matching(store, where)
    states = store.recorded()
    failed = sum(states.get(run_id) == "failed" for run_id in chosen)
    if not as_json:
        matched = f"{several(len(chosen), 'run')} of {len(states)} in {store.files.shown} match"
        click.echo(f"{matched}, {failed} of them failed")
    confirmed = not dry_run and (yes or _confirmed(as_json))
    deleted = delete_runs(store, chosen) if confirmed else 0
    if as_json:
        counts = {"runs": len(states), "matched": len(chosen), "failed": failed, "deleted": deleted}
        print_json({"results": store.files.shown, **counts})
    elif not dry_run:
        click.echo(f"{several(deleted, 'run')} deleted" if confirmed else "nothing was deleted")


def _confirmed(err: bool) -> bool:
    """Ask whether to delete, on standard error if `err`."""
    try:
        return click.confirm("Delete them?", err=err)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise UsageError("delete: not confirmed, so nothing was deleted; confirm with y or --yes") from None


@click.command()
@_results_argument
@click.argument("other", type=NotEmpty(), metavar="[OTHER]", required=False)
@click.option(
    "--parts", is_flag=True, help="Merge the small files of RESULTS; a launch does so itself in a local folder."
)
@json_option
def merge(results: str, other: str | None, parts: bool, as_json: bool) -> None:
    """Copy the runs of the store OTHER that the store RESULTS lacks. Both are a folder or s3://...

    OTHER is not changed. If a run has different numbers in the two stores, nothing is copied.
    """
    from clops_sweep.store.merging import merge_runs
    from clops_sweep.store.stored_parts import missing
    from clops_sweep.store.writing import merge_parts, tidy

    if (other is None) == (not parts):
        raise UsageError("merge: expected a store OTHER to copy from, or --parts")
    store = RunStore.named(results)
    if other is None:
        store.files.check_is_there()
        try:
            with store.locked():
                tidy(store.parts)
                merged = merge_parts(store.parts)
        except FileNotFoundError as error:
            raise missing(str(error.filename or error)) from None
        except OSError as error:
            raise UsageError(
                f"results {store.files.shown}: cannot be written to ({error.strerror or one_line(error)}); nothing is "
                "lost, repeat the command"
            ) from None
        if as_json:
            print_json({"results": store.files.shown, "copied": 0, "incomplete": 0, "merged": merged})
        else:
            click.echo(f"{several(merged, 'part')} merged")
        return
    source = RunStore.named(other)
    copied, complete = merge_runs(store, source), source.statuses()
    incomplete = len(source.recorded().keys() - complete.keys())
    if as_json:
        print_json({"results": store.files.shown, "copied": copied, "incomplete": incomplete, "merged": 0})
        return
    click.echo(f"{several(copied, 'run')} copied into {store.files.shown}")
    if incomplete:
        where = f"{source.files.shown}, see {source.command('check')}"
        click.echo(f"{several(incomplete, 'run')} not copied: incomplete in {where}")
