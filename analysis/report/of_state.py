"""The report of a state, for notebooks and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clops_sweep.experiment.spaces.selection import file_name
from clops_sweep.planning.claim_seal import seal_in_words
from clops_sweep.planning.state import State

from ..tables.tuning import tuned_methods
from .write import ReportPaths, write_report


def report_of(
    state: State, folder: Path | None, *, metrics: Sequence[str], axes: tuple[str, str] | None, journal: bool
) -> ReportPaths:
    """Write the report of a state, by default into the folder of the store that has the name of its search spaces.

    The arguments and errors are those of `write_report`.
    """
    request = state.resolved
    selection = request.selection
    beside = request.store.files.folder or Path()
    names = selection.titles or [space.name for space in selection.spaces]
    name = file_name(names[0]) + f"+{len(names) - 1}" * (len(names) > 1)
    keys = dict.fromkeys(config.data_key for config in selection.configs)
    return write_report(
        state.spaces,
        request.store,
        folder or beside / "report" / name,
        axes=axes,
        metrics=metrics,
        frames=request.data.of_prepared(keys),
        claims=selection.claims,
        seal=seal_in_words(state),
        tuned=tuned_methods(state) if state.tuned else (),
        journal=journal,
    )
