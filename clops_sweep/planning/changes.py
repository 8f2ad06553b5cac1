"""Code that changed since it computed finished runs of a request."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Final

from clops_sweep.data.origins import ORIGINS
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.data.prepared.freshness import changes_in_words, prepared_for
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError, several
from clops_sweep.experiment.plugins.braindecode import PREFIX, VERSION
from clops_sweep.experiment.provenance import (
    PROVENANCE,
    changed_code,
    changed_encoders,
    changed_network,
    changed_plugins,
    plugins_of,
)
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore

KEPT_IF_EQUAL: Final = (
    "stored runs count as finished if the frames prove equal, and else are of the former data and computed anew"
)
"""What preparing changed data again means for stored runs."""


def changes(state: State) -> list[str]:
    """Return a sentence for each plug-in, encoder and library that changed since finished runs of a request used it."""
    return [*_changed_plugins(state), *_changed_encoders(state.resolved), *_other_versions(state.resolved)]


def changes_since_runs(state: State) -> list[str]:
    """Return a sentence for each data set, plug-in, encoder and library that changed since stored runs used it."""
    return [*changed_data(state.resolved), *on_earlier_data(state), *changes(state)]


def on_earlier_data(state: State) -> list[str]:
    """Return a sentence for each study and data set whose runs are shown on an earlier edition of the data."""
    return [*state.on_other_data, *runs_of_earlier_editions(state)]


def _of_other_project(data: PreparedData, name: str) -> str:
    """Return that frames were prepared for a data set of another project, as the end of a sentence; else ""."""
    other = data.other_project(name)
    return "" if other is None else f"; its frames {prepared_for(other)}"


def changed_data(request: Request) -> list[str]:
    """Return a sentence for each data set of a request that changed since it was prepared on this machine."""
    away = dict.fromkeys(config.dataset for config in request.selection.configs if request.data_hash(config) is None)
    sentences = []
    for name in away:
        if request.data.is_outdated(name):
            changed = changes_in_words(request.data.changes(name)) or "its files or code"
            sentences.append(
                f"data set {name} changed since it was prepared ({changed}); a launch or "
                f"'{data_command('prepare', name, prepared_root=request.data.root, data_root=request.data.source)}' "
                f"prepares it again: {KEPT_IF_EQUAL}{_of_other_project(request.data, name)}"
            )
    return sentences


def runs_of_earlier_editions(state: State) -> list[str]:
    """Return a sentence for each data set of grids that was prepared anew and has no finished run since.

    Its stored runs are of earlier editions of the data, which tables show as long as there are no others.
    """
    request = state.resolved
    if state.searches:
        return []
    with_runs = {run.config.dataset for run in state.plan.of("finished")}
    present = {}
    for dataset in dict.fromkeys(config.dataset for config in request.selection.configs):
        prepared = request.data.prepared_hash(dataset)
        if dataset not in with_runs and prepared is not None:
            present[dataset] = prepared
    if not present or "prepared_hash" not in request.store.columns():
        return []
    earlier = Counter[str]()
    for row in request.store.rows("runs", ["dataset", "status", "prepared_hash"]):
        dataset, prepared = row["dataset"], row["prepared_hash"]
        if row["status"] == "finished" and dataset in present and prepared not in (None, present[dataset]):
            earlier[dataset] += 1
    sentences = []
    for dataset, count in sorted(earlier.items()):
        moved = request.data.people_moved(
            config.data_key for config in request.selection.configs if config.dataset == dataset
        )
        sentences.append(
            f"data set {dataset} was prepared anew since its {several(count, 'stored run')}: no run of the present "
            f"data is finished, so tables show the earlier edition{f'; {moved}' if moved else ''}"
        )
    return sentences


def change_of_network(store: RunStore, run_id: str) -> str | None:
    """Return a sentence if the code of the network of a stored run has changed since; else None."""
    (row,) = store.rows("runs", ["run_id", *PROVENANCE], [run_id])
    return changed_network(row)


def check_computed_again(state: State) -> None:
    """Check that the code of finished runs, which are computed again for files to keep, has not changed.

    Otherwise their numbers would be replaced by those of other code, or their models would belong to other numbers.

    Raises:
        UsageError: it has changed; names a plug-in and a run.
    """
    store = state.resolved.store
    again = {str(run.run_id) for run in state.plan.of("pending")} & store.without_kept()
    if not ORIGINS or not again:
        return
    for row in store.rows("runs", ["run_id", *PROVENANCE], sorted(again)):
        for field, name, file in changed_plugins(row):
            run_id = row["run_id"]
            delete = shlex.join(["clops-sweep", "delete", store.files.shown, "--where", f"run_id == '{run_id}'"])
            raise UsageError(
                f"{field} {name!r}: its code ({file}) has changed since run {run_id}, which is finished and lacks only "
                "files to keep; computed again it could get other numbers; restore the code, register the new one "
                f"under another name, or delete the run: {delete}"
            )


def _changed_plugins(state: State) -> list[str]:
    request = state.resolved
    if not ORIGINS or not any(plugins_of(config) for config in request.selection.configs):
        return []
    finished = [str(run.run_id) for run in state.plan.of("finished")]
    for search in state.searches:
        finished += [run_id for run_id in search.run_ids if run_id not in state.failed]
    return changed_code(request.store.rows("runs", PROVENANCE, finished)) if finished else []


def _changed_encoders(request: Request) -> list[str]:
    encoders = request.data.encoders
    names = {config.encoder for config in request.selection.configs}
    now = {name: encoders.identity(name) for name in names if isinstance(name, str)} if encoders is not None else {}
    if not now:
        return []
    return changed_encoders(request.store.rows("runs", ["encoder", "encoder_hash"]), now)


def _other_versions(request: Request) -> list[str]:
    """Return a sentence for each network of braindecode whose stored runs are of another version of the package."""
    configs = request.selection.configs
    now = {config.network: config.get(VERSION) for config in configs if config.network.startswith(PREFIX)}
    if not now or VERSION not in request.store.columns():
        return []
    counts = Counter[tuple[str, str]]()
    for row in request.store.rows("runs", ["network", "status", VERSION]):
        version = row[VERSION]
        if row["network"] in now and row["status"] == "finished" and version not in (None, now[row["network"]]):
            counts[row["network"], version] += 1
    return [
        f"network {name!r}: {several(count, 'stored run')} of braindecode {version}, and {now[name]} is installed; its "
        "runs are computed anew, under other ids"
        for (name, version), count in sorted(counts.items())
    ]
