"""`clops-sweep update-report --who`: the people behind pseudonyms, with their recordings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from clops_sweep.cli.options import print_json
from clops_sweep.cli.plain_table import print_table
from clops_sweep.cli.waiting import waiting
from clops_sweep.errors import several
from clops_sweep.store.rows import printable

if TYPE_CHECKING:
    from clops_sweep.analysis.update.who import DecidedRecording, FoundPerson
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.store.run_store import RunStore

_UNKNOWN = "-"
_COUNTS = {"became wrong": "wrong", "became right": "right", "stayed wrong": "wrong, otherwise"}
"""Columns of the table of people, and what they count."""
_PROBABILITIES = ("probability before", "probability after")
"""Columns with the probability of the true class."""


def print_people(
    store: RunStore,
    run_id: str,
    asked: Sequence[str],
    data: PreparedData,
    *,
    against: str | None,
    folds: bool,
    as_json: bool,
) -> None:
    """Print people with their recordings; see `people_behind`."""
    from clops_sweep.analysis.update.report import people_behind
    from clops_sweep.analysis.update.who import FLIPPED

    with waiting(f"reading the predictions of run {run_id}"):
        found = people_behind(store, run_id, asked, data, against=against, folds=folds)
    people = found.people
    if as_json:
        as_data = []
        for person in people:
            counts = {heading.replace(" ", "_"): person.count(became) for heading, became in _COUNTS.items()}
            as_data.append({**asdict(person), **counts, "changed_in": person.changed_in})
        print_json(
            {
                "results": store.files.shown,
                "run_id": found.run_id,
                "people": as_data,
                "without_frames": found.without_frames,
            }
        )
        return
    if not people:
        click.echo("no decision changed")
        return
    _print_people(people)
    of_all = list(asked) == [FLIPPED]
    if of_all:
        for line in _by_place(people):
            click.echo(line)
    rows = [(person, one) for person in people for one in (person.changed if of_all else person.recordings)]
    which = "test instances whose decision changed" if of_all else "all their test instances"
    click.echo(f"\n{which}; probabilities are those of the true class")
    _print_recordings(rows)
    if found.without_frames:
        click.echo(f"no names of recordings: {printable(found.without_frames)}")


def _print_people(people: Sequence[FoundPerson]) -> None:
    from clops_sweep.analysis.update.who import COMPARED

    has_places = any(person.changed_in not in ("", COMPARED) for person in people)
    headings = ["pseudonym", "person", "tested", *_COUNTS]
    if has_places:
        headings.append("changed in")
    rows = []
    for person in people:
        counts = [str(person.count(became)) for became in _COUNTS.values()]
        row = [person.pseudonym, printable(person.person), str(len(person.recordings)), *counts]
        if has_places:
            row.append(person.changed_in or _UNKNOWN)
        rows.append(row)
    print_table(tuple(headings), rows, numbers=("tested", *_COUNTS))


def _by_place(people: Sequence[FoundPerson]) -> Iterator[str]:
    """Yield how many people and decisions are in the compared tasks, as the page counts, and how many in the last task.

    Nothing if all are in the compared tasks.
    """
    from clops_sweep.analysis.update.who import BOTH

    tasks = {one.task for person in people for one in person.changed if not one.is_compared}
    if not tasks:
        return
    last = f"the last task, {printable(' and '.join(sorted(tasks)))}"
    compared = _changed_there(people, is_compared=True)
    new = _changed_there(people, is_compared=False)
    both = sum(person.changed_in == BOTH for person in people)
    in_both = f", {both} of them in both" if both else ""
    yield (
        f"{_of_people(len(people))}: {len(compared)} in the compared tasks, which the page counts at its top, and "
        f"{len(new)} in {last}{in_both}"
    )
    counts = []
    for places in (compared, new):
        wrong = [changes.count("wrong") for changes in places]
        affected = sum(count > 0 for count in wrong)
        counts.append(f"{several(sum(wrong), 'decision')} of {_of_people(affected)}")
    yield f"became wrong: {counts[0]} in the compared tasks, {counts[1]} in the last task"


def _of_people(count: int) -> str:
    return f"{count} {'person' if count == 1 else 'people'}"


def _changed_there(people: Sequence[FoundPerson], *, is_compared: bool) -> list[list[str]]:
    """Return what decisions of each person became in the compared tasks, or in the last one; only people with any."""
    places = []
    for person in people:
        changes = [one.became for one in person.changed if one.is_compared == is_compared]
        if changes:
            places.append(changes)
    return places


def _print_recordings(rows: Sequence[tuple[FoundPerson, DecidedRecording]]) -> None:
    """Print a table of test instances, without columns of which nothing is known."""
    from clops_sweep.analysis.update.people import CHANGES

    columns: dict[str, list[str]] = {
        "person": [printable(person.person) for person, _ in rows],
        "number": [str(one.instance) for _, one in rows],
        "recording": [printable(one.recording) or _UNKNOWN for _, one in rows],
    }
    starts = {one.start for _, one in rows}
    if starts - {None, 0.0}:
        columns["start [s]"] = [_UNKNOWN if one.start is None else f"{one.start:g}" for _, one in rows]
    if any(one.time for _, one in rows):
        columns["date"] = _dates([one.time for _, one in rows])
    columns |= {
        "task": [printable(one.task) for _, one in rows],
        "true": [printable(one.label) or "no class" for _, one in rows],
        "before": [printable(one.before) or _UNKNOWN for _, one in rows],
        "after": [printable(one.after) for _, one in rows],
        _PROBABILITIES[0]: [_probability(one.probability_before) for _, one in rows],
        _PROBABILITIES[1]: [_probability(one.probability_after) for _, one in rows],
        "change": [CHANGES[one.became] for _, one in rows],
    }
    print_table(
        tuple(columns), list(zip(*columns.values(), strict=True)), numbers=("number", "start [s]", *_PROBABILITIES)
    )


def _dates(times: Sequence[str]) -> list[str]:
    """Return dates with times of day; dates alone if none of them has a time of day other than midnight."""
    dates = []
    for time in times:
        date, _, of_day = time.partition(" ")
        dates.append(date or _UNKNOWN)
        if of_day.strip("0:."):
            return [other or _UNKNOWN for other in times]
    return dates


def _probability(value: float) -> str:
    return _UNKNOWN if math.isnan(value) else f"{value:.2f}"
