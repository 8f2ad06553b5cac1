"""The report of a state, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clops_sweep.errors import warn_user
from clops_sweep.planning.changes import on_earlier_data
from clops_sweep.planning.claim_seal import seal_in_words
from clops_sweep.planning.state import State

from ..tables.tuning import tuned_methods
from .folders import default_folder, remember_files
from .write import ReportPaths, write_report


def report_of(
    state: State, folder: Path | None, *, metrics: Sequence[str], axes: tuple[str, str] | None, journal: bool
) -> ReportPaths:
    """Write the report of a state, by default into the folder of the store that has the name of its search spaces.

    The arguments and errors are those of `write_report`.
    """
    request = state.resolved
    for sentence in on_earlier_data(state):
        warn_user(sentence)
    selection = request.selection
    titles = selection.titles or [space.name for space in selection.given]
    target = folder or default_folder(selection, request.store, titles).path
    keys = dict.fromkeys(config.data_key for config in selection.configs)
    frames = request.data.of_prepared(keys)
    tuned = tuned_methods(state) if state.tuned else ()
    title = " + ".join(titles)
    paths = write_report(
        state.spaces,
        request.store,
        target,
        title=title,
        axes=axes,
        metrics=metrics,
        present=request.edition,
        frames=frames,
        claims=selection.claims_by_file,
        seal=seal_in_words(state),
        keep_verdicts=selection.is_as_declared,
        tuned=tuned,
        notices=on_earlier_data(state),
        journal=journal,
    )
    remember_files(target, selection, request.store)
    return paths
