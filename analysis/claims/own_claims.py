"""Verdicts on the claims of a search-space file, from the runs that it requests."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.claims import Claim, Contrast, Side, has
from clops_sweep.store.run_store import RunStore

from ..collect import Cell, Experiment
from ..figures.tracings import Frames
from ..statistics import Replicate, splits_of
from .claim_runs import ClaimRuns, ContrastRuns, FinishedRuns, Ids, equals
from .verdicts import Values, Verdict, decided

_REPLICATED = ("seed", "weight_seed", "split_seed", "split")


def own_verdicts(
    experiments: Sequence[Experiment], store: RunStore, claims: Sequence[Claim], frames: Sequence[Frames] = ()
) -> list[Verdict]:
    """Return the verdicts on declared claims, for every data set and scenario of the runs.

    Two cells are compared if they agree in every field that neither side names and both use. p-values are adjusted by
    Holm over the claims on a data set.

    Args:
        experiments: search spaces without searches, with their runs.
        store: the store with the runs' tables.
        claims: the claims.
        frames: prepared frames, for measures of signals.
    """
    finished = FinishedRuns(experiments, store)
    cells: dict[tuple[str, str], list[tuple[Cell, Ids]]] = {}
    for experiment in experiments:
        ids = _ids(experiment)
        for place, cell in enumerate(experiment.cells):
            cells.setdefault((cell.config.dataset, cell.config.scenario), []).append((cell, ids.get(place, {})))
    tested: dict[str, list[ClaimRuns]] = {}
    for (dataset, scenario), there in cells.items():
        for claim in claims:
            if claim.scenario in ("", scenario) and claim.dataset in (None, dataset):
                about = replace(claim, scenario=scenario)
                contrasts = tuple(_runs(it, there, finished, dataset, scenario) for it in claim.contrasts)
                tested.setdefault(dataset, []).append(ClaimRuns(about, dataset, contrasts, _condition(about), {}))
    found: list[Verdict] = []
    for runs in tested.values():
        values = Values(finished, runs, frames)
        found += decided([(it, [values.evidence(contrast, it.claim) for contrast in it.contrasts]) for it in runs])
    return found


def _ids(experiment: Experiment) -> Mapping[int, dict[Replicate, str]]:
    """Return the ids of the finished runs of each cell, by replicate."""
    runs = experiment.runs[experiment.runs["status"] == "finished"]
    found: dict[int, dict[Replicate, str]] = {}
    columns = (runs["cell"].tolist(), splits_of(runs), runs["seed"].tolist(), runs["run_id"].tolist())
    for cell, split, seed, run_id in zip(*columns, strict=True):
        found.setdefault(cell, {})[split, seed] = run_id
    return found


def _runs(
    contrast: Contrast, cells: Sequence[tuple[Cell, Ids]], finished: FinishedRuns, dataset: str, scenario: str
) -> ContrastRuns:
    ours, theirs = (
        None if side is None else [it for it in cells if has(it[0].written, side.settings)] for side in contrast.sides
    )
    if ours is None or theirs is None:
        known = (ours if ours is not None else theirs) or []
        nothing = [dict.fromkeys(ids) for _, ids in known]
        there = [ids for _, ids in known]
        by_place = list(zip(there, nothing, strict=True) if theirs is None else zip(nothing, there, strict=True))
        return finished.paired(contrast, by_place, dataset, scenario)
    named = {name for side in contrast.sides if side is not None for name in side.settings}
    alike: dict[Hashable, list[tuple[Cell, Ids]]] = {}
    for cell, ids in theirs:
        alike.setdefault(_fields(cell.config, named), []).append((cell, ids))
    by_place = [
        (of_ours, of_theirs)
        for cell, of_ours in ours
        for other, of_theirs in alike.get(_fields(cell.config, named), ())
        if _same_options(cell.config, other.config, named)
    ]
    if not by_place and ours and theirs:
        return ContrastRuns(contrast, {}, "the runs of the two sides differ in other fields too")
    return finished.paired(contrast, by_place or [({}, {})], dataset, scenario)


def _fields(config: RunConfig, named: set[str]) -> Hashable:
    """Return the config fields in which two compared runs must agree."""
    names = (name for name in RunConfig.model_fields if name not in named and name not in _REPLICATED)
    return tuple(repr(getattr(config, name)) for name in names)


def _same_options(one: RunConfig, other: RunConfig, named: set[str]) -> bool:
    """Return whether two runs agree in the options that both use."""
    both = (one.options.keys() & other.options.keys()) - named
    return all(one.options[name] == other.options[name] for name in both)


def _condition(claim: Claim) -> str:
    """Return the condition on config fields that selects a claim's runs."""
    sides = [_that_are(side) for contrast in claim.contrasts for side in contrast.sides if side is not None]
    return " or ".join(f"({it})" for it in dict.fromkeys(sides))


def _that_are(side: Side) -> str:
    return " and ".join(equals(name, [value]) for name, value in side.settings.items())
