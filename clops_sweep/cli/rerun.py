"""`clops-sweep rerun`: repeats a run of a store."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NoReturn

import click

from clops_sweep.cli.options import (
    Ended,
    Tolerance,
    json_option,
    plugins_option,
    prepared_root_option,
    print_json,
    results_option,
    run_id_argument,
)
from clops_sweep.errors import UsageError, one_line
from clops_sweep.experiment.plugins.registry import headline
from clops_sweep.experiment.provenance import changed_code
from clops_sweep.store.rows import check_registered, printable
from clops_sweep.store.run_store import RunStore


@click.command()
@run_id_argument
@results_option
@prepared_root_option
@click.option("--verify", is_flag=True, help="Compare all numbers with the stored ones; exit status 1 if any differs.")
@click.option(
    "--tolerance",
    type=Tolerance(),
    default=0,
    help="Compare only metrics and R, which may differ by this much; for a device other than the run's.",
)
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    help="By default the device of the stored run, if it is available here.",
)
@plugins_option
@json_option
def rerun(
    run_id: str,
    results: str,
    prepared_root: Path | None,
    verify: bool,
    tolerance: float,
    device: str | None,
    as_json: bool,
) -> None:
    """Repeat one run in this process, without touching the store. RUN_ID may be any unambiguous prefix."""
    from clops_sweep.data.prepared.commands import default_prepared_root
    from clops_sweep.store.rerun import differences, repeat, stored_run

    store = RunStore.named(results)
    row = stored_run(store, run_id)
    check_registered(row, store)
    try:
        kept = row["run_id"] in store.predicted()
        result = repeat(row, store, prepared_root or default_prepared_root(), device, keep_predictions=kept)
    except UsageError:
        raise
    except Exception as error:  # a failing run may raise any exception
        _fails(error, row, verify, as_json)
    changed = changed_code([row]) if verify else []
    stored = row["status"] == "finished"
    found = differences(result, store, row["run_id"], tolerance) if verify and stored else []
    first, *others = headline(str(row["scenario"]))
    width = max(12, *map(len, (*others, f"test_{first}")))
    of_test = [f"test_{name}" for name in others if math.isnan(result.runs[first].iloc[0])]  # no validation set
    metrics = {name: float(result.runs[name].iloc[0]) for name in (first, *others, f"test_{first}", *of_test)}
    if as_json:
        print_json(
            _repeated(row["run_id"], metrics, equal=stored and not found if verify else None)
            | {"changed_code": changed, "differences": [vars(it) for it in found]}
        )
        if verify and (found or not stored):
            raise Ended(1)
        return
    for sentence in changed:
        click.echo(sentence)
    for metric, value in metrics.items():
        if not math.isnan(value):  # a strategy may lack the metric
            click.echo(f"{metric:{width}} {value:.6f}")
    if not verify:
        return
    if not stored:
        click.echo("the stored run failed and this one did not: there are no numbers to compare")
        raise Ended(1)
    for difference in found:
        click.echo(printable(str(difference)))
    if found:
        of = {"on": row["device"], "with": row["backend"], "by clops-sweep": row["package_version"]}
        where = " ".join(f"{what} {value}" for what, value in of.items() if isinstance(value, str))
        click.echo(f"the stored run was computed {printable(where)}")
        if row["device"] != "cpu" and not tolerance:
            click.echo("numbers computed on a GPU are equal only up to rounding: see --tolerance")
        raise Ended(1)
    equal = f"metrics and R equal the stored ones to {tolerance:g}" if tolerance else None
    click.echo(equal or "every number equals the stored one, bit for bit")


def _repeated(
    run_id: str, metrics: dict[str, float], *, equal: bool | None, error: str | None = None
) -> dict[str, Any]:
    """Return the JSON keys common to finished and failed runs."""
    return {"run_id": run_id, "metrics": metrics, "error": error, "equal": equal}


def _fails(error: Exception, row: dict[str, Any], verify: bool, as_json: bool) -> NoReturn:
    """Report how a repeated run failed and, with `verify`, whether the stored run failed equally."""
    said = one_line(f"{type(error).__name__}: {error}")
    stored = one_line(row["error"] or "")
    alike = row["status"] == "failed" and stored.endswith(said)
    if as_json:
        fields = _repeated(row["run_id"], {}, equal=alike if verify else None, error=said)
        print_json(fields | {"changed_code": [], "differences": []})
        raise Ended(0 if verify and alike else 1)
    click.echo(f"the run fails: {printable(said)}")
    if verify:
        click.echo("the stored run failed in the same way" if alike else "the stored run did not fail in that way")
    raise Ended(0 if verify and alike else 1)
