"""Studies that were made on another edition of the data than the prepared one: they can be read, but not continued."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from clops_sweep.data.catalog import DataKey
from clops_sweep.errors import UsageError, listed, option
from clops_sweep.experiment.columns import config_from_row
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.request import Request
from clops_sweep.planning.searches import Search


def edition_to_read(request: Request, searches: Sequence[Search]) -> Request:
    """Return a request whose runs are looked up on the edition of the data that its studies were made on.

    It is the same request if no study has other data, or if the store has requested runs of the prepared data, which
    tables show then.

    Args:
        request: the request, with the configurations that searches have chosen.
        searches: its searches.
    """
    of_trials: set[str] = set()
    for search in searches:
        if search.record is not None and search.record.has_other_data:
            of_trials.update(search.run_ids)
    if not of_trials:
        return request
    columns = request.store.columns()
    if "prepared_hash" not in columns:
        return request
    rows = request.store.rows("runs")
    editions = {row["dataset"]: row["prepared_hash"] for row in rows if row["run_id"] in of_trials}
    read_on: dict[DataKey, str] = {}
    for row in rows:
        if row["prepared_hash"] is None or row["prepared_hash"] != editions.get(row["dataset"]):
            continue
        with suppress(UsageError):  # a run with a plug-in that is not registered, so not of this request
            read_on[config_from_row(row).data_key] = row["data_hash"]
    changed = {key.dataset for key, content in read_on.items() if request.data.data_hash(key) not in (None, content)}
    if not changed or _has_runs_of(request, changed):
        return request
    shown = {dataset: edition for dataset, edition in editions.items() if edition is not None}
    return replace(request, read_on=read_on, shown=shown)


def _has_runs_of(request: Request, datasets: set[str]) -> bool:
    """Return whether requested runs of the prepared data of some data sets have ended."""
    ended = [run for run in request.plan().asked if run.state in ("finished", "failed")]
    return any(run.config.dataset in datasets for run in ended)


def refusal(name: str) -> str:
    """Return the sentence with which a launch of a search space is refused whose study was made on other data."""
    return (
        f"search space {name!r}: its study was made on an earlier edition of the data, which have changed since: a "
        f"launch is refused; give the space another name to tune on the present data, or take other {option('results')}"
    )


def may_be_refused(name: str, datasets: Sequence[str]) -> str:
    """Return a sentence about a search space with a study whose data have changed since they were prepared.

    Args:
        name: name of the search space.
        datasets: names of the data sets that changed.
    """
    return (
        f"search space {name!r}: its study was made before {listed(datasets)} changed: a launch prepares them again, "
        "and is refused if they differ; give the space another name to tune on the present data, or take other "
        f"{option('results')}"
    )


def on_other_data_in_words(name: str, request: Request, reported: SearchSpace | None = None) -> str:
    """Return a sentence about a search space whose study was made on another edition of the data.

    Args:
        name: name of the search space.
        request: the request, as `edition_to_read` returned it.
        reported: the space of the configurations that were chosen, if it is tuned and they are known.
    """
    words = refusal(name)
    if request.read_on:
        return f"{words}; trials and runs of the earlier edition are shown"
    runs = () if reported is None else replace(request, selection=Selection((reported,))).plan().asked
    if any(run.state in ("finished", "failed") for run in runs):
        return f"{words}; trials of the earlier edition are shown beside reported runs of the present data"
    return f"{words}; trials of the earlier edition are shown"
