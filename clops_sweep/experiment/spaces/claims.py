"""Claims about the runs of a search space: the runs compared and the expected difference."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, get_args

from clops_sweep.arguments import arguments_of_class
from clops_sweep.errors import UsageError, listed, nearest, shown
from clops_sweep.experiment.columns import RESULTS
from clops_sweep.experiment.config import RunConfig

OF_TABLES = frozenset(
    {
        *("log_seconds", "unsolved_programmes", "loss_of_first_task", "loss_of_first_task_in_the_end", "worst_task"),
        *("loss_of_lead_i_to_v1", "largest_drop", "first_epoch_of_last_task", "last_epoch_of_last_task"),
        *("kept_during_last_task", "rank_by_beta_is_not_by_s", "final_beta", "share_of_s_between_tasks"),
        *("distance_from_gaussian", "similarity_by_curriculum", "s_of_89_above_67", "similarity_of_89_and_1011"),
        *("signal_to_noise_by_s", "agreement_of_tasks"),
    }
)
"""Measures of claims that are no columns of `runs` (`analysis/claims/run_measures.py`)."""

Settings = Mapping[str, Any]
Says = Literal["more", "same", "not less"]
"""What a claim says about a difference d, with smallest relevant difference m: d > 0, abs(d) < m, d > -m."""


@arguments_of_class
@dataclass(frozen=True)
class Side:
    """One side of a comparison: runs that have the given settings.

    Args:
        name: name of the side, such as "ER, layer norm".
        settings: config fields and options with their values.
    """

    name: str
    settings: Settings = field(hash=False)

    def but(self, name: str, **settings: Any) -> Side:
        """Return a side with some settings changed."""
        return Side(name, {**self.settings, **settings})


@arguments_of_class
@dataclass(frozen=True)
class Contrast:
    """A metric of `ours` minus the metric of `theirs`, within the same patient split and seed.

    In a search-space file, two runs are compared if they agree in every field that neither side names and both runs
    use. The difference is the mean over all such pairs of the file's runs.

    Args:
        ours: the side that is claimed to be higher; None for the number 0.
        theirs: the other side; None for the number 0.
        measure: a column of `runs`, such as "auc" or "test_accuracy", or one of `OF_TABLES`, such as "worst_task".
        of_theirs: the measure of `theirs`, if different.
        places: settings of both sides over which the difference is averaged.
    """

    ours: Side | None
    theirs: Side | None
    measure: str = "auc"
    of_theirs: str | None = None
    places: tuple[Settings, ...] = field(default=(MappingProxyType({}),), hash=False)

    @property
    def sides(self) -> tuple[Side | None, Side | None]:
        """The two sides: `ours`, then `theirs`."""
        return self.ours, self.theirs


@arguments_of_class
@dataclass(frozen=True)
class Claim:
    """A claim that runs can decide, by the rule in docs/claims.md.

    Example:
        >>> er, ewc = Side("ER", {"strategy": "er"}), Side("EWC", {"strategy": "ewc"})
        >>> claim = Claim("er_is_better", "ER is above EWC", Contrast(er, ewc, "test_auc"))
        >>> claim.says
        'more'

    Args:
        key: its name, such as "layer_norm_helps_er".
        sentence: the claim in words.
        contrasts: one comparison, or several that must all hold.
        says: "more" (d > 0), "same" (abs(d) < m) or "not less" (d > -m) of each difference d.
        matters: m, the smallest difference that matters, in the measure's unit.
        where: where the claim was made, such as "Qiao et al. 2024, table 2".
        scenario: the scenario of the claim; empty for any.
        dataset: the data set of the claim; None for any.
        figures: figures of a report that show it, the best first, without the search space's name.
    """

    key: str
    sentence: str
    contrasts: tuple[Contrast, ...]
    says: Says = "more"
    matters: float = 0.02
    where: str = ""
    scenario: str = ""
    dataset: str | None = None
    figures: tuple[str, ...] = ("metrics", "heatmap-auc", "results")

    def __post_init__(self) -> None:
        given: Any = self.contrasts
        if isinstance(given, Contrast):
            object.__setattr__(self, "contrasts", (given,))


def has(config: RunConfig, settings: Settings) -> bool:
    """Return whether a run has some settings; an option that it does not use counts as another value."""
    return all(_plain(config.get(name)) == _plain(value) for name, value in settings.items())


def check_claims(claims: object, configs: Collection[RunConfig]) -> tuple[Claim, ...]:
    """Return the claims of a search-space file, checked against the runs that it requests.

    Raises:
        UsageError: not a list of claims, a claim is invalid, or no run of the file matches one of its sides.
    """
    if not isinstance(claims, list | tuple) or not all(isinstance(claim, Claim) for claim in claims):
        raise UsageError("CLAIMS: expected a list of clops_sweep.Claim")
    keys = [claim.key for claim in claims]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise UsageError(f"CLAIMS: two claims have the key {twice[0]!r}; expected different keys")
    for claim in claims:
        _check(claim, configs)
    return tuple(claims)


def _check(claim: Claim, configs: Collection[RunConfig]) -> None:
    where = f"claim {shown(claim.key)}"
    if claim.says not in get_args(Says):
        raise UsageError(f"{where}: says = {shown(claim.says)}; expected {listed(get_args(Says))}")
    if not isinstance(claim.matters, int | float) or not claim.matters > 0:
        raise UsageError(f"{where}: matters = {shown(claim.matters)}; expected a number above 0")
    about = [
        config
        for config in configs
        if claim.scenario in ("", config.scenario) and claim.dataset in (None, config.dataset)
    ]
    if not claim.contrasts or not all(isinstance(contrast, Contrast) for contrast in claim.contrasts):
        raise UsageError(f"{where}: contrasts: expected a Contrast or several")
    for contrast in claim.contrasts:
        if contrast.ours is None and contrast.theirs is None:
            raise UsageError(f"{where}: both sides are the number 0; expected a Side")
        for measure in filter(None, (contrast.measure, contrast.of_theirs)):
            if measure not in (*RESULTS, *OF_TABLES):
                similar = nearest(str(measure), (*RESULTS, *OF_TABLES))
                raise UsageError(
                    f"{where}: measure {shown(measure)} is not a metric of runs{similar}; expected one such as auc"
                )
        for side in filter(None, contrast.sides):
            if not any(has(config, side.settings) for config in about):
                raise UsageError(
                    f"{where}: no run of this file has {_in_words(side.settings)} (side {shown(side.name)}); expected "
                    "settings of requested runs"
                )


def claims_as_json(claims: Sequence[Claim]) -> dict[str, Any]:
    """Return claims by key as JSON values, without their `figures`."""
    by_key: dict[str, Any] = {}
    for claim in claims:
        contrasts = [
            {
                "ours": _side(contrast.ours),
                "theirs": _side(contrast.theirs),
                "measure": contrast.measure,
                "of_theirs": contrast.of_theirs,
            }
            for contrast in claim.contrasts
        ]
        words = {name: getattr(claim, name) for name in ("sentence", "says", "matters", "where", "scenario", "dataset")}
        by_key[claim.key] = {**words, "contrasts": contrasts}
    return by_key


def _side(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {"name": side.name, "settings": json.loads(json.dumps(dict(side.settings), default=str))}


def sha256(value: object) -> str:
    """Return the SHA-256 of a value as canonical JSON, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


def _in_words(settings: Settings) -> str:
    return ", ".join(f"{name} = {shown(value)}" for name, value in settings.items())
