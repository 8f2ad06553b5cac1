"""Claims about the runs of a search space: the runs compared and the expected difference."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, get_args

from clops_sweep.arguments import arguments_of_class
from clops_sweep.errors import UsageError, listed, nearest, prefixed, shown
from clops_sweep.experiment.columns import RESULTS
from clops_sweep.experiment.config import RunConfig, known_key

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
    use. Reported runs of a tuned space may also differ in the fields that the search of either method chose. The
    difference is the mean over all such pairs of the file's runs.

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


@dataclass(frozen=True)
class FileClaims:
    """The claims of a search-space file, which are about the runs of its search spaces alone.

    Attributes:
        claims: the claims.
        spaces: the names of the search spaces.
    """

    claims: tuple[Claim, ...]
    spaces: frozenset[str]


def has(config: RunConfig, settings: Settings) -> bool:
    """Return whether a run has some settings; an option that it does not use counts as another value."""
    return all(as_tuples(config.get(name)) == as_tuples(value) for name, value in settings.items())


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
        _check_runs(where, contrast, about)


def _check_runs(where: str, contrast: Contrast, configs: Collection[RunConfig]) -> None:
    """Check that some run has the settings of each side, at each place.

    Raises:
        UsageError: no run has.
    """
    places = contrast.places
    if not isinstance(places, list | tuple) or not places or not all(isinstance(place, Mapping) for place in places):
        raise UsageError(f"{where}: places = {shown(places)}: expected one mapping of settings or several")
    for side in filter(None, contrast.sides):
        if not any(has(config, side.settings) for config in configs):
            raise UsageError(
                f"{where}: no run of this file has {_in_words(side.settings)} (side {shown(side.name)}); expected "
                "settings of requested runs"
            )
        for place in places:
            with prefixed(f"{where}: place {_in_words(place)}"):
                for name in place:
                    known_key(name)
                if not any(has(config, {**side.settings, **place}) for config in configs):
                    raise UsageError(f"no run of side {shown(side.name)} has it; expected settings of requested runs")


def claims_as_json(claims: Sequence[Claim], without: Collection[str] = ()) -> dict[str, Any]:
    """Return claims by key as JSON values, with every field except `figures`.

    Args:
        claims: the claims.
        without: names of fields to leave out.
    """
    left_out = {"key", "figures", *without}

    def as_json(value: object) -> Any:
        if isinstance(value, Claim | Contrast | Side):
            return {name: getattr(value, name) for name in _names(value) if name not in left_out}
        return dict(value) if isinstance(value, Mapping) else str(value)

    by_key: dict[str, Any] = json.loads(json.dumps({claim.key: claim for claim in claims}, default=as_json))
    return by_key


def fields_not_in(claims: Mapping[str, Any]) -> list[str]:
    """Return the fields of claims and contrasts that no claim as JSON has, since an earlier version wrote them."""
    has: set[str] = {"key", "figures"}
    for claim in claims.values():
        has.update(claim)
        for contrast in claim["contrasts"]:
            has.update(contrast)
    return [name for name in (*_names(Claim), *_names(Contrast)) if name not in has]


def _names(of: Any) -> list[str]:
    """Return the names of the fields of a dataclass."""
    return [attribute.name for attribute in fields(of)]


def sha256(value: object) -> str:
    """Return the SHA-256 of a value as canonical JSON, in hexadecimal digits."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def as_tuples(value: Any) -> Any:
    """Return a value with tuples for lists, so that it compares equal however it was written."""
    return tuple(map(as_tuples, value)) if isinstance(value, list | tuple) else value


def _in_words(settings: Settings) -> str:
    return ", ".join(f"{name} = {shown(value)}" for name, value in settings.items())
