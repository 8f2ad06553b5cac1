"""Names of runs for display, from the labels of their search space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from clops_sweep.experiment.axis_names import axis_symbol
from clops_sweep.experiment.spaces.axes import is_field
from clops_sweep.experiment.spaces.grid import RunRequest

_WITHOUT_AXIS = frozenset({"strategy", "dataset", "network", "scenario"})
"""Fields whose values are shown without the field's name."""

_SHORT_AXES: Final = {
    "split_seed": "split",
    "epochs_per_task": "epochs",
    "storage_fraction": "storage",
    "acquisition_fraction": "acquisition",
}
"""Short names of fields, for numbers where the name of the field has no room."""

_VALUES_ALONE: Final = ("True", "False", "None")
"""Values other than numbers that say nothing without the name of their field."""

_LONGEST_VALUE = 40


@dataclass(frozen=True)
class Label:
    """A label in the name of a run.

    Attributes:
        text: its value, or the name of a variant, a space or a trial.
        axis: the axis, if it is shown before the value; else empty.
    """

    text: str
    axis: str = ""

    def __str__(self) -> str:
        axis = _SHORT_AXES[self.axis] if self.axis == "split_seed" else self.axis
        return f"{axis} {self.text}" if axis else self.text

    @property
    def short(self) -> str:
        """The label with a shorter name of its config field, and without one if the value says enough."""
        if not is_field(self.axis):
            return str(self)
        if self.text[:1].isalpha() and self.text not in _VALUES_ALONE:
            return self.text
        return f"{_SHORT_AXES.get(self.axis, self.axis)} {self.text}"

    @property
    def symbolic(self) -> str:
        """The label with the paper's symbol of its config field, such as "b = 0.1", and a number of three digits.

        Without a symbol it is the short label; a learning rate is "lr 0.001".
        """
        rounded = replace(self, text=_rounded(self.text)) if is_field(self.axis) else self
        symbol = axis_symbol(self.axis)
        if symbol != self.axis:
            return f"{symbol} = {rounded.text}"
        return f"lr {rounded.text}" if self.axis == "learning_rate" else rounded.short


def _rounded(text: str) -> str:
    """Return a number with three significant digits; other texts, and whole numbers, as they are."""
    try:
        return text if text.isdigit() else f"{float(text):.3g}"
    except ValueError:
        return text


@dataclass(frozen=True)
class RunName:
    """The name of a run, without its seed: "my space: Random storage, storage_fraction 0.1".

    Attributes:
        labels: its labels.
        space: its search space, or its trial of a search; empty if it need not be named.
    """

    labels: tuple[Label, ...] = ()
    space: str = ""

    @classmethod
    def of(cls, text: str) -> RunName:
        """Return a name that consists of a text."""
        return cls((Label(text),))

    def __str__(self) -> str:
        return self._joined([str(label) for label in self.labels])

    @property
    def parts(self) -> tuple[Label, ...]:
        """The labels, after the space if it is named."""
        return (Label(self.space), *self.labels) if self.space else self.labels

    @property
    def short(self) -> str:
        """The name with short labels."""
        return self._joined([label.short for label in self.labels])

    @property
    def symbolic(self) -> str:
        """The name with symbols of config fields, which is shorter still."""
        return self._joined([label.symbolic for label in self.labels])

    def _joined(self, labels: Sequence[str]) -> str:
        texts = [text for text in (self.space, ", ".join(labels)) if text]
        return ": ".join(texts)


def run_names(requests: Sequence[RunRequest]) -> list[RunName]:
    """Return the name of each run, without its seed.

    The name consists of the labels on the axes in which the runs differ: names of variants, and fields with their
    values. With runs of several spaces, the space comes first. If the runs differ in no axis, the name is that of the
    space.
    """
    spaces: dict[str, list[Mapping[str, Any]]] = {}
    for request in requests:
        spaces.setdefault(request.space, []).append(request.labels)
    axes = {space: _telling(labels) for space, labels in spaces.items()}
    names: dict[tuple[str, int], RunName] = {}  # by identity of the object: the seeds of a cell share its labels
    result = []
    for request in requests:
        cell = request.space, id(request.labels)
        if cell not in names:
            labels = _labels({axis: request.labels[axis] for axis in axes[request.space]})
            names[cell] = RunName(labels, request.space if len(spaces) > 1 or not labels else "")
        result.append(names[cell])
    return result


def _telling(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the axes on which the cells of one space differ."""
    first = cells[0]
    telling = []
    for axis, label in first.items():
        if any(labels[axis] != label for labels in cells):
            telling.append(axis)
    return telling


def _labels(values: Mapping[str, Any]) -> tuple[Label, ...]:
    """Return the labels of values on axes, without missing ones."""
    return tuple(_label(axis, value) for axis, value in values.items() if value is not None)


def _label(axis: str, value: Any) -> Label:
    if isinstance(value, float):
        return Label(f"{value:.6g}", axis)
    text = str(value)
    if len(text) > _LONGEST_VALUE:
        text = f"{text[:_LONGEST_VALUE]}…"
    return Label(text) if axis in _WITHOUT_AXIS or not is_field(axis) else Label(text, axis)
