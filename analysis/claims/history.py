"""Verdicts on the claims of search-space files, with the earlier ones that the store keeps.

Each time that the claims of a file are decided, the verdicts that differ from the ones before are added to the store.
So a verdict that changes with more runs is visible.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from math import isfinite
from typing import Any

import clops_sweep
from clops_sweep.errors import several
from clops_sweep.experiment.spaces.claims import Claim, FileClaims, claims_as_json, sha256
from clops_sweep.planning.claim_seal import planned_runs
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore

from ..collect import Experiment
from ..figures.frames import Frames
from .looks import Look, keep, kept
from .verdicts import Verdict, verdicts, without_runs


def verdicts_by_file(
    files: Sequence[FileClaims],
    experiments: Sequence[Experiment],
    store: RunStore,
    frames: Sequence[Frames] = (),
    *,
    every: bool = False,
    record: bool = False,
) -> list[Verdict]:
    """Return the verdicts on the claims of each file, decided on the runs of its own search spaces.

    So they do not change with the files that are named beside it.

    Args:
        files: the claims of each file, with its search spaces.
        experiments: search spaces and their runs, without searches.
        store: the store with the runs' tables.
        frames: as in `verdicts`.
        every: whether to return claims without runs, too, behind the others of their file.
        record: whether to add verdicts that differ from the last ones to those that the store keeps (`looks`).

    Raises:
        DamagedStore: a file with earlier verdicts was edited.
    """
    decided: list[Verdict] = []
    for file in files:
        own = [experiment for experiment in experiments if experiment.name in file.spaces]
        of_file = _with_history(verdicts(own, store, frames, file.claims), file.spaces, store)
        if record:
            of_file = _recorded(of_file, file.spaces, store)
        decided += of_file
        with_runs = {verdict.claim.key for verdict in of_file}
        if every:
            others = [without_runs(claim) for claim in file.claims if claim.key not in with_runs]
            decided += _with_history(others, file.spaces, store)
    return decided


def planned_verdicts(state: State, experiments: Sequence[Experiment], frames: Sequence[Frames] = ()) -> list[Verdict]:
    """Return the verdicts on the runs that a seal planned, if runs were added since; none otherwise.

    Args:
        state: the state of the files with claims.
        experiments: see `verdicts_by_file`.
        frames: as in `verdicts`.

    Raises:
        DamagedStore: the seal, or a file with earlier verdicts, was edited.
    """
    planned = planned_runs(state)
    if not planned:
        return []
    restricted = []
    for experiment in experiments:
        runs = experiment.runs[experiment.runs["run_id"].isin(planned)]
        restricted.append(replace(experiment, runs=runs.reset_index(drop=True)))
    request = state.resolved
    of_planned = verdicts_by_file(request.selection.claims_by_file, restricted, request.store, frames)
    return [verdict for verdict in of_planned if verdict.weakest.n]


def _with_history(verdicts: Sequence[Verdict], spaces: Collection[str], store: RunStore) -> list[Verdict]:
    """Return verdicts on the claims of one file, each with the earlier ones that the store keeps.

    Args:
        verdicts: the verdicts.
        spaces: the names of the search spaces of the file.
        store: the store.

    Raises:
        DamagedStore: a file with earlier verdicts was edited.
    """
    looks = list(kept(store))
    if not looks:
        return list(verdicts)
    known = []
    for verdict in verdicts:
        now = _look(verdict, spaces)
        about = [look for look in looks if look.is_about(now)]
        known.append(replace(verdict, earlier=tuple(about)))
    return known


def _recorded(verdicts: Sequence[Verdict], spaces: Collection[str], store: RunStore) -> list[Verdict]:
    """Add verdicts on the claims of one file to the store if they differ from its last ones, and return all with these.

    Verdicts that compare nothing are left out. A store that cannot be written to is left as it is, with a warning.

    Args:
        verdicts: the verdicts, with the earlier ones.
        spaces: the names of the search spaces of the file.
        store: the store.
    """
    new: list[Look] = []
    known: list[Verdict] = []
    for verdict in verdicts:
        now = _look(verdict, spaces)
        is_new = bool(now.n) and not (verdict.earlier and verdict.earlier[-1].is_like(now))
        new += [now] if is_new else []
        known.append(replace(verdict, earlier=(*verdict.earlier, now)) if is_new else verdict)
    return known if not new or keep(new, store) else list(verdicts)


def history_in_words(verdict: Verdict) -> str:
    """Return the earlier outcomes of a verdict that has changed; empty if it has not.

    "decided as 'holds' on 2026-11-30 with 5 pairs; now undecided with 10 pairs".
    """
    earlier: list[Look] = []
    for look in verdict.earlier:
        if not earlier or earlier[-1].outcome != look.outcome:
            earlier.append(look)
    if earlier and earlier[-1].outcome == verdict.outcome:
        earlier.pop()
    if not earlier:
        return ""
    definition = _definition(verdict.claim)
    parts = []
    for look in earlier:
        outcome = "undecided" if look.outcome == "undecided" else f"decided as {look.outcome!r}"
        edited = "" if look.definition == definition else ", before the claim was edited"
        parts.append(f"{outcome} on {look.day} with {several(look.pairs, 'pair')}{edited}")
    pairs = _pairs(verdict)
    outcome = "undecided" if verdict.outcome == "undecided" else repr(verdict.outcome)
    now = f"now {outcome} with {several(pairs, 'pair')}"
    last = earlier[-1]
    if last.pairs == pairs:
        now += " of the same runs" if set(last.run_ids) == set(verdict.runs.run_ids) else " of other runs"
    return f"{'; '.join(parts)}; {now}"


def history_as_data(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return the earlier verdicts that a store keeps, oldest first, without the ids of their runs."""
    rows = []
    for verdict in verdicts:
        for look in verdict.earlier:
            row = asdict(look) | {"runs": len(look.run_ids)}
            del row["run_ids"], row["definition"], row["spaces"]
            rows.append(row)
    return sorted(rows, key=lambda row: str(row["at"]))


def _look(verdict: Verdict, spaces: Collection[str]) -> Look:
    """Return a verdict as it is shown now."""
    weakest = verdict.weakest
    return Look(
        at=datetime.now(UTC).isoformat(timespec="microseconds"),
        version=clops_sweep.__version__,
        claim=verdict.claim.key,
        definition=_definition(verdict.claim),
        spaces=tuple(sorted(spaces)),
        dataset=verdict.dataset,
        scenario=verdict.claim.scenario,
        outcome=verdict.outcome,
        n=weakest.n,
        unit=verdict.unit,
        pairs=_pairs(verdict),
        difference=_finite(weakest.mean),
        low=_finite(weakest.interval.low),
        high=_finite(weakest.interval.high),
        level=_finite(weakest.interval.level),
        p_for=_finite(verdict.p_for),
        p_against=_finite(verdict.p_against),
        run_ids=tuple(sorted(verdict.runs.run_ids)),
    )


def _definition(claim: Claim) -> str:
    """Return a digest of what a claim says. Data set and scenario, which its runs may decide, are apart."""
    return sha256(claims_as_json([claim], ["dataset", "scenario"]))


def _pairs(verdict: Verdict) -> int:
    """Return the number of pairs of split and seed in the difference that supports the claim least."""
    for difference, runs in zip(verdict.evidence, verdict.runs.contrasts, strict=True):
        if difference is verdict.weakest:
            return len(runs.pairs)
    return 0


def _finite(value: float) -> float | None:
    return float(value) if isfinite(value) else None
