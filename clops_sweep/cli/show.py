"""`clops-sweep show`: prints one run, the most relevant facts first."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from clops_sweep.cli.options import json_option, plugins_option, print_json, results_option, run_id_argument
from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import UsageError, several
from clops_sweep.experiment.columns import (
    COUNTS,
    FIELDS,
    RECORDED,
    RESULTS,
    config_from_row,
)
from clops_sweep.experiment.config import FACTS, RunConfig
from clops_sweep.experiment.identity import unused_by_stream, without_effect
from clops_sweep.experiment.metrics import METRICS
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.registry import OF_SCENARIOS, REGISTRIES, SCENARIOS, headline, unregistered
from clops_sweep.experiment.provenance import changed_code, described
from clops_sweep.store.commands import rerun_command
from clops_sweep.store.launch_folders import plugin_files_to_name, prepared_root_to_name
from clops_sweep.store.rows import printable
from clops_sweep.store.run_store import RunStore

if TYPE_CHECKING:
    from clops_sweep.analysis.people.patient_intervals import PatientInterval

_ELSEWHERE = ("run_id", "status", "error", "reason", "plugins")
"""Columns of `RECORDED` that are printed in their own section."""


class Sections(NamedTuple):
    """Columns of a run by heading, with the numbers of config fields and results that are left out."""

    columns: dict[str, list[str]]
    fields_left_out: int
    results_left_out: int


@click.command()
@run_id_argument
@results_option
@plugins_option
@click.option("--all", "everything", is_flag=True, help="Show every column, with all digits.")
@click.option("--against", metavar="RUN_ID", help="Another run; also show test metrics minus those of that run.")
@json_option
def show(run_id: str, results: str, everything: bool, against: str | None, as_json: bool) -> None:
    """Print the config, metrics and provenance of one run. RUN_ID may be any unambiguous prefix.

    With predictions (--keep predictions), test metrics have a 95 % interval over test patients.
    """
    store = RunStore.named(results)
    found = store.find(run_id)
    (row,) = store.rows("runs", run_ids=[found])
    if as_json:
        repeat = _repetition(store, results, found, plugin_files_to_name(store, row["plugins"]))
        tested = {"intervals": _intervals(store, found)}
        if against is not None:
            tested["differences"] = _intervals(store, found, store.find(against))
        data = {name: {metric: asdict(it) for metric, it in of.items()} for name, of in tested.items()}
        print_json(dict(row) | {"differences": {}} | data | {"changed_code": changed_code([row]), "repeat": repeat})
        return
    shown = sections(row, everything=everything)
    width = max(len(name) for names in shown.columns.values() for name in names)
    for heading, names in shown.columns.items():
        click.echo(f"{heading}:")
        shorten = heading == "results" and not everything
        for name in names:
            click.echo(f"  {name:{width}} {printable(_in_words(row[name], shorten))}")
    for line in _tested(store, found, against):
        click.echo(line)
    if row["patients_validation"] == 0:
        click.echo("the data have no validation set: metrics are computed on the test set")
    if lines := described(row["plugins"]):
        click.echo("plug-ins:")
        for line in (*lines, *changed_code([row])):
            click.echo(f"  {printable(line)}")
    if row["error"]:
        click.echo(f"error:\n{printable(row['error'])}")
    if line := _left_out(shown):
        click.echo(line)
    missing = unregistered(row) + ([] if row["dataset"] in DATASETS else [f"dataset {row['dataset']!r}"])
    files = plugin_files_to_name(store, row["plugins"])
    if missing and not files:
        click.echo(f"repeat it with this, SPACE.py being the search-space file that registers {' and '.join(missing)}:")
        click.echo(f"  {_repetition(store, results, found)} --plugins SPACE.py")
    else:
        click.echo(f"repeat it with:\n  {_repetition(store, results, found, files)}")


def _repetition(store: RunStore, results: str, run_id: str, files: Sequence[str] = ()) -> str:
    """Return the command that repeats a run and compares its numbers."""
    root = prepared_root_to_name(store)
    return rerun_command(run_id, results, verify=True, plugins=files, prepared_root=root)


def _intervals(store: RunStore, run_id: str, other: str | None = None) -> dict[str, PatientInterval]:
    """Return test metrics with intervals over patients, minus those of `other` if given; empty without predictions.

    Raises:
        UsageError: one of two runs has no predictions, or they were tested on different instances.
    """
    from clops_sweep.analysis.people.patient_intervals import patient_bootstrap

    if other is None and run_id not in store.predicted():
        return {}
    of_other = None if other is None else store.read("predictions", other)
    found = patient_bootstrap(store.read("predictions", run_id), of_other)
    return {name: it for name, it in found.items() if math.isfinite(it.value)}


def _tested(store: RunStore, run_id: str, against: str | None) -> Iterator[str]:
    """Yield lines with a run's test metrics and intervals, and with the differences from another run."""
    from clops_sweep.analysis.people.patient_intervals import FEW_COVER, FEW_PEOPLE

    other = None if against is None else store.find(against)
    for heading, found in (
        ("test metrics", _intervals(store, run_id)),
        (f"test metrics minus those of {other}", {} if other is None else _intervals(store, run_id, other)),
    ):
        if not found:
            continue
        first = next(iter(found.values()))
        few = f" (below {FEW_PEOPLE} they cover less: {FEW_COVER})" if first.people < FEW_PEOPLE else ""
        yield f"{heading} [95 % interval over {first.drawn}]{few}:"
        for name, it in found.items():
            ends = "" if math.isnan(it.low) else f" [{it.low:.3f}, {it.high:.3f}]"
            yield f"  {name:{max(map(len, found))}} {it.value:.3f}{ends}"
        yield from (f"  no interval: {why}" for why in dict.fromkeys(it.obstacle for it in found.values()) if why)


