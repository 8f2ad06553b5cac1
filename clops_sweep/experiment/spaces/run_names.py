"""Names of runs for display, from the labels of their search space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clops_sweep.experiment.spaces.search_space import RunRequest, is_field

_SAY_IT_ALL = frozenset({"strategy", "dataset", "network", "scenario"})
"""Fields whose values are shown without the field's name."""

_LONGEST_VALUE = 40


def run_names(requests: Sequence[RunRequest]) -> list[str]:
    """Return the name of each run, without its seed.

    The name consists of the labels on the axes in which the runs differ: names of variants, and fields with their
    values. With runs of several spaces, the space comes first. If the runs differ in no axis, the name is that of the
    space.
    """
    spaces: dict[str, list[Mapping[str, Any]]] = {}
    for request in requests:
        spaces.setdefault(request.space, []).append(request.labels)
    axes = {space: _telling(labels) for space, labels in spaces.items()}
    names: dict[tuple[str, int], str] = {}  # by identity of the object: the seeds of a cell share its labels
    for request in requests:
        if (request.space, id(request.labels)) not in names:
            place = _place({axis: request.labels[axis] for axis in axes[request.space]})
            parts = [request.space] * (len(spaces) > 1 or not place) + [place] * bool(place)
            names[request.space, id(request.labels)] = ": ".join(parts)
    return [names[request.space, id(request.labels)] for request in requests]


def _telling(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the axes on which the cells of one space differ."""
    first = cells[0]
    return [axis for axis in first if any(labels[axis] != first[axis] for labels in cells)]


def _place(labels: Mapping[str, Any]) -> str:
    """Format labels on axes: "Random storage, storage_fraction 0.1"."""
    return ", ".join(_shown(axis, label) for axis, label in labels.items() if label is not None)


def _shown(axis: str, label: Any) -> str:
    if isinstance(label, float):
        return f"{axis} {label:.6g}"
    text = str(label)
    text = text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
    return text if axis in _SAY_IT_ALL or not is_field(axis) else f"{axis} {text}"
