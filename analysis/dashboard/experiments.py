"""What the experiments of a store hold, and how they differ: one line for each, so that none is taken for another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.experiment.config import RunConfig, names_of
from clops_sweep.experiment.fields import DRAWS

from ..collect import Experiment, label_text
from ..formats import plural
from ..selection import data_of
from ..statistics import Fold
from .units import splits_in_words

_MOST_LABELS = 5
"""Most labels of an axis that are listed; of more, the number is given, with the range of numbers."""

_LONG_NUMBER = 6
"""Characters of a number from which on several are not listed."""

_MOST_AXES = 3
"""Most axes that are listed with their labels."""

_MOST_FIELDS = 4
"""Most fields that are named as a difference."""

Constants = Mapping[str, Any]
"""Fields that are equal in all configurations of an experiment."""


def held_in_words(experiment: Experiment) -> str:
    """Return the axes of an experiment with their labels, and the number of patient splits or folds, and of seeds."""
    parts = []
    for axis, labels in experiment.axes.items():
        texts = list(dict.fromkeys(map(label_text, labels)))
        if axis in DRAWS or len(texts) < 2:
            continue
        parts.append(f"{axis_title(axis)}: {_labels_in_words(labels, texts)}")
    more = len(parts) - _MOST_AXES
    if more > 1:
        parts = [*parts[:_MOST_AXES], f"{more} more axes"]
    splits = {split for split, _ in experiment.repetitions}
    seeds = {seed for _, seed in experiment.replicates}
    if len(splits) > 1 or any(isinstance(split, Fold) for split in splits):
        parts.append(splits_in_words(splits))
    parts.append(plural(len(seeds), "seed"))
    return "; ".join(parts)


def short_text(value: object) -> str:
    """Return a value as text, a long number with three significant digits."""
    text = label_text(value)
    return f"{value:.3g}" if isinstance(value, float) and len(text) > _LONG_NUMBER else text


def _labels_in_words(labels: Sequence[object], texts: Sequence[str]) -> str:
    """Return the labels of an axis; of many, or of several long numbers, how many there are and their range."""
    are_long = any(len(text) > _LONG_NUMBER for text in texts)
    numbers = [label for label in labels if isinstance(label, int | float) and not isinstance(label, bool)]
    if len(numbers) == len(labels) and (len(texts) > _MOST_LABELS or (are_long and len(texts) > 2)):
        return f"{len(texts)} values from {min(numbers):.3g} to {max(numbers):.3g}"
    return ", ".join(texts) if len(texts) <= _MOST_LABELS else f"{len(texts)} values"


def differences(experiments: Sequence[Experiment]) -> dict[str, str]:
    """Return for each experiment, by name, the settings in which it differs from others on the same data.

    Data set and scenario are named if the experiments have several; what the name of an experiment says is left out.
    If two experiments share runs, the smaller one says so. Seeds and patient splits are no difference.
    """
    constants = {}
    for experiment in experiments:
        constants[experiment.name] = _constants([cell.config for cell in experiment.cells])
    several_data = len({data_of(cell) for experiment in experiments for cell in experiment.cells}) > 1
    sentences = {}
    for experiment in experiments:
        on_same_data = [other for other in experiments if other is not experiment and _data(other) & _data(experiment)]
        others = [constants[other.name] for other in on_same_data]
        said = experiment.name.replace(",", " ").split()
        parts = _differing(constants[experiment.name], others, said)
        if several_data:
            of_data = [", ".join(pair) for pair in sorted(_data(experiment)) if not set(pair) <= set(said)]
            parts = [*of_data, *parts]
        shared = _shared_with(experiment, on_same_data)
        sentences[experiment.name] = "; ".join([*parts, shared] if shared else parts)
    return sentences


def _data(experiment: Experiment) -> set[tuple[str, str]]:
    """Return the data sets and scenarios of an experiment."""
    return {data_of(cell) for cell in experiment.cells}


def _constants(configs: Sequence[RunConfig]) -> Constants:
    """Return the fields and options that are equal in all configs, apart from draws, data set and scenario."""
    constants = {}
    first = configs[0]
    for name in names_of(configs):
        if name in DRAWS or name in ("dataset", "scenario"):
            continue
        value = first.get(name)
        if all(config.get(name) == value for config in configs):
            constants[name] = value
    return constants


def _differing(own: Constants, others: Sequence[Constants], said: Sequence[str]) -> list[str]:
    """Return the fields that another experiment holds constant at another value, without values that are `said`.

    An option that only one of two strategies has is no difference of its own.
    """
    named = []
    for name, value in own.items():
        values = [other[name] for other in others if name in other]
        is_option = name not in RunConfig.model_fields
        if (is_option and value is None) or value in said:
            continue
        if any(other != value and not (is_option and other is None) for other in values):
            named.append(f"{axis_title(name)} = {short_text(value)}")
    more = len(named) - _MOST_FIELDS
    return [*named[:_MOST_FIELDS], f"{more} more settings"] if more > 1 else named


def _shared_with(experiment: Experiment, others: Sequence[Experiment]) -> str:
    """Return a phrase on the larger experiment that has the most runs of this one; empty without one."""
    own = _runs(experiment)
    most, name = 0, ""
    for other in others:
        theirs = _runs(other)
        shared = len(own & theirs)
        if len(theirs) > len(own) and shared > most:
            most, name = shared, other.name
    if not most:
        return ""
    which = "all" if most == len(own) else f"{most:,}"
    return f"{which} of its runs are also in {name}"


def _runs(experiment: Experiment) -> set[str]:
    return set(experiment.runs["run_id"]) - {""}
