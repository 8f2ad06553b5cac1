"""Axes of a search space: config fields with their values, or free names with named variants."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from clops_sweep.errors import UsageError, one_line, prefixed, shown
from clops_sweep.experiment.config import RunConfig, known_key
from clops_sweep.experiment.plugins.options import OPTIONS
from clops_sweep.experiment.plugins.values import as_list, as_python, has_twice, kind_in_words

_IN_FULL = 1_000_000
"""Largest number of a setting without an exponent."""

Axis = Sequence[Any] | Mapping[str, Mapping[str, Any]]
"""The values of a field, or the settings of each named variant."""

Axes = Mapping[str, Axis]


class Cell(NamedTuple):
    """One combination of values and variants of all axes.

    Attributes:
        labels: the value, or the name of the variant, on each axis.
        settings: the config fields and options that they set.
    """

    labels: dict[str, Any]
    settings: dict[str, Any]


def is_field(axis: str) -> bool:
    """Return whether an axis is a config field or option with values, rather than a free name with variants."""
    return axis in RunConfig.model_fields or axis in OPTIONS


def plain_axis(space: str, axis: Any, values: Any) -> Axis:
    """Return an axis with plain Python values, so that labels, ids and JSON are identical for equal values.

    Args:
        space: the search space, for messages.
        axis: its name.
        values: its values or variants.

    Raises:
        UsageError: the name is no text, or there are no values or variants that can be read.
    """
    if not isinstance(axis, str) or not axis.strip():
        raise UsageError(f"{space}: axis {shown(axis)}: expected text")
    where = f"{space}, axis {axis!r}"
    if not isinstance(values, Mapping):
        with prefixed(where):
            return as_list(values)
    variants = {}
    for name, settings in values.items():
        if not isinstance(settings, Mapping):
            raise UsageError(
                f"{where}: variant {shown(name)}: expected a mapping from fields to values, not "
                f"{kind_in_words(settings)}"
            )
        variants[name] = {key: as_python(value) for key, value in settings.items()}
    return variants


def check_axis(space: str, axis: str, values: Axis) -> None:
    """Check that an axis has distinct values, and sets fields that exist.

    Raises:
        UsageError: it has not, or sets the seed.
    """
    where = f"{space}, axis {axis!r}"
    if not len(values):
        raise UsageError(f"{where} has no values")
    if isinstance(values, Mapping):
        if is_field(axis):
            raise UsageError(f"{where}: named variants need a name that is not a config field")
        keys = {known_key(key) for settings in values.values() for key in settings}
    else:
        known_key(axis)
        check_twice(where, values)
        keys = {axis}
    if "seed" in keys:
        raise UsageError(f"{where}: give seeds as seeds=..., not as an axis")


def check_twice(where: str, values: Sequence[Any]) -> None:
    """Check that no value is there twice.

    Raises:
        UsageError: one is.
    """
    with prefixed(where):
        twice = has_twice(values)
    if twice:
        raise UsageError(f"{where} holds a value twice")


def fields_of(axes: Axes) -> list[str]:
    """Return the fields and options that axes set."""
    names: list[str] = []
    for axis, values in axes.items():
        if not isinstance(values, Mapping):
            names.append(axis)
            continue
        for settings in values.values():
            names.extend(settings)
    return names


def cells_of(space: str, axes: Axes) -> list[Cell]:
    """Return the combinations of the values of axes, the last axis varying fastest.

    Args:
        space: the search space, for messages.
        axes: its axes.

    Raises:
        UsageError: two axes set one field.
    """
    choices = []
    for axis, values in axes.items():
        variants = values.items() if isinstance(values, Mapping) else ((value, {axis: value}) for value in values)
        choices.append([(axis, label, settings) for label, settings in variants])
    cells = []
    for combination in itertools.product(*choices):
        cell = Cell({}, {})
        for axis, label, change in combination:
            if not cell.settings.keys().isdisjoint(change):
                twice = sorted(cell.settings.keys() & change.keys())
                raise UsageError(f"{space}: two axes set {twice[0]!r}")
            cell.labels[axis] = label
            cell.settings.update(change)
        cells.append(cell)
    return cells


def with_values(axes: Axes, changed: Callable[[Any], Any], field: str | None = None) -> dict[str, Axis]:
    """Return axes with each value of a field, or of all fields, replaced by what a function returns for it."""
    replaced: dict[str, Axis] = {}
    for axis, values in axes.items():
        if isinstance(values, Mapping):
            replaced[axis] = {label: settings_with(settings, changed, field) for label, settings in values.items()}
        elif field is not None and axis != field:
            replaced[axis] = values
        else:
            replaced[axis] = [changed(value) for value in values]
    return replaced


def settings_with(
    settings: Mapping[str, Any], changed: Callable[[Any], Any], field: str | None = None
) -> dict[str, Any]:
    """Return settings with each value, or that of a field, replaced by what a function returns for it."""
    replaced = {}
    for name, value in settings.items():
        replaced[name] = changed(value) if field in (None, name) else value
    return replaced


def in_positions(order: Any, positions: Mapping[tuple[str, ...], tuple[int, ...]]) -> Any:
    """Return a task order with positions in place of names, where these are known."""
    if isinstance(order, str) or not isinstance(order, Sequence) or not all(isinstance(name, str) for name in order):
        return order
    return positions.get(tuple(order), order)


def in_words(labels: Mapping[str, Any]) -> str:
    """Format labels on axes or parameters of a trial: "learning_rate 0.00012, acquisition entropy"."""
    return ", ".join(f"{name} {value_in_words(label)}" for name, label in labels.items())


def value_in_words(label: Any) -> str:
    """Format a label on an axis or a parameter of a trial."""
    return number_in_words(label) if isinstance(label, float) else one_line(label)


def number_in_words(value: float, digits: int = 3) -> str:
    """Format a number of a setting: a whole number up to a million in full, others with some significant digits.

    Numbers below a million have no exponent: "1000", not "1e+03".
    """
    if abs(value) <= _IN_FULL:
        text = f"{value:.{digits}g}"
        if value == int(value) or "e+" in text:
            return f"{value:.0f}"
        return text
    return f"{value:.{digits}g}"
