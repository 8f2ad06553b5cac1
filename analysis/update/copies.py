"""Test people whose recordings are in the training data under another name."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from clops_sweep.data.prepared.pseudonyms import Pseudonyms

_MOST_NAMED = 6


def by_id_alone(unit: str) -> str:
    """Return the end of a sentence on who is in no training data, where one person may be there under two names."""
    return f", by {unit} id; but one {unit} may be there under two (row 'may be there twice' of the page)"


def copies_in_words(copied: Collection[str], tested: Iterable[str], unit: str, names: Pseudonyms) -> str:
    """Return sentences on the tested people with copies in training; empty without any.

    Args:
        copied: names of people with recordings that are in training or validation under another name.
        tested: names of the tested people, as often as they have instances.
        unit: what they are in words, such as "patient".
        names: the pseudonyms of the data set.
    """
    people = {str(name) for name in tested}
    found = sorted(names.of(name) for name in people.intersection(copied))
    if not found:
        return ""
    named = ", ".join([*found[:_MOST_NAMED], *(["..."] if len(found) > _MOST_NAMED else [])])
    has = "has" if len(found) == 1 else "have"
    return (
        f"{len(found):,} of {len(people):,} test {unit}s ({named}) {has} recordings that are also in the training or "
        "validation data, under another name. The models may know these recordings, so this page can be too "
        "favourable. Give both names one patient, or leave one of the two out, and run again."
    )
