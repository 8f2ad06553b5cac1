"""Methods as tuned: the fields in which two methods of a tuned space may differ and still be compared.

What the search of a method chooses belongs to the method, so two methods with different choices are compared as tuned.
All other fields of a fair comparison are equal.
"""

from __future__ import annotations

from collections.abc import Mapping

Tuned = Mapping[str, frozenset[str]]
"""The fields of a configuration that tuning chose, by the tuned space that reports it."""


def fields_as_tuned(one: Tuned, other: Tuned) -> frozenset[str]:
    """Return the fields that the search of either of two configurations chose, if one tuned space reports both."""
    fields = frozenset[str]()
    for space in one.keys() & other.keys():
        fields |= one[space] | other[space]
    return fields
