"""Editions of prepared data, and patient splits whose runs may be of older data than those of other splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from clops_sweep.data.catalog import DataKey
from clops_sweep.errors import listed
from clops_sweep.experiment.fields import SPLIT_AXES


@dataclass(frozen=True)
class Edition:
    """Runs that may be compared: same prepared data and same semantics version.

    Prepared data have a hash of their own for each `data`. `semantics_version` is without the revisions of strategy and
    network, as in `shared_versions`. `runs` counts the requested runs of the edition that are finished or failed.
    """

    scenario: str
    data: DataKey
    data_hash: str
    semantics_version: int
    runs: int

    def __str__(self) -> str:
        return self.described(self.data_hash[:12])

    def described(self, data_hash: str) -> str:
        """Describe the edition in words, with a data hash of the given length."""
        data = self.data
        parts = [self.scenario]
        if data.normalize != "none":
            parts.append(f"normalised by {data.normalize}")
        if data.leads == "all":
            parts.append("all leads together")
        parts.append(f"patient split {data.split_seed}")
        if data.split:
            parts.append(data.split)
        if data.stratify:
            parts.append(f"stratified by {data.stratify}")
        if data.validation:
            parts.append(f"validation {data.validation:g}")
        if data.encoder:
            parts.append(f"{'adapted to ' * data.is_adapted}encoder {data.encoder}")
        if data.split_within == "time":
            parts.append("split by time")
        return f"{data.dataset} ({', '.join(parts)}), data {data_hash}, semantics version {self.semantics_version}"


def older_editions(
    shown: Sequence[Edition], left_aside: Sequence[Edition], runs: pd.DataFrame
) -> tuple[tuple[Edition, Edition], ...]:
    """Return shown editions whose last run began before the data of another patient split changed, each with that one.

    Each patient split has a hash of its own, so hashes do not tell whether two splits are of one preparation. A split
    whose data changed as well counts as older only if its runs began while the other had its earlier data.

    Args:
        shown: the editions that are shown.
        left_aside: further editions with runs of the same search space.
        runs: the store's table `runs`.
    """
    if not left_aside:
        return ()
    began = runs.groupby(["scenario", "data_hash"])["started_at"].agg(["min", "max"])
    first, last = began["min"].to_dict(), began["max"].to_dict()
    replaced: dict[Edition, Any] = {}  # when the last run of earlier data of the same split began
    for edition in shown:
        earlier = [last[_key(other)] for other in left_aside if other.data == edition.data]
        earlier = [moment for moment in earlier if moment < first[_key(edition)]]
        if earlier:
            replaced[edition] = max(earlier)
    older = []
    for edition in shown:
        for changed, moment in replaced.items():
            is_before = last[_key(edition)] < first[_key(changed)]
            is_old = edition not in replaced or first[_key(edition)] <= moment
            if is_before and is_old and _without_split(edition) == _without_split(changed):
                older.append((edition, changed))
                break
    return tuple(older)


def _key(edition: Edition) -> tuple[str, str]:
    return edition.scenario, edition.data_hash


def _without_split(edition: Edition) -> tuple[object, ...]:
    """Return what editions of several patient splits share."""
    settings = {name: value for name, value in edition.data._asdict().items() if name not in SPLIT_AXES}
    return edition.scenario, *settings.items()


def older_in_words(older: Sequence[tuple[Edition, Edition]]) -> str:
    """Return a sentence about patient splits whose runs may be of older data; empty without any."""
    if not older:
        return ""
    names = [_split_of(edition) for edition, _ in older]
    changed = dict.fromkeys(_split_of(edition) for _, edition in older)
    splits = "splits" if len(names) > 1 else "split"
    return (
        f"the runs of patient {splits} {listed(names)} may be of older data: they began before the data of patient "
        f"split {listed(changed)} changed, and means include both; a launch computes what is missing"
    )


def _split_of(edition: Edition) -> str:
    return edition.data.split or str(edition.data.split_seed)
