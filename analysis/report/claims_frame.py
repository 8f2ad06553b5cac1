"""The verdicts on the claims of a search space, for pandas."""

from __future__ import annotations

import pandas as pd

from clops_sweep.errors import UsageError, warn_user
from clops_sweep.planning.claim_seal import seal_in_words
from clops_sweep.planning.state import State

from ..as_stored import data_keys
from ..claims.history import history_as_data, verdicts_by_file
from ..claims.verdicts import Verdict
from ..collect import collect
from ..tables.best_terminal import state_in_doubt
from .claims_section import claims_as_data, claims_in_words

_FIRST = ("claim", "verdict", "difference", "low", "high", "level", "n", "unit")


def verdicts_of(state: State, *, record: bool = False) -> list[Verdict]:
    """Return the verdicts on the claims of the search-space files of a state, those without runs last.

    Args:
        state: the state.
        record: whether the store keeps them (`claims.looks`), if they are about the files as declared.
    """
    request = state.resolved
    grids = [space for space in state.spaces if space.search is None]
    experiments = collect(grids, request.store.read("runs"), present=request.edition)
    frames = request.data.of_prepared(data_keys(experiments))
    return verdicts_by_file(
        request.selection.claims_by_file,
        experiments,
        request.store,
        frames,
        every=True,
        record=record and request.selection.is_as_declared,
    )


def all_claims_in_words(state: State) -> list[str]:
    """Return the verdicts on the claims of a state as the headline of its report has them, a sentence for each claim.

    Empty without claims. If they cannot be decided, the only sentence says why.
    """
    if not state.asked.selection.claims:
        return []
    try:
        decided = verdicts_of(state)
        files = len(state.asked.selection.claims_by_file)
        return claims_in_words(decided, seal_in_words(state), len(decided), files)
    except UsageError as error:  # the report refuses them, too
        return [f"Claims: {error}."]


def claims_of(state: State) -> pd.DataFrame:
    """Return a row for each contrast of each claim of a state. The columns are those of `clops_sweep.claims`."""
    request = state.resolved
    for sentence in state.on_other_data:
        warn_user(sentence)
    verdicts = verdicts_of(state, record=True)
    table = pd.DataFrame(claims_as_data(verdicts))
    in_doubt = state_in_doubt(state)
    for sentence in in_doubt:
        warn_user(sentence)
    others = [column for column in table.columns if column not in _FIRST]
    table = table[[*_FIRST, *others]]
    table.attrs["in_doubt"] = in_doubt
    if request.selection.files:
        table.attrs["seal"] = seal_in_words(state)
        table.attrs["history"] = history_as_data(verdicts)
    return table
