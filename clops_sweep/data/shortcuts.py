"""Facts of recordings that tell a class without a network: length, missing samples, padding, amplitude, markers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.files.units import BETWEEN
from clops_sweep.data.recording_facts import MOST_LEVELS, Facts
from clops_sweep.errors import several, shown

TWO_PEOPLE: Final = "one name for two people?"
"""Begin of the note on people whose names may be given anew in each domain."""

OF_GROUPS: Final = "groups of"
"""Begin of the notes on columns for subgroups, which a launch that prepares the data shows."""

SHOWN_AT_LAUNCH: Final = ("channel", "dates", "padding", "shortcuts", TWO_PEOPLE)
"""Begins of the notes that every launch shows."""
_BEGIN: Final = "shortcuts: "
_LEAST_AUC: Final = 0.9
_LEAST_Z: Final = 2.5758
"""Two-sided 1 % of the normal distribution."""
_FOLLOWS: Final = 0.95
"""Balanced accuracy from which the values of a channel follow a label."""
_LEAST_PARTS: Final = 3
"""Least number of parts with and without a class."""


def shortcut_notes(facts: Sequence[Facts], classes: Sequence[str], units: str) -> list[str]:
    """Return one sentence for each class that length, missing samples, padding or amplitude tells from the others."""
    if not facts:
        return []
    labels = _joined(facts, "labels")
    amplitude = "" if BETWEEN in units else f" {units}".rstrip()
    measures: list[tuple[str, NDArray[np.float64], Callable[[float], str]]] = [
        ("length", _joined(facts, "seconds"), lambda value: f"{value:.4g} s"),
        ("missing samples", _joined(facts, "missing"), lambda value: f"{100 * value:.3g} %"),
        ("padding", _joined(facts, "padding"), lambda value: f"{100 * value:.3g} %"),
        ("amplitude", np.exp(_joined(facts, "scale")), lambda value: f"{value:.3g}{amplitude}"),
    ]
    notes = []
    for code, name in enumerate(classes):
        has = _has(labels, code)
        parts = []
        for what, values, text in measures:
            auc = _auc(values, has)
            if auc is not None:
                medians = [text(float(np.nanmedian(values[chosen]))) for chosen in (has, ~has)]
                parts.append(f"{what} (median {medians[0]}, others {medians[1]}; AUC {auc:.2f})")
        if parts:
            notes.append(f"{_BEGIN}class {name} can be told without a network by {', '.join(parts)}")
    return notes


def shortcuts_of(notes: Sequence[str]) -> list[str]:
    """Return those of a manifest's notes that `shortcut_notes` made, without their first word."""
    return [note.removeprefix(_BEGIN) for note in notes if note.startswith(_BEGIN)]


def padding_note(facts: Sequence[Facts]) -> list[str]:
    """Return a sentence on flat ends of recordings, if there are any."""
    samples = [np.zeros(0, np.int64)]
    seconds = [np.zeros(0)]
    for of_source in facts:
        flat = of_source.flat[of_source.flat > 0]
        samples.append(flat)
        seconds.append(flat / of_source.rate)
    lengths = np.concatenate(seconds)
    if not len(lengths):
        return []
    counts = np.concatenate(samples)
    what = f"{int(np.median(counts)):,} samples ({np.median(lengths):.3g} s), at most {int(counts.max()):,}"
    many = several(len(lengths), "recording")
    if facts[0].ends_cut:
        return [f'padding: trim="flat" cut the flat ends of {many}: a median of {what}']
    return [f'padding: all channels are flat at the ends of {many}: a median of {what}; trim="flat" cuts them']


