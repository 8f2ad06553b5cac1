"""Patient splits, folds and seeds in words."""

from __future__ import annotations

from collections.abc import Collection

from ..formats import plural
from ..statistics import Fold, PairedDifference, Split, split_name


def split_names(splits: Collection[Split]) -> dict[Split, str]:
    """Return the name of each patient split; that of a fold has its split seed only if folds have several."""
    folds = [split for split in splits if isinstance(split, Fold)]
    is_one_seed = len({fold.repeat for fold in folds}) == 1
    names = {}
    for split in splits:
        names[split] = split_name(split)
        if isinstance(split, Fold) and is_one_seed:
            names[split] = f"fold {split.part}/{split.of}"
    return names


def splits_in_words(splits: Collection[Split]) -> str:
    """Return the number of patient splits: "5 folds" or "5 patient splits"."""
    folds = [split for split in splits if isinstance(split, Fold)]
    parts = []
    if folds:
        parts.append(plural(len(folds), "fold"))
    if len(splits) > len(folds):
        parts.append(plural(len(splits) - len(folds), "patient split"))
    return " and ".join(parts)


def n_in_words(mean: PairedDifference, splits: Collection[Split]) -> str:
    """Return the number and kind of the units that a mean is over: "5 folds", "5 splits", "3 seeds of 1 fold".

    Args:
        mean: the mean of a configuration.
        splits: the patient splits of its runs.
    """
    are_folds = any(isinstance(split, Fold) for split in splits)
    is_over_seeds = mean.units is not None and mean.units.kind == "seeds"
    if not is_over_seeds:
        return plural(mean.n, "fold" if are_folds else "split")
    if not are_folds:
        return plural(mean.n, "seed")
    return "1 fold" if mean.n == 1 else f"{plural(mean.n, 'seed')} of 1 fold"
