"""The table on top of a report: data, people, network, training, repetitions, and what differs between runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.left_out import sentences
from clops_sweep.experiment.axis_names import axis_title
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.search_space import SELECTION, SearchSpace, search_of

from ..collect import Experiment, label_text
from ..figures.task_titles import TaskTitles
from ..formats import TextTable, label_cell, plural
from ..leading import names_of_tuned, what_was_tuned
from ..statistics import Fold
from .setup_tasks import (
    classes_in_words,
    memories_in_words,
    people_of_tasks_in_words,
    signals_in_words,
    tasks_in_words,
)

_MOST_VALUES = 6
"""Most values of a fact that are listed."""

_PEOPLE = {"patients_train": "training", "patients_validation": "validation", "patients_test": "test"}
_TRAINING = {
    "network": "network",
    "epochs": "epochs_per_task",
    "learning rate": "learning_rate",
    "batch size": "batch_size",
}


@dataclass(frozen=True)
class Shown:
    """An experiment of the page with the titles of its tasks, and its search space if there is one."""

    experiment: Experiment
    titles: TaskTitles
    space: SearchSpace | None = None

    @property
    def configs(self) -> list[RunConfig]:
        """The configurations of the experiment."""
        return [cell.config for cell in self.experiment.cells]


def setup_text(experiments: Sequence[Shown], name: str) -> TextTable:
    """Return the set-up of the experiments of a page, a fact in each row.

    A fact that is equal in all experiments is stated once; otherwise each value names its experiments. Searches that
    only choose configurations have one row, with what they try.

    Args:
        experiments: the experiments, at least one.
        name: name of the table.
    """
    facts: dict[str, Callable[[Shown], str]] = {
        "data set": _data_set,
        "left out": _left_out,
        "may be there twice": _leaks,
        "shortcuts": _shortcuts,
        "signals": _by_frames(signals_in_words),
        "classes": _by_frames(classes_in_words),
        "people": _people,
        "tasks": _by_frames(tasks_in_words),
        "people of each task": _by_frames(people_of_tasks_in_words),
        **{fact: _of_configs(fact, column) for fact, column in _TRAINING.items()},
        "methods": _of_configs("method", "strategy"),
        "memory": _by_frames(memories_in_words),
        "repetitions": _repetitions,
        "what differs between runs": _differences,
    }
    reported = [shown for shown in experiments if not shown.experiment.is_tuning]
    tuning = [shown for shown in experiments if shown.experiment.is_tuning]
    spaces = names_of_tuned(shown.experiment for shown in tuning)
    rows = []
    data = []
    for fact, value_of in [*facts.items(), ("tuning", _tried)]:
        of_fact = tuning if fact == "tuning" else reported or tuning
        values = {shown.experiment.name: value_of(shown) for shown in of_fact}
        titles = {name: what_was_tuned(name, spaces) if of_fact is tuning else name for name in values}
        for space in _names_that_tuned(tuning, _TRAINING.get(fact, "")):
            if values.get(space):
                values[space] += " (tuned)"
        in_words = values
        if fact == "tuning":
            in_words = _tried_for_each(tuning, "method" if len(spaces) == 1 else "tuned method")
        text = _stated_once({titles[name]: value for name, value in in_words.items()})
        if text:
            rows.append((label_cell(fact), label_cell(text)))
            data += [(fact, experiment, value) for experiment, value in values.items()]
    table = pd.DataFrame(data, columns=["fact", "search_space", "value"], dtype=object)
    notes = ("People: those of the training, validation and test set of a run.",)
    return TextTable(name, "Set-up", ("fact", "value"), tuple(rows), 2, (), notes, table)


def _names_that_tuned(tuning: Iterable[Shown], column: str) -> set[str]:
    """Return the names of the search spaces whose tuning varied a config field."""
    experiments = [shown.experiment for shown in tuning]
    return {experiment.name.rpartition(SELECTION)[0] for experiment in experiments if column in experiment.axes}


def _stated_once(values: dict[str, str]) -> str:
    """Return the values of experiments as one text; equal ones once, with the names of their experiments."""
    names_of: dict[str, list[str]] = {}
    for name, value in values.items():
        if value:
            names_of.setdefault(value, []).append(name)
    if len(names_of) == 1 and len(next(iter(names_of.values()))) == len(values):
        return next(iter(names_of))
    parts = []
    for value, names in names_of.items():
        more = len(names) - _MOST_VALUES
        who = ", ".join(names[:_MOST_VALUES]) + (f" and {more} more" if more > 0 else "")
        parts.append(f"{who}: {value}")
    return "; ".join(parts)


def _listed(values: Iterable[object]) -> str:
    texts = list(dict.fromkeys(label_text(value) for value in values))
    shown = ", ".join(texts[:_MOST_VALUES])
    more = len(texts) - _MOST_VALUES
    return f"{shown} and {more} more" if more > 0 else shown


def _data_set(shown: Shown) -> str:
    texts = []
    for config in shown.configs:
        title = ""
        if config.dataset in DATASETS:
            title = DATASETS[config.dataset].title
        named = config.dataset
        if title.startswith(f"{config.dataset}, "):  # a declared data set
            named = title
        elif title and title != config.dataset:
            named = f"{config.dataset} ({title})"
        texts.append(f"{named}, scenario {config.scenario}")
    return _listed(texts)


def _left_out(shown: Shown) -> str:
    """Return what the preparation dropped, if the frames of the runs are prepared here."""
    return _of_frames(shown, lambda frames: sentences(frames.left_out))


def _leaks(shown: Shown) -> str:
    """Return who may be there under two names, if the frames of the runs are prepared here."""
    return _of_frames(shown, lambda frames: frames.leaks)


def _shortcuts(shown: Shown) -> str:
    """Return the facts that tell a class without a network, if the frames of the runs are prepared here."""
    return _of_frames(shown, lambda frames: frames.shortcuts)


def _of_frames(shown: Shown, sentences_of: Callable[[FrameSet], Sequence[str]]) -> str:
    """Return the sentences on the frames of each configuration, those of each data set together."""
    sentences = list[str]()
    for cell in range(len(shown.experiment.cells)):
        frames = shown.titles.frames_of(shown.experiment, cell)
        if frames is not None:
            sentences += sentences_of(frames)
    return "; ".join(dict.fromkeys(sentences))


def _people(shown: Shown) -> str:
    return people_in_words(shown.experiment.runs)


def people_in_words(runs: pd.DataFrame) -> str:
    """Return the numbers of people by split, from the finished runs: ranges, if they differ between splits."""
    parts = []
    if len(runs) and "patients_test" in runs and runs["patients_test"].isna().all():
        return "unknown: each recording counts as a person"
    for column, split in _PEOPLE.items():
        counts = runs[column].dropna() if column in runs else pd.Series(dtype=float)
        if not len(counts):
            continue
        low, high = int(counts.min()), int(counts.max())
        parts.append(f"{low:,} {split}" if low == high else f"{low:,} to {high:,} {split}")
    return ", ".join(parts)


def _by_frames(in_words: Callable[[Experiment, TaskTitles], Sequence[str]]) -> Callable[[Shown], str]:
    """Return a function that lists what prepared frames say of an experiment."""
    return lambda shown: _listed(in_words(shown.experiment, shown.titles))


def _of_configs(fact: str, column: str) -> Callable[[Shown], str]:
    """Return a function that lists the values of a config field."""

    def value_of(shown: Shown) -> str:
        values: list[Any] = [getattr(config, column) for config in shown.configs]
        if column == "network":
            values = [_network(config) for config in shown.configs]
        if column == "epochs_per_task":
            values = [_epochs(config) for config in shown.configs]
        return _listed(values)

    return value_of


def _network(config: RunConfig) -> str:
    if config.encoder is None:
        return config.network
    encoder = config.encoder if isinstance(config.encoder, str) else "of a stored run"
    return f"{config.network} on encoder {encoder}"


def _epochs(config: RunConfig) -> str:
    if config.stream == "online":
        return "one pass (online)"
    return f"{config.epochs_per_task} a task"


def _repetitions(shown: Shown) -> str:
    replicates = shown.experiment.repetitions
    splits = list(dict.fromkeys(split for split, _ in replicates))
    seeds = len({seed for _, seed in replicates})
    of_splits = plural(len(splits), "fold" if splits and isinstance(splits[0], Fold) else "patient split")
    return f"{plural(seeds, 'seed')}, {of_splits}, {plural(len(shown.experiment.runs), 'run')}"


def _tried_for_each(tuning: Sequence[Shown], unit: str) -> dict[str, str]:
    """Return what each search has tried by its name; equal texts say for how many of a unit they hold."""
    alike = Counter(_tried(shown) for shown in tuning)
    in_words = {}
    for shown in tuning:
        count = alike[_tried(shown)]
        in_words[shown.experiment.name] = _tried(shown, f" for each of {plural(count, unit)}" if count > 1 else "")
    return in_words


def _tried(shown: Shown, for_each: str = "") -> str:
    """Return the number of configurations that a search has tried, and what it tried of the range of each parameter."""
    experiment = shown.experiment
    declared = {} if shown.space is None else search_of(shown.space).distributions
    parts = [f"{plural(len(experiment.cells), 'configuration')} tried{for_each}"]
    for axis, labels in experiment.axes.items():
        if axis in experiment.number_axes:
            low, high = (_rounded(float(limit)) for limit in (min(labels), max(labels)))
            text = f"{axis_title(axis)} {low} to {high}"
            limits = declared.get(axis)
            if limits is not None and not isinstance(limits, tuple):
                text += f" (declared: {_rounded(limits.low)} to {_rounded(limits.high)})"
            parts.append(text)
        elif len(labels) > 1:
            parts.append(f"{axis_title(axis)} {_listed(labels)}")
    return ", ".join(parts)


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _differences(shown: Shown) -> str:
    """Return the axes of an experiment with their values."""
    parts = []
    for axis, labels in shown.experiment.axes.items():
        if len(labels) > 1:
            parts.append(f"{axis_title(axis)}: {_listed(labels)}")
    return "; ".join(parts) or "seeds and patient splits"