def marker_problem(facts: Sequence[Facts], classes: Sequence[str], channels: Sequence[str]) -> str | None:
    """Return a sentence on a channel of few values that follow the labels of other recordings, if there is one."""
    if not facts:
        return None
    common = set(facts[0].levels).intersection(*(of_source.levels for of_source in facts))
    labels = _joined(facts, "labels")
    owner = _owners(facts)
    for channel in sorted(common):
        levels = list(chain.from_iterable(of_source.levels[channel] for of_source in facts))
        if len(set(chain.from_iterable(levels))) > MOST_LEVELS:
            continue
        _, codes = np.unique(np.array([str(values) for values in levels]), return_inverse=True)
        for code, name in enumerate(classes):
            has = _has(labels, code)
            if _followed(codes, owner, has) >= _FOLLOWS:
                inside, outside = _usual(levels, has), _usual(levels, ~has)
                return (
                    f"channel {shown(channels[channel])} has few values, and they follow the labels, as triggers and "
                    f"markers do: usually {inside} in class {name}, {outside} elsewhere; leave it out (channels=[...] "
                    'selects channels of files), or keep it by @dataset(..., markers="keep")'
                )
    return None


def _joined(facts: Sequence[Facts], field: str) -> NDArray[Any]:
    return np.concatenate([getattr(of_source, field) for of_source in facts])


def _owners(facts: Sequence[Facts]) -> NDArray[np.int64]:
    """Return the number of each part's recording among all."""

    def numbered() -> Iterator[NDArray[np.int64]]:
        first = 0
        for of_source in facts:
            yield of_source.owner + first
            first += len(of_source.flat)

    return np.concatenate(list(numbered()))


def _has(labels: NDArray[Any], code: int) -> NDArray[np.bool_]:
    return np.asarray(labels[:, code] > 0 if labels.ndim == 2 else labels == code)


def _auc(values: NDArray[np.float64], has: NDArray[np.bool_]) -> float | None:
    """Return the area under the ROC curve by which values tell a class, at least 0.5; None if low or by chance.

    The variance of the Mann-Whitney statistic is that of the normal approximation with ties.
    """
    from scipy.stats import rankdata

    known = np.isfinite(values)
    values, has = values[known], has[known]
    inside, outside = int(has.sum()), int((~has).sum())
    if not inside or not outside or (values == values[0]).all():
        return None
    ranks = rankdata(values)
    area = (ranks[has].sum() - inside * (inside + 1) / 2) / (inside * outside)
    total = inside + outside
    _, ties = np.unique(values, return_counts=True)
    tied = float((ties.astype(np.float64) ** 3 - ties).sum()) / (total * (total - 1))
    deviation = np.sqrt((total + 1 - tied) / (12 * inside * outside))
    distance = abs(area - 0.5)
    if _area_of_either(area) < _LEAST_AUC or distance < _LEAST_Z * deviation:
        return None
    return _area_of_either(area)


def _area_of_either(area: float) -> float:
    """Return the area of the better direction."""
    return max(float(area), 1 - float(area))


def _followed(codes: NDArray[np.int64], owner: NDArray[np.int64], has: NDArray[np.bool_]) -> float:
    """Return the balanced accuracy by which values tell a class that they have in other recordings."""
    if min(has.sum(), (~has).sum()) < _LEAST_PARTS:
        return 0.0
    pairs, pair = np.unique(np.column_stack([codes, owner]), axis=0, return_inverse=True)
    pair = pair.reshape(-1)
    many = int(codes.max()) + 1
    all_of_code, class_of_code = np.bincount(codes, minlength=many), np.bincount(codes, has, minlength=many)
    all_own, class_own = np.bincount(pair, minlength=len(pairs)), np.bincount(pair, has, minlength=len(pairs))
    others = (all_of_code[codes] - all_own[pair]).astype(np.float64)
    others_of_class = class_of_code[codes] - class_own[pair]
    share = np.divide(others_of_class, others, out=np.full(len(codes), np.nan), where=others > 0)
    said = share > has.mean()
    right = np.where(np.isnan(share), False, said == has)
    return float(right[has].mean() + right[~has].mean()) / 2


def _usual(levels: Sequence[tuple[float, ...]], chosen: NDArray[np.bool_]) -> str:
    """Return the most frequent values of some parts."""
    listed = [values for values, wanted in zip(levels, chosen.tolist(), strict=True) if wanted]
    ((usual, _),) = Counter(listed).most_common(1)
    return " and ".join(f"{value:g}" for value in usual)
