"""What a report says of the signals, classes, tasks and memories of its runs, from prepared frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.prepared.counts import Row, full_name, task_rows
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.tasks import training_instances
from clops_sweep.planning.memories import has_memory, held_by

from ..collect import Experiment
from ..figures.task_titles import TaskTitles
from ..formats import plural
from ..selection import cells_by_data

_MOST_NAMES = 12
"""Most tasks, classes or channels that are named."""

_MOST_ROWS = 8
"""Most tasks whose people are counted one by one."""

_IN_WORDS = {"curriculum": "easiest first", "anti_curriculum": "hardest first"}


def signals_in_words(experiment: Experiment, titles: TaskTitles) -> list[str]:
    """Return duration, sampling rate and channels of a frame of each data set, where they are prepared here."""
    return [_signals(frames) for _, frames in _first_frames(experiment, titles) if frames.encoded is None]


def _signals(frames: FrameSet) -> str:
    if frames.frame_seconds:
        rate = frames.samples / frames.frame_seconds
        duration = f"windows of {frames.frame_seconds:.3g} s at {rate:.4g} Hz"
    else:
        duration = f"windows of {frames.samples:,} samples"
    count = frames.channels
    if frames.members is None:
        return f"{duration}, one channel each: {_named(frames.lead_names)}"
    of_channels = f"{duration}, {plural(count, 'channel')}"
    return f"{of_channels}: {_named(frames.lead_names)}" if len(frames.lead_names) == count else of_channels


def classes_in_words(experiment: Experiment, titles: TaskTitles) -> list[str]:
    """Return the names of the classes of each data set."""
    return [_named(frames.classes) for _, frames in _first_frames(experiment, titles)]


def tasks_in_words(experiment: Experiment, titles: TaskTitles) -> list[str]:
    """Return the number of tasks, their names in the order of training, and the number of classes of each."""
    texts = []
    for cell in range(len(experiment.cells)):
        classes = titles.classes_per_task(experiment, cell)
        frames = titles.frames_of(experiment, cell)
        if not classes or frames is None:
            continue
        low, high = min(classes), max(classes)
        each = str(low) if low == high else f"{low} to {high}"
        count = plural(len(classes), "task")
        text = f"{count} with {each} {'class' if each == '1' else 'classes'} each"
        config = experiment.cells[cell].config
        scenario = titles.built(frames, config)
        names = [] if scenario is None else [full_name(task) for task in scenario.tasks]
        if len(names) > 1:
            text += f", {_IN_WORDS.get(str(config.task_order), 'in this order')}: {_named(names)}"
        texts.append(text)
    return texts


def people_of_tasks_in_words(experiment: Experiment, titles: TaskTitles) -> list[str]:
    """Return the people of each task in training, validation and test, as ranges if patient splits differ."""
    texts = []
    for cells in cells_by_data(experiment):
        config = experiment.cells[cells[0]].config
        every = titles.every_frames_of(experiment, cells[0])
        of_splits = [_rows(titles, config, frames) for frames in every]
        of_splits = [rows for rows in of_splits if len(rows) > 1]
        if not of_splits or not all(frames.people_known for frames in every):
            continue
        by_task = list(zip(*of_splits, strict=False))
        if len(by_task) > _MOST_ROWS:
            texts.append(f"each task {_people(list(chain.from_iterable(of_splits)))}")
        else:
            texts.append("; ".join(f"{rows[0].name} {_people(rows)}" for rows in by_task))
    return texts


def _people(rows: Sequence[Row]) -> str:
    """Return ranges of people: "9 to 10 training, 3 validation, 3 test"."""
    parts = []
    for position, name in enumerate(("training", "validation", "test")):
        counts = [row.patients[position] or 0 for row in rows]
        if any(counts):
            parts.append(f"{_span(counts)} {name}")
    return ", ".join(parts)


def memories_in_words(experiment: Experiment, titles: TaskTitles) -> list[str]:
    """Return how many training instances the methods hold after all tasks, on the first patient split."""
    methods_of: dict[str, list[str]] = {}
    instances = list[int]()
    for method, held in _held_by_method(experiment, titles, instances).items():
        methods_of.setdefault(_span(held), []).append(method)
    if not methods_of:
        return []
    sizes = "; ".join(f"{', '.join(methods)}: {held}" for held, methods in methods_of.items())
    first = ", on the first patient split" if len({split for split, _ in experiment.replicates}) > 1 else ""
    return [f"{sizes} of {_span(instances)} training instances{first}"]


def _held_by_method(experiment: Experiment, titles: TaskTitles, instances: list[int]) -> dict[str, list[int]]:
    """Return the sizes of the memories of each method, and add the number of training instances to `instances`."""
    held_of: dict[str, list[int]] = {}
    for number, cell in enumerate(experiment.cells):
        frames = titles.frames_of(experiment, number)
        if frames is None:
            continue
        try:
            scenario = titles.built(frames, cell.config) if has_memory(cell.config) else None
            held = None if scenario is None else held_by(cell.config, scenario)
        except (UsageError, LookupError):  # a memory that exceeds the instances, or a method that is not registered
            continue
        if scenario is not None and held is not None:
            held_of.setdefault(cell.config.strategy, []).append(held)
            instances.append(training_instances(scenario))
    return held_of


def _rows(titles: TaskTitles, config: RunConfig, frames: FrameSet) -> list[Row]:
    """Return the tasks with their people in the order of training; none if they cannot be built here."""
    scenario = titles.built(frames, config)
    return [] if scenario is None else task_rows(scenario, frames)


def _first_frames(experiment: Experiment, titles: TaskTitles) -> Iterator[tuple[int, FrameSet]]:
    """Yield the first cell of each data set and scenario with its frames, if they are prepared here."""
    for cells in cells_by_data(experiment):
        frames = titles.frames_of(experiment, cells[0])
        if frames is not None:
            yield cells[0], frames


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _span(counts: Iterable[int]) -> str:
    every = list(counts)
    low, high = min(every), max(every)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
