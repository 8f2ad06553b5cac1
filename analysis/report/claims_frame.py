"""The verdicts on the claims of a search space, for pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd

from clops_sweep.experiment.spaces.claims import Claim
from clops_sweep.planning.claim_seal import seal_in_words
from clops_sweep.planning.state import State

from ..as_stored import data_keys
from ..claims.verdicts import verdicts
from ..collect import collect
from .claims_section import claims_as_data, minus

_FIRST = ("claim", "verdict", "difference", "low", "high", "level", "n", "unit")


def claims_of(state: State) -> pd.DataFrame:
    """Return a row for each contrast of each claim of a state. The columns are those of `clops_sweep.claims`."""
    request = state.resolved
    grids = [space for space in state.spaces if space.search is None]
    experiments = collect(grids, request.store.read("runs"))
    frames = request.data.of_prepared(data_keys(experiments))
    found = verdicts(experiments, request.store, frames, request.selection.claims)
    with_runs = {verdict.claim.key for verdict in found}
    rows = claims_as_data(found)
    for claim in request.selection.claims:
        if claim.key not in with_runs:
            rows += _undecided(claim)
    table = pd.DataFrame(rows)
    others = [column for column in table.columns if column not in _FIRST]
    table = table[[*_FIRST, *others]]
    if request.selection.files:
        table.attrs["seal"] = seal_in_words(state)
    return table


def _undecided(claim: Claim) -> list[dict[str, object]]:
    """Return a row for each contrast of a claim without finished runs."""
    rows: list[dict[str, object]] = []
    for contrast in claim.contrasts:
        names = [side.name for side in contrast.sides if side is not None]
        row: dict[str, object] = {
            "claim": claim.key,
            "sentence": claim.sentence,
            "paper": claim.where,
            "scenario": claim.scenario,
            "dataset": None,
            "verdict": "undecided",
            "says": claim.says,
            "matters": claim.matters,
            "measure": contrast.measure,
            "minus": minus(contrast),
            "difference": np.nan,
            "low": np.nan,
            "high": np.nan,
            "level": np.nan,
            "n": 0,
            "unit": "",
            "p_for_holm": np.nan,
            "p_against_holm": np.nan,
            "missing": f"no finished run of {' and '.join(names)}",
            "where": "",
        }
        rows.append(row)
    return rows
