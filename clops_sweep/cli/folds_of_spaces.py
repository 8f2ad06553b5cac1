"""The folds that `clops-sweep data folds` writes: those of the search spaces in the given files, or of its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clops_sweep.data.splits.fold_names import fold_of
from clops_sweep.errors import UsageError, listed, shown
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.search_space import SearchSpace
from clops_sweep.experiment.spaces.selection import Selection


@dataclass(frozen=True)
class FoldsAsked:
    """The folds of a table.

    Attributes:
        number: the number of folds.
        split_seeds: the split seeds, in order.
        stratify: the column of domains by which people are dealt, beside classes; None for classes alone.
        spaces: the search spaces that have them; empty if none does.
    """

    number: int
    split_seeds: tuple[int, ...]
    stratify: str | None
    spaces: tuple[str, ...]

    def __str__(self) -> str:
        """Return them in words: "5 folds of split_seed 0, stratified by ward, as in search space 'wards'"."""
        seeds = listed(map(str, self.split_seeds))
        words = f"{self.number} folds of split_seed {seeds}, {_stratified(self.stratify)}"
        if not self.spaces:
            return words
        return f"{words}, as in search space {listed(map(shown, self.spaces))}"


def folds_asked(
    dataset: str,
    spaces: Sequence[SearchSpace],
    *,
    number: int | None = None,
    split_seeds: Sequence[int] = (),
    stratify: str | None = None,
) -> FoldsAsked:
    """Return the folds of the runs of search spaces on a data set, or those that are given where these have none.

    Args:
        dataset: name of the data set.
        spaces: search spaces, which may be of other data sets.
        number: the number of folds; None for that of the search spaces.
        split_seeds: the split seeds; empty for those of the search spaces that have folds, else 0.
        stratify: the column of domains; None for that of the search spaces.

    Raises:
        UsageError: what is given differs from the search spaces, these differ among each other, or there is no number.
    """
    named: list[tuple[str, RunConfig]] = []
    for space in spaces:
        named += [(space.name, config) for config in Selection((space,)).configs if config.dataset == dataset]
    with_folds = [(name, config) for name, config in named if config.split is not None]
    named = with_folds or named
    if stratify is not None or number is not None:
        _check_given(named, number, stratify)
    chosen = [(name, config) for name, config in named if _fits(config, number, stratify)]
    columns = dict.fromkeys(config.stratify for _, config in chosen)
    numbers = dict.fromkeys(fold_of(config.split)[1] for _, config in chosen if config.split is not None)
    if len(columns) > 1:
        ways = "; ".join(f"{listed(_spaces(chosen, column))}: {_stratified(column)}" for column in columns)
        raise UsageError(
            f"the search spaces on {dataset} deal people in {len(columns)} ways ({ways}), and a table has the folds of "
            "one; give --stratify COLUMN for that of a column, or keep the search spaces of one way in the file"
        )
    if number is None and len(numbers) != 1:
        there = f"the search spaces on {dataset} have {listed(map(str, numbers))} folds" if numbers else ""
        raise UsageError(f"{there or f'no search space on {dataset} has folds'}; give their number by --number K")
    seeds = sorted({config.split_seed for _, config in chosen}) if with_folds else []
    names = tuple(dict.fromkeys(name for name, _ in chosen))
    return FoldsAsked(
        number=next(iter(numbers)) if number is None else number,
        split_seeds=tuple(split_seeds or seeds or (0,)),
        stratify=next(iter(columns), stratify),
        spaces=names,
    )


def _check_given(named: Sequence[tuple[str, RunConfig]], number: int | None, stratify: str | None) -> None:
    """Raise a UsageError if search spaces have folds, and none has those that are given."""
    if not named or any(_fits(config, number, stratify) for _, config in named):
        return
    columns = dict.fromkeys(config.stratify for _, config in named)
    if stratify is not None and stratify not in columns:
        schemes = listed(_stratified(column) for column in columns)
        raise UsageError(
            f"--stratify {stratify}: the runs of search space {listed(_spaces(named))} are {schemes}; leave out the "
            "option, or change stratify in the file first"
        )
    numbers = dict.fromkeys(fold_of(config.split)[1] for _, config in named if config.split is not None)
    raise UsageError(
        f"--number {number}: search space {listed(_spaces(named))} has {listed(map(str, numbers))} folds; leave out "
        "the option, or change the folds in the file first"
    )


def _fits(config: RunConfig, number: int | None, stratify: str | None) -> bool:
    """Return whether a run has the folds that are given."""
    same_number = number is None or config.split is None or fold_of(config.split)[1] == number
    return same_number and stratify in (None, config.stratify)


_ANY = object()


def _spaces(named: Sequence[tuple[str, RunConfig]], column: object = _ANY) -> list[str]:
    """Return the names of the search spaces, of those with this `stratify` if it is given."""
    return list(dict.fromkeys(shown(name) for name, config in named if column in (_ANY, config.stratify)))


def _stratified(column: str | None) -> str:
    return "not stratified" if column is None else f"stratified by {column}"
