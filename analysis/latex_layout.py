"""How a table fits a page of LaTeX: which columns stand together, in which size, and in how many parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clops_sweep.analysis.formats import TextCell, TextTable
from clops_sweep.analysis.metrics import METRICS

TEXT_WIDTH = 397.0
"""In points, of the NeurIPS style; a float that is wider in other styles is made smaller there."""

_LEAST_SCALE = 0.8
"""How much smaller than \\footnotesize a float may become and still be read."""

_NARROWEST_LABEL = 60.0
"""Points below which a label is not wrapped."""

_PLAIN = {metric.plain for metric in METRICS.values()}
_BESIDE_A_METRIC = ("published", "difference", "p")


@dataclass(frozen=True)
class Size:
    """A font size, the same in points, and half the space between columns in points."""

    name: str
    points: float
    gap: float


_SIZES = (Size("small", 9.0, 4.0), Size("footnotesize", 8.0, 3.0))


@dataclass(frozen=True)
class Columns:
    """A metric's columns: its own, the `first`, and those that belong to it."""

    heading: str
    first: int
    beside: tuple[str, ...] = ()

    @property
    def positions(self) -> range:
        """Where they are in the table."""
        return range(self.first, self.first + 1 + len(self.beside))

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called below the heading."""
        first = "ours" if "published" in self.beside else "difference" if self.beside else ""
        return (first, *map(_short, self.beside))


@dataclass(frozen=True)
class Layout:
    """Widths of a table's columns, and what follows from them.

    Args:
        labels: positions of the columns that tell rows apart.
        metrics: the other columns.
        may_wrap: which of the labels are words, that may go on in another line.
        ems: the width of each column, in ems.
        widest_name: the width of the longest name that stands in all columns of words together, in ems.
        limit: how wide the table may become, in points.
    """

    labels: tuple[int, ...]
    metrics: tuple[Columns, ...]
    may_wrap: frozenset[int]
    ems: tuple[float, ...] = field(repr=False)
    widest_name: float
    limit: float

    @classmethod
    def of(cls, table: TextTable, *, breaks: bool) -> Layout:
        """The layout of a table, which breaks over pages or is a float, that can be scaled afterwards."""
        labels: list[int] = []
        metrics: list[Columns] = []
        for position, name in enumerate(table.header):
            if metrics and name in _BESIDE_A_METRIC:
                metrics[-1] = replace(metrics[-1], beside=(*metrics[-1].beside, name))
            elif metrics or name in _PLAIN:
                metrics.append(Columns(name, position))
            else:
                labels.append(position)
        named = [row for row in table.rows if one_name(table, row)]
        others = [row for row in table.rows if not one_name(table, row)]
        ems = []
        for position, name in enumerate(table.header):
            rows = others if position < table.n_label_columns else table.rows
            ems.append(max(map(_ems, (*_short(name).split(), *(row[position].text for row in rows))), default=0.0))
        return cls(
            tuple(labels),
            tuple(metrics),
            frozenset(range(table.n_label_columns)),
            tuple(ems),
            max((_ems(row[0].text) for row in named), default=0.0),
            0.97 * TEXT_WIDTH if breaks else TEXT_WIDTH / _LEAST_SCALE,  # widths are estimated
        )

    def parts(self) -> list[tuple[Columns, ...]]:
        """The metrics that fit beside the labels, as many as possible in each part and alike in number."""
        for count in range(1, len(self.metrics) + 1):
            size = -(-len(self.metrics) // count)
            parts = [self.metrics[i : i + size] for i in range(0, len(self.metrics), size)]
            if all(self._width(part, _SIZES[-1], wraps=True) <= self.limit for part in parts):
                return parts
        return [(columns,) for columns in self.metrics] or [()]

    def size(self, part: Sequence[Columns]) -> Size:
        """The largest size in which a part fits the text, or else the smallest."""
        return next((size for size in _SIZES if self._width(part, size) <= TEXT_WIDTH), _SIZES[-1])

    def alignment(self, part: Sequence[Columns], size: Size) -> str:
        """Labels left, or in paragraphs where they are too long for one line beside the values, which are centred."""
        values = "c" * sum(len(columns.positions) for columns in part)
        widths = {i: size.points * self.ems[i] for i in self.labels if i in self.may_wrap}
        spare = {i: width - _NARROWEST_LABEL for i, width in widths.items() if width > _NARROWEST_LABEL}
        excess = self._width(part, size) - self.limit
        if excess <= 0 or not spare:
            return "l" * len(self.labels) + values
        kept = max(0.0, 1 - excess / sum(spare.values()))
        named = (rf"p{{{_NARROWEST_LABEL + spare[i] * kept:.0f}pt}}" if i in spare else "l" for i in self.labels)
        return "".join(named) + values

    def _width(self, part: Sequence[Columns], size: Size, wraps: bool = False) -> float:
        """In points. Labels that may be wrapped count as narrow as they may become."""
        names = {i: size.points * self.ems[i] for i in self.labels}
        if wraps:
            names |= {i: min(names[i], _NARROWEST_LABEL) for i in self.may_wrap & names.keys()}
        counts = sum(width for i, width in names.items() if i not in self.may_wrap)
        labels = max(sum(names.values()), size.points * self.widest_name + counts)
        values = [size.points * self.ems[i] for columns in part for i in columns.positions]
        return labels + sum(values) + 2 * size.gap * (len(names) + len(values))


def one_name(table: TextTable, row: Sequence[TextCell]) -> bool:
    """Whether a row has one name for all its label columns, as that of another search space has."""
    return table.n_label_columns > 1 and not any(cell.text for cell in row[1 : table.n_label_columns])


def _short(name: str) -> str:
    return "diff." if name == "difference" else name


def _ems(text: str) -> float:
    """About the width of a text in Computer Modern at 8 or 9 points, bold face included."""
    wide = sum(character.isupper() or character in "±=<>+-" for character in text)
    narrow = sum(character in " .,;:[]()|il" for character in text)
    return 0.82 * wide + 0.32 * narrow + 0.55 * (len(text) - wide - narrow)