def sections(row: Mapping[str, Any], *, everything: bool = False) -> Sections:
    """Return the columns of a row of `runs` to show: the relevant ones or, with `everything`, all that have values.

    Relevant config fields are those that the run's numbers depend on. Relevant results are the metrics of the
    scenario's headline measures, headline first, nonzero counters, and columns of plug-ins.
    """
    there = [name for name in row if row[name] is not None]
    config = [name for name in (*FIELDS, *OPTIONS) if name in there]
    results = [name for name in RESULTS if name in there]
    matters, worth = config, results
    if not everything:
        seen, of_others = _that_matter(row), _of_other_measures(row)
        matters = [name for name in config if seen is None or name in seen]
        worth = [name for name in results if name not in of_others and not _is_nothing(name, row[name])]
        worth = _headline_first(worth, row)
    known = {*FIELDS, *OPTIONS, *RESULTS, *RECORDED}
    columns = {
        "run": [name for name in ("run_id", "status") if name in there],
        "config": matters,
        "results": worth,
        "of its plug-ins": [name for name in there if name not in known],
        "provenance": [name for name in RECORDED if name in there and name not in _ELSEWHERE],
    }
    filled = {heading: names for heading, names in columns.items() if names}
    return Sections(filled, len(config) - len(matters), len(results) - len(worth))


def _that_matter(row: Mapping[str, Any]) -> set[str] | None:
    """Return the config fields and options with an effect on a run; None if its strategy is not registered.

    An unregistered scenario may use every field of scenarios. The options of a strategy do not depend on other
    plug-ins, so unregistered ones are replaced by defaults.
    """
    named = {kind: row.get(kind) for kind in REGISTRIES if kind != "strategy"}
    unknown = [kind for kind, name in named.items() if name is not None and name not in REGISTRIES[kind]]
    try:
        config = config_from_row({**row, **{kind: getattr(RunConfig(), kind) for kind in unknown}})
    except (UsageError, KeyError):  # an unregistered plug-in, or a column of an earlier version
        return None
    of_scenario = set(SCENARIOS.declaration(row["scenario"]).fields) if row["scenario"] in SCENARIOS else OF_SCENARIOS
    seen = json.loads(config.identity)
    unused = OF_SCENARIOS.difference(of_scenario).union(
        unused_by_stream(row["stream"]), without_effect(vars(config), FACTS)
    )
    return FIELDS.keys() - unused | {name for name, it in seen.items() if config.get(name) == it}


def _is_nothing(name: str, value: float | str) -> bool:
    """Return whether a value is missing or a zero count."""
    return (isinstance(value, float) and math.isnan(value)) or (name in COUNTS and value == 0)


def _of_other_measures(row: Mapping[str, Any]) -> set[str]:
    """Return the metrics of measures other than the scenario's headline measures."""
    shown = {METRICS[name].measure for name in headline(str(row.get("scenario")))}
    names = [name for name, metric in METRICS.items() if metric.measure not in shown]
    return {f"{prefix}{name}" for prefix in ("", "test_") for name in names}


def _headline_first(names: Sequence[str], row: Mapping[str, Any]) -> list[str]:
    metrics = headline(str(row.get("scenario")))
    first = [name for name in (*metrics, *(f"test_{it}" for it in metrics)) if name in names]
    return [*first, *(name for name in names if name not in first)]


def _in_words(value: object, shorten: bool) -> str:
    return f"{value:.6g}" if shorten and isinstance(value, float) else str(value)


def _left_out(shown: Sections) -> str:
    """Return a sentence on what is left out and how to see it; empty if nothing is."""
    fields, results = shown.fields_left_out, shown.results_left_out
    parts = [f"{several(fields, 'config field')} that this run does not use"] if fields else []
    parts += [several(results, "more result")] if results else []
    return f"not shown: {' and '.join(parts)}; see them with --all" if parts else ""
