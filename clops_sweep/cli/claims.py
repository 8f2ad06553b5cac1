"""`clops-sweep claims`: decides claims on the runs of a store."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from clops_sweep.cli.options import json_option, plugins_option, print_json
from clops_sweep.cli.report import everything
from clops_sweep.cli.request_options import request_options
from clops_sweep.cli.warned import warned
from clops_sweep.data.catalog import DATASETS
from clops_sweep.errors import listed, several
from clops_sweep.planning.changes import changes_since_runs
from clops_sweep.planning.claim_seal import seal, seal_in_words, sealed_files
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State

if TYPE_CHECKING:
    from clops_sweep.analysis.claims.verdicts import Verdict

_WIDE = 100
"""Width in columns without a terminal."""


@click.command()
@request_options(required=False)
@plugins_option
@click.option(
    "--runs", "conditions", is_flag=True, help="Print the condition on runs of each verdict, for runs --where."
)
@click.option("--all", "every", is_flag=True, help="List claims without runs, too, if none is decided.")
@click.option(
    "--seal", "to_seal", is_flag=True, help="Record the file's CLAIMS, runs and data in a seal, before the first run."
)
@click.option("--own-data", is_flag=True, help="Decide the claims of the paper on your own data sets, too.")
@json_option
def claims(request: Request, conditions: bool, every: bool, to_seal: bool, own_data: bool, as_json: bool) -> None:
    """Decide the CLAIMS of a search-space file, or else those of the CLOPS paper, on the finished runs.

    The sweep may be unfinished; missing runs are listed. Without a search-space file, all runs in the store count. The
    claims of the paper leave out runs on your own data sets.
    """
    from clops_sweep.analysis.as_stored import data_keys
    from clops_sweep.analysis.claims.history import history_in_words, planned_verdicts, verdicts_by_file
    from clops_sweep.analysis.claims.verdicts import verdicts
    from clops_sweep.analysis.collect import collect
    from clops_sweep.analysis.editions import replaced_in_words
    from clops_sweep.analysis.tables.best_terminal import state_in_doubt

    if request.selection.limit or request.selection.where:
        raise click.UsageError("claims apply to whole search spaces: the command takes neither --limit nor --where")
    _ = request.selection.spaces  # report an invalid search-space file first
    if to_seal:
        from clops_sweep.execution.fit import check_fit

        written = seal(request, check_fit)
        if as_json:
            nothing: dict[str, list[object]] = {"claims": [], "planned": [], "history": [], "in_doubt": []}
            print_json({"results": request.store.files.shown, "seal": str(written.path)} | nothing)
        else:
            click.echo(f"{several(len(request.selection.claims), 'claim')} sealed: {written.path}")
        for tuned in request.selection.tuned:
            if sentence := tuned.splits_fixed:
                click.echo(sentence, err=as_json)
        return
    request.store.files.check_is_there()
    if request.selection.files and not request.selection.claims:
        files = listed([file.name for file in request.selection.files])
        define = "defines" if len(request.selection.files) == 1 else "define"
        click.echo(
            f'{files} {define} no CLAIMS ("Claims and statistics" in the documentation): these are the claims of the '
            "CLOPS paper",
            err=as_json,
        )
    if not request.selection.claims:
        _say_sealed_files(request, to_stderr=as_json)
    state = State.of(request)
    request = state.resolved
    if request.selection.given:
        grids = [space for space in state.spaces if space.search is None]
        experiments = collect(grids, request.store.read("runs"), present=request.edition)
    else:
        experiments, _ = everything(request)
    of_paper = not request.selection.claims
    datasets = {cell.config.dataset for it in experiments for cell in it.cells}
    own = datasets & DATASETS.added.keys() if of_paper and not own_data else set[str]()
    if own:
        click.echo(
            f"left out: claims on your own data sets ({listed(sorted(own))}); include them with --own-data", err=True
        )
    experiments = [it for it in experiments if not it.cells or it.cells[0].config.dataset not in own]
    for experiment in experiments:
        if replaced := replaced_in_words(experiment.replaced):
            click.echo(f"{experiment.name}: {replaced}", err=True)
    for sentence in changes_since_runs(state):
        click.echo(f"clops-sweep: {sentence}", err=True)
    frames = request.data.of_prepared(data_keys(experiments))
    standing = seal_in_words(state) if request.selection.claims else ""
    planned: list[Verdict] = []
    if of_paper:
        of_claims = verdicts(experiments, request.store, frames)
    else:
        planned = planned_verdicts(state, experiments, frames)
        with warned():
            of_claims = verdicts_by_file(
                request.selection.claims_by_file,
                experiments,
                request.store,
                frames,
                record=request.selection.is_as_declared,
            )
    in_doubt = [] if of_paper else state_in_doubt(state)
    if as_json:
        from clops_sweep.analysis.claims.history import history_as_data
        from clops_sweep.analysis.report.claims_section import claims_as_data

        print_json(
            {
                "results": request.store.files.shown,
                "seal": standing or None,
                "claims": claims_as_data(of_claims),
                "planned": claims_as_data(planned),
                "history": history_as_data(of_claims),
                "in_doubt": in_doubt,
            }
        )
    elif of_claims and not (every or conditions) and all(it.outcome == "undecided" for it in of_claims):
        said = [it.missing for it in of_claims if it.weakest.n and it.missing]
        not_compared = [it.missing for it in of_claims if not it.weakest.n]
        without = len(not_compared)
        names_why = len(set(not_compared)) == 1
        said += not_compared if names_why else []
        reasons = [f"{why} ({several(said.count(why), 'claim')})" for why in dict.fromkeys(said)]
        reasons += [f"{several(without, 'claim')} not compared"] if without and not names_why else []
        click.echo(f"no claim is decided: {'; '.join(reasons) or 'no difference is clear yet'}")
        if standing:
            click.echo(f"{_of_files(request)}, {standing}")
        if compared := [verdict for verdict in of_claims if verdict.weakest.n]:
            _print(compared, conditions, planned)
        if without and not names_why:
            click.echo("--all lists the claims that are not compared, too, and what is missing")
    elif of_claims:
        if standing:
            click.echo(f"{_of_files(request)}, {standing}")
        _print(of_claims, conditions, planned)
    else:
        which = "run of these claims"
        if of_paper:
            which = "other run" if own else "run of a scenario of the paper"
        click.echo(f"no {which} is finished in {request.store.files.shown}: no claim can be decided")
        for verdict in verdicts_by_file(request.selection.claims_by_file, [], request.store, every=True):
            if changed := history_in_words(verdict):
                click.echo(f"{verdict.claim.key}: {changed}")
    if not as_json:
        for sentence in in_doubt:
            click.echo(sentence)


def _of_files(request: Request) -> str:
    return "claims of this file" if len(request.selection.claims_by_file) < 2 else "claims of these files"


def _say_sealed_files(request: Request, *, to_stderr: bool) -> None:
    """Print the files whose claims are sealed in the store, if there are any."""
    files = sealed_files(request.store)
    if not files:
        return
    which = "those of it" if len(files) == 1 else "those of the first"
    command = request.store.command("claims", files[0])
    click.echo(
        f"sealed claims in {request.store.files.shown}: {listed(files)}; '{command}' decides {which}", err=to_stderr
    )


def _print(verdicts: list[Verdict], conditions: bool, planned: list[Verdict]) -> None:
    """Print a table for each data set and scenario."""
    from rich.console import Console
    from rich.table import Table

    from clops_sweep.analysis.claims.history import history_in_words
    from clops_sweep.analysis.report.claims_section import (
        counts_in_words,
        data_in_words,
        departures_in_words,
        difference_in_words,
        evidence_in_words,
        level_in_words,
        n_of_units,
    )

    console = Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False, markup=False, emoji=False)
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.dataset, verdict.claim.scenario), []).append(verdict)
    for group in groups.values():
        table = Table(box=None, pad_edge=False)
        for heading, least in (("verdict", 13), ("difference", 23), ("level", 7), ("matters", 7), ("n", 8)):
            table.add_column(
                heading, no_wrap=True, justify="left" if heading == "verdict" else "right", min_width=least
            )
        table.add_column("claim", ratio=1)
        lacking: dict[str, list[str]] = {}
        for verdict in group:
            if not verdict.weakest.n:
                lacking.setdefault(verdict.missing, []).append(verdict.claim.key)
                continue
            notes = [*departures_in_words(verdict), *([] if verdict.unit == "patient splits" else [verdict.unit])]
            notes += [f"as tuned: {verdict.as_tuned}"] if verdict.as_tuned else []
            notes += [verdict.missing] if verdict.missing else []
            about = "; ".join(filter(None, [verdict.claim.where, *notes]))
            claim = f"{verdict.claim.sentence} ({about})" if about else verdict.claim.sentence
            interval = difference_in_words(verdict), level_in_words(verdict)
            table.add_row(verdict.outcome, *interval, f"{verdict.claim.matters:.2g}", n_of_units(verdict), claim)
        compared = [verdict for verdict in group if verdict.weakest.n]
        without = f", {len(group) - len(compared)} not compared" if len(compared) < len(group) else ""
        about = ", ".join(data_in_words(group[0]).split(", ")[:2])
        console.print(f"{about}: {counts_in_words(compared)}{without}", style="bold")
        if table.row_count:
            console.print(table)
        for verdict in planned:
            if (verdict.dataset, verdict.claim.scenario) == (group[0].dataset, group[0].claim.scenario):
                runs = several(len(verdict.runs.run_ids), "run")
                words = f"{verdict.outcome} ({evidence_in_words(verdict)})"
                console.print(f"{verdict.claim.key}, the planned verdict, on the {runs} that were sealed: {words}")
        for verdict in group:
            if changed := history_in_words(verdict):
                console.print(f"{verdict.claim.key}: {changed}")
        for missing, keys in lacking.items():
            console.print(f"undecided, {missing}: {', '.join(keys)}")
        for verdict in group if conditions else ():
            counted = "" if verdict.runs.run_ids else "no run is counted; runs of this claim meet: "
            click.echo(f"{verdict.claim.key}: {counted}{verdict.runs.condition}")
    click.echo("matters: the smallest relevant difference of a claim")
    click.echo("verdicts are corrected for the number of claims and apply to these runs only;")
    click.echo('how they are decided: "Claims and statistics" in the documentation (docs/claims.md)')
