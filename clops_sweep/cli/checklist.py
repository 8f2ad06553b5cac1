"""`clops-sweep checklist`: the REFORMS checklist of a study, filled in from the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clops_sweep.cli.options import NotEmptyPath, json_option, plugins_option, print_json
from clops_sweep.cli.request_options import launch_command, request_options
from clops_sweep.errors import UsageError
from clops_sweep.planning.claim_seal import seal_in_words
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State

if TYPE_CHECKING:
    from clops_sweep.data.prepared.prepared_folder import PreparedSet


@click.command()
@request_options(required=False)
@plugins_option
@click.option(
    "-o", "--output", type=NotEmptyPath(), metavar="FILE", help="Write Markdown to this file instead of printing it."
)
@json_option
def checklist(request: Request, output: Path | None, as_json: bool) -> None:
    """Write the REFORMS checklist (32 items) as Markdown, filled in from the finished runs.

    Without a search-space file, all finished runs of the store count. Items that only the authors know are marked "To
    be filled in".
    """
    from clops_sweep.analysis.report.checklist import Study
    from clops_sweep.analysis.report.checklist import checklist as written
    from clops_sweep.data.files.folder import one_sentence

    state = State.of(request)
    for sentence in state.on_other_data:
        click.echo(f"clops-sweep: {sentence}", err=True)
    request, store = state.resolved, state.resolved.store
    store.files.check_is_there()
    given = bool(request.selection.given)
    runs = store.read("runs", sorted(state.may_have_results) if given else None)
    runs = runs[runs["status"] == "finished"]
    if runs.empty:
        raise UsageError(f"{store.files.shown}: none of the runs is finished, so nothing can be filled in")
    first = str(runs["run_id"].iloc[0])
    study = Study(
        store.files.shown,
        runs,
        launch_command(request) if request.selection.files else store.command("show", first),
        files=[str(file) for file in request.selection.files],
        seal=seal_in_words(state) if request.selection.claims else "",
        prepared=_prepared(request, runs.drop_duplicates("dataset").to_dict("records")),
        studies=[search.record for search in state.searches if search.record is not None],
        tuned=state.tuned,
        reported={str(run.run_id) for run in state.plan.asked} if given else None,
        keeps_predictions=first in store.predicted(),
    )
    text = written(study)
    if output is not None:
        with one_sentence(output):
            output.write_text(text, encoding="utf-8")
    if as_json:
        print_json({"results": store.files.shown, "file": output, "checklist": text})
    else:
        click.echo(text.rstrip() if output is None else f"checklist: {output}")


def _prepared(request: Request, rows: Iterable[Mapping[Any, Any]]) -> dict[str, PreparedSet]:
    """Return the prepared data sets by name, where the data hash equals that of a run."""
    from clops_sweep.data.prepared.prepared_folder import register_prepared
    from clops_sweep.data.preparing.still_equal import current_set
    from clops_sweep.experiment.columns import config_from_row

    found = {}
    for row in rows:
        register_prepared(row["dataset"], request.data.root)
        with suppress(UsageError):  # the run used an unregistered plug-in
            prepared = current_set(row["dataset"], request.data.root, request.data.source)
            if prepared is not None and request.data.data_hash(config_from_row(row).data_key) == row["data_hash"]:
                found[row["dataset"]] = prepared
    return found
