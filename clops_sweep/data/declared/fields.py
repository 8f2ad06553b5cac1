"""What a user says about recordings in files: the columns of a table, and the signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from clops_sweep.data.declared import recording_checks as checks
from clops_sweep.errors import UsageError, shown

Column = str | int
"""A column by name, or by position from 0; or "#Dx", a comment of that name in a recording's header."""

Table = str | PathLike[str] | Any
"""A CSV file, or a table that is in memory: a pandas DataFrame."""


def named_columns(argument: str, given: Mapping[str, Column] | Sequence[str] | None) -> Mapping[str, Column]:
    """Return columns by their new names; those of a list keep their names.

    Raises:
        UsageError: neither a mapping nor a list of names.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return given
    if isinstance(given, list | tuple) and all(isinstance(column, str) for column in given):
        return {column: column for column in given}
    raise checks.refused(argument, 'a list of columns, or a mapping such as {"site": "hospital"}', given)


@dataclass(frozen=True)
class TableFields:
    """The columns or header comments with the facts about a recording, their table, and how it is read.

    Attributes:
        label: column with the label, or columns of 0 and 1; None if recordings have labels of their own.
        name: column with the name of the recording.
        patient: column with the patient.
        time: column with a date.
        split: column with "train", "validation" or "test".
        domains: columns for domain_il, by their new names.
        groups: columns for subgroups, by their new names.
        start: column with the starts of labelled intervals.
        end: column with their ends.
        table: the table; None without one.
        classes: the labels to use, or label to class; None for all labels.
        separator: separator of several labels of a recording; None for single labels.
        in_samples: whether starts and ends are in samples, not in seconds.
        closes: whether an interval without an end lasts until the next one of its recording.
        date_format: format of the dates of the table, such as "%d.%m.%Y"; None for ISO dates.
    """

    label: Column | Sequence[Column] | None
    name: Column = 0
    patient: Column | None = None
    time: Column | None = None
    split: Column | None = None
    domains: Mapping[str, Column] = field(default_factory=dict)
    groups: Mapping[str, Column] = field(default_factory=dict)
    start: Column | None = None
    end: Column | None = None
    table: Table | None = None
    classes: Any = None
    separator: str | None = None
    in_samples: bool = False
    closes: bool = False
    date_format: str | None = None

    def __post_init__(self) -> None:
        is_label = isinstance(self.label, str | int | list | tuple) and (self.label or self.label == 0)
        if self.label is not None and not is_label:
            raise checks.refused("label", "a column by name or position, or a list of columns of 0 and 1", self.label)
        for argument, column in self.columns.items():
            if isinstance(column, bool) or not isinstance(column, str | int) or column == "":
                raise checks.refused(argument, "a column by name, or by position from 0", column)
        if self.date_format is not None:
            self._check_date_format(self.date_format)

    def _check_date_format(self, date_format: object) -> None:
        if not isinstance(date_format, str) or "%" not in date_format:
            raise checks.refused("date_format", 'a format of strptime such as "%d.%m.%Y"', date_format)
        dated = [column for column in (self.time, self.start, self.end) if column is not None]
        if not dated or any(of_header(column) for column in dated):
            raise UsageError("date_format: is the format of dates of a table; give time, start or end, a column of it")

    @property
    def columns(self) -> dict[str, Column]:
        """Return the given columns, by argument."""
        columns: dict[str, Column | None] = {"name": self.name}
        if self.label is None or isinstance(self.label, str | int):
            columns["label"] = self.label
        else:
            columns |= {f"label[{number}]": column for number, column in enumerate(self.label)}
        for argument in ("patient", "time", "split", "start", "end"):
            columns[argument] = getattr(self, argument)
        columns |= {of_domain(name): column for name, column in self.domains.items()}
        columns |= {of_group(name): column for name, column in self.groups.items()}
        return {argument: column for argument, column in columns.items() if column is not None}

    @property
    def given(self) -> frozenset[str]:
        """Return the arguments that are given, such as "label" or "domains['site']"."""
        return frozenset("label" if argument.startswith("label[") else argument for argument in self.columns)

    def domains_of(self, row: Mapping[str, str]) -> dict[str, str]:
        """Return the domains of a recording, by column, from its row; those that are missing are left out."""
        domains = {name: row.get(of_domain(name), "") for name in self.domains}
        return {name: domain for name, domain in domains.items() if domain}


@dataclass(frozen=True)
class SignalFields:
    """The arguments of `Recordings` about the samples in files.

    Attributes:
        channels: names or positions of the channels; None for all.
        units: their unit; None for that of the recordings.
        rate: sampling rate in Hz; None for that of the recordings.
        gain: factor from samples to `units`.
    """

    channels: Any = None
    units: str | None = None
    rate: float | None = None
    gain: Any = None


def require_no_columns(fields: TableFields) -> None:
    """Refuse columns that are given without a table.

    Raises:
        UsageError: a column other than that of the name is given.
    """
    named = next((argument for argument in fields.columns if argument != "name"), None)
    if named is not None:
        raise UsageError(
            f"{named}: {shown(fields.columns[named])} is a column, which needs a table; give table=..., or leave it "
            "out where recordings give it"
        )


def of_domain(name: str) -> str:
    """Return the argument of a column of domains."""
    return f"domains[{name!r}]"


def of_group(name: str) -> str:
    """Return the argument of a column for subgroups."""
    return f"groups[{name!r}]"


def of_header(column: Column | None) -> bool:
    """Whether a field is a comment of the header, such as "#Dx"."""
    return isinstance(column, str) and column.startswith("#")
