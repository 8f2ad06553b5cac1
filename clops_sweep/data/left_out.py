"""What a data set leaves out: data on recordings of labels without a class, and others, and the sentences on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import several

WHOLE_FRAMES: Final = "frames"
RECORDINGS: Final = "recordings"
INTERVALS: Final = "intervals"
LABELS: Final = "labels"

_LONGEST_LABEL: Final = 40
_MOST_NAMES: Final = 3
_MOST_DOMAINS: Final = 10
_MOST_LABELS: Final = 3


@dataclass(frozen=True)
class Reason:
    """Why some things are left out.

    Attributes:
        what: the things, in the plural, such as "recordings".
        why: the rest of the sentence, such as "that the table does not list".
        label: their label, if it is the reason: no class has it. Empty if they have none.
        meant: the label with a class that `label` resembles.
        is_likely: whether `label` is probably a misspelling of `meant`; otherwise this is asked only beside names.
    """

    what: str
    why: str = ""
    label: str | None = None
    meant: str | None = None
    is_likely: bool = False

    @property
    def text(self) -> str:
        """The reason without a number and a question, as in "recordings labelled AFib"."""
        return f"{self.what} {self.clause(asks=False)}"

    def clause(self, labelled: str = "labelled", *, asks: bool = True) -> str:
        """Return the reason without its subject, as in "labelled AFib (did you mean AF?)".

        Args:
            labelled: the word before the label.
            asks: whether to ask for the label that may be meant.
        """
        if self.label is None:
            return self.why
        if not self.label:
            return "without a label"
        hint = f" (did you mean {_short(self.meant)}?)" if asks and self.meant is not None else ""
        words = f"{_short(self.label)}{hint}"
        return f"{words} {self.why}" if self.what == LABELS else f"{labelled} {words}"


def _short(label: str) -> str:
    return shorten(label, _LONGEST_LABEL)


@dataclass(frozen=True)
class OfDomain:
    """Things of a domain, such as a ward: how many are left out, and of how many; 0 if that is unknown."""

    left_out: int
    total: int = 0


@dataclass(frozen=True)
class LeftOut:
    """The things that are left out for one reason.

    Attributes:
        reason: the reason.
        count: their number.
        names: their names, where they are known.
        domains: their number by column and value of domains, such as {"ward": {"ICU": ...}}, where these are known.
    """

    reason: Reason
    count: int
    names: tuple[str, ...] = ()
    domains: Mapping[str, Mapping[str, OfDomain]] = field(default_factory=dict)

    def sentence(self, *, named: bool = False) -> str:
        """Return number and reason, as in "171 frames (mixture of beats)"; perhaps with the first names."""
        counted = several(self.count, self.reason.what.removesuffix("s"))
        if self.reason.what == WHOLE_FRAMES:
            return f"{counted} ({self.reason.why})"
        sentence = f"{counted} {self.reason.clause(asks=self.reason.is_likely or named)}"
        return f"{sentence}: {first_of(self.names)}" if named and self.names else sentence

    def hides_names(self) -> bool:
        """Return whether `sentence` does not have all names."""
        return len(self.names) > _MOST_NAMES + 1


def first_of(names: Sequence[str]) -> str:
    """Return the first three names, and the number of others; all of four."""
    there = names if len(names) <= _MOST_NAMES + 1 else names[:_MOST_NAMES]
    more = len(names) - len(there)
    return ", ".join(there) + (f" and {more:,} more" if more else "")


def sentences(left_out: Iterable[LeftOut], *, named: bool = False) -> list[str]:
    """Return a sentence for each reason; perhaps with the names of the first recordings."""
    return [omission.sentence(named=named) for omission in left_out]


def without_names(left_out: Iterable[LeftOut]) -> tuple[LeftOut, ...]:
    """Return records without names, of which there may be many."""
    return tuple(replace(omission, names=()) for omission in left_out)


class Collected:
    """Counts what is left out while recordings are read."""

    def __init__(self, records: Iterable[LeftOut] = ()) -> None:
        self._counts = Counter[Reason]()
        self._names = dict[Reason, list[str]]()
        self._domains = dict[Reason, Counter[tuple[str, str]]]()
        self.join(records)

    def __iter__(self) -> Iterator[LeftOut]:
        for reason, count in self._counts.items():
            domains = dict[str, dict[str, OfDomain]]()
            for (column, value), many in self._domains.get(reason, {}).items():
                domains.setdefault(column, {})[value] = OfDomain(many)
            yield LeftOut(reason, count, tuple(self._names.get(reason, ())), domains)

    def add(
        self,
        reason: Reason,
        count: int = 1,
        *,
        names: Collection[str] = (),
        domains: Mapping[str, str] | None = None,
    ) -> None:
        """Count things that are left out for a reason.

        Args:
            reason: the reason.
            count: their number.
            names: their names, if they are known.
            domains: the domain of all of them, by column, if it is known.
        """
        if not count:
            return
        self._counts[reason] += count
        if names:
            self._names.setdefault(reason, []).extend(names)
        for domain in (domains or {}).items():
            self._domains.setdefault(reason, Counter())[domain] += count

    def join(self, records: Iterable[LeftOut], source: str = "") -> None:
        """Add what others have left out; of a combined data set, `source` is their domain and goes before names."""
        for omission in records:
            if source:
                names = [f"{source}/{name}" for name in omission.names]
                self.add(omission.reason, omission.count, names=names, domains={"source": source})
                continue
            self.add(omission.reason, omission.count, names=omission.names)
            for column, values in omission.domains.items():
                for value, of_value in values.items():
                    self._domains.setdefault(omission.reason, Counter())[column, value] += of_value.left_out


def with_totals(left_out: Iterable[LeftOut], read: Mapping[str, Mapping[str, int]]) -> tuple[LeftOut, ...]:
    """Return records, ordered by reason, whose counts of recordings by domain have totals.

    Args:
        left_out: the records.
        read: number of the recordings that are not left out, by column and value of domains.
    """
    ordered = sorted(left_out, key=lambda omission: omission.reason.text)
    totals = Counter[tuple[str, str]]()
    for column, values in read.items():
        totals.update({(column, value): many for value, many in values.items()})
    for omission in ordered:
        if omission.reason.what == RECORDINGS:
            for column, domain in omission.domains.items():
                totals.update({(column, value): of_value.left_out for value, of_value in domain.items()})
    records = []
    for omission in ordered:
        domains = dict[str, dict[str, OfDomain]]()
        for column, domain in omission.domains.items():
            for value, of_value in domain.items():
                total = totals[column, value] if omission.reason.what == RECORDINGS else 0
                domains.setdefault(column, {})[value] = OfDomain(of_value.left_out, total)
        records.append(replace(omission, domains=domains))
    return tuple(records)


@dataclass(frozen=True)
class Lost:
    """What a data set or one of its domains loses for one reason: `count` of `total` things, 0 if that is unknown."""

    reason: Reason
    count: int
    total: int = 0


def of_all(left_out: Iterable[LeftOut]) -> list[Lost]:
    """Return what the whole data set loses, by reason."""
    return [Lost(omission.reason, omission.count) for omission in left_out]


def of_domain(left_out: Iterable[LeftOut], column: str, value: str) -> list[Lost]:
    """Return what one domain loses, by reason."""
    lost = []
    for omission in left_out:
        of_value = omission.domains.get(column, {}).get(value)
        if of_value is not None:
            lost.append(Lost(omission.reason, of_value.left_out, of_value.total))
    return lost


def share(count: int, total: int, what: str) -> str:
    """Return a number of things with their noun, as in "12 of 60 recordings"; without a total, "12 recordings"."""
    noun = what.removesuffix("s")
    return f"{count:,} of {several(total, noun)}" if total else several(count, noun)


def sentences_on_domains(left_out: Sequence[LeftOut]) -> list[str]:
    """Return a sentence on each domain whose recordings, or their intervals, are left out for their labels.

    As in "ward ICU: 12 of 60 recordings left out as labelled AFib (did you mean AF?)". Domains with most of them come
    first; further domains are counted.
    """
    domains = dict[tuple[str, str], None]()
    for omission in left_out:
        for column, values in omission.domains.items():
            domains.update(dict.fromkeys((column, value) for value in values))
    told = list[tuple[int, str]]()
    for column, value in domains:
        lost = [omission for omission in of_domain(left_out, column, value) if omission.reason.label is not None]
        for what in dict.fromkeys(omission.reason.what for omission in lost):
            of_what = [omission for omission in lost if omission.reason.what == what]
            count = sum(omission.count for omission in of_what)
            told.append((count, f"{column} {value}: {_on_domain(of_what, what, count)}"))
    told.sort(key=lambda of_domain: -of_domain[0])
    more = len(told) - _MOST_DOMAINS
    first = [sentence for _, sentence in told[:_MOST_DOMAINS]]
    return [*first, *([f"and {several(more, 'more domain')}"] if more > 0 else [])]


def _on_domain(lost: Sequence[Lost], what: str, count: int) -> str:
    """Return how many things of a domain are left out, and the labels of most of them."""
    begin = f"{share(count, lost[0].total, what)} left out"
    if len(lost) == 1:
        return f"{begin} {lost[0].reason.clause('as labelled')}"
    most = sorted(lost, key=lambda omission: -omission.count)
    parts = [f"{omission.count:,} {omission.reason.clause()}" for omission in most[:_MOST_LABELS]]
    more = len(most) - len(parts)
    return f"{begin}: {', '.join(parts)}" + (f" and {several(more, 'more label')}" if more else "")
