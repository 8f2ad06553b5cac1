"""Editions of prepared data: what may be compared, and what is left aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from clops_sweep.data.catalog import DataKey
from clops_sweep.errors import several
from clops_sweep.experiment.config import SEMANTICS_VERSION

Present = Callable[[str], str | None]
"""Returns the `prepared_hash` of a data set on this machine; None if it is not prepared."""


@dataclass(frozen=True)
class Edition:
    """Runs that may be compared: same prepared data and same semantics version.

    Prepared data have a hash of their own for each `data`. `semantics_version` is without the revisions of strategy and
    network, as in `shared_versions`. `runs` counts the requested runs of the edition that are finished or failed.
    `prepared_hash` is equal for all `data` of one preparation; None if no run records it.
    """

    scenario: str
    data: DataKey
    data_hash: str
    semantics_version: int
    runs: int
    prepared_hash: str | None = None

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


class Preparations:
    """The preparations of data sets that stored runs used, of which a table shows one for each data set.

    All patient splits of a preparation have data hashes of their own and one `prepared_hash`. Runs of earlier versions
    do not record it, and count as of any preparation.

    Args:
        runs: the store's table `runs`.
        present: returns the `prepared_hash` of a data set as it is prepared on this machine; None if it is not.
    """

    def __init__(self, runs: pd.DataFrame, present: Present = lambda dataset: None) -> None:
        self._present = present
        self._of_data: dict[str, str] = {}
        self._newest_first: dict[str, list[str]] = {}
        if "prepared_hash" not in runs:
            return
        recorded = runs.dropna(subset=["prepared_hash"]).sort_values("started_at", ascending=False, kind="stable")
        columns = [recorded[name].tolist() for name in ("dataset", "data_hash", "prepared_hash")]
        for dataset, data_hash, prepared_hash in dict.fromkeys(zip(*columns, strict=True)):
            self._of_data[data_hash] = prepared_hash
            of_dataset = self._newest_first.setdefault(dataset, [])
            if prepared_hash not in of_dataset:
                of_dataset.append(prepared_hash)

    def of(self, data_hash: str) -> str | None:
        """Return the `prepared_hash` of data; None if no run records it."""
        return self._of_data.get(data_hash)

    def choose(self, dataset: str, data_hashes: Iterable[str]) -> str | None:
        """Return the preparation to show among those of some data: the one on this machine, or else the newest.

        None if no run records one.
        """
        there = {self._of_data[data_hash] for data_hash in data_hashes if data_hash in self._of_data}
        if len(there) > 1 and (present := self._present(dataset)) in there:
            return present
        newest_first = [found for found in self._newest_first.get(dataset, ()) if found in there]
        return newest_first[0] if newest_first else None

    def fits(self, data_hash: str, prepared_hash: str | None) -> bool:
        """Return whether data may be of a preparation."""
        return prepared_hash is None or self._of_data.get(data_hash, prepared_hash) == prepared_hash


def replaced_in_words(count: int) -> str:
    """Return a sentence about missing runs that exist on another edition of the data; empty without any.

    Args:
        count: their number, as in `Experiment.replaced`.
    """
    if not count:
        return ""
    if count == 1:
        return (
            "1 run is of another edition of the data and left aside: it counts as missing, and a launch computes it "
            "anew"
        )
    return (
        f"{count:,} runs are of another edition of the data and left aside: they count as missing, and a launch "
        "computes them anew"
    )


def left_aside_in_words(left_aside: Sequence[Edition]) -> list[tuple[str, str]]:
    """Return what is not shown, as "12 runs of another edition of the data (DATA, SCENARIO)", each with a data hash.

    The patient splits of one preparation share a phrase.
    """
    alike: dict[tuple[object, ...], list[Edition]] = {}
    for edition in left_aside:
        own = edition.data if edition.prepared_hash is None else edition.prepared_hash
        alike.setdefault((own, edition.data.dataset, edition.scenario, edition.semantics_version), []).append(edition)
    phrases = []
    for of_one in alike.values():
        first = of_one[0]
        runs = several(sum(edition.runs for edition in of_one), "run")
        described = str(first)
        if len(of_one) > 1:
            described = f"another edition of the data ({first.data.dataset}, {first.scenario})"
            if first.semantics_version != SEMANTICS_VERSION:
                described += f", semantics version {first.semantics_version}"
        phrases.append((f"{runs} of {described}", first.data_hash))
    return phrases
