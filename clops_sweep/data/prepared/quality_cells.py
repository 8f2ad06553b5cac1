"""The quality of recordings by ward or another domain as texts, for the terminal and the page of `data look`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from clops_sweep.data.files.folder import shorten
from clops_sweep.data.prepared.quality import Quality

_MOST_VALUES: Final = 4
"""Values of a column that a cell lists."""

_PERCENT: Final = 100
_LEAST_PERCENT: Final = 0.1


def quality_cells(column: str, table: Sequence[Quality]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and the rows of a table on the quality of each domain.

    Columns without anything to say are left out.

    Args:
        column: the column of domains; empty without domains.
        table: the quality of each domain.
    """
    headings = [column, "people"]
    columns = [[shorten(row.name) for row in table], [f"{row.people:,}" for row in table]]
    if any(row.shared for row in table):
        headings.append(f"in another {column}, too")
        columns.append([f"{row.shared:,}" for row in table])
    headings += ["recordings", "frames", "length (s)"]
    columns.append([f"{row.recordings:,}" for row in table])
    columns.append([f"{row.frames:,}" for row in table])
    columns.append([_length(row.seconds) for row in table])
    if any(row.rates for row in table):
        headings.append("Hz")
        columns.append([_rates(row.rates) for row in table])
    if any(row.missing is not None for row in table):
        headings += ["missing", "flat"]
        columns.append([_share(row.missing) for row in table])
        columns.append([_share(row.flat) for row in table])
    for unit in _keys([row.amplitude for row in table]):
        headings.append(f"{unit or 'samples'}: median, 1 % to 99 %")
        columns.append([_amplitude(row.amplitude.get(unit)) for row in table])
    for group in _keys([row.ages for row in table] + [row.categories for row in table]):
        headings.append(group)
        columns.append([_group(row, group) for row in table])
    return headings, [list(cells) for cells in zip(*columns, strict=True)]


def _keys(mappings: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the keys of all mappings, in the order of their first appearance."""
    keys: dict[str, None] = {}
    for mapping in mappings:
        keys |= dict.fromkeys(mapping)
    return list(keys)


def _length(seconds: tuple[float, float, float] | None) -> str:
    if seconds is None:
        return ""
    shortest, median, longest = seconds
    return f"{median:.3g}" if shortest == longest else f"{shortest:.3g} to {longest:.3g}, median {median:.3g}"


def _rates(rates: Sequence[float]) -> str:
    return ", ".join(f"{rate:g}" for rate in rates)


def _share(share: float | None) -> str:
    """Return a share in percent; empty if it is unknown."""
    if share is None:
        return ""
    percent = _PERCENT * share
    if 0 < percent < _LEAST_PERCENT:
        return f"< {_LEAST_PERCENT} %"
    return f"{percent:.2g} %"


def _amplitude(amplitude: tuple[float, float, float] | None) -> str:
    if amplitude is None:
        return ""
    median, low, high = amplitude
    return f"{median:.3g}, {low:.3g} to {high:.3g}"


def _group(row: Quality, column: str) -> str:
    """Return the range of a column of numbers, with the recordings without one; else the recordings of each value."""
    if column in row.ages:
        lowest, median, highest = row.ages[column]
        text = f"{lowest:g} to {highest:g}, median {median:g}"
        missing = row.unknown.get(column, 0)
        return f"{text}, {missing:,} missing" if missing else text
    counts = list(row.categories.get(column, {}).items())
    texts = [f"{shorten(value)} {count:,}" for value, count in counts[:_MOST_VALUES]]
    more = len(counts) - len(texts)
    return ", ".join(texts) + (f" and {more} more" if more else "")
