"""Lines of text about jobs for the display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Failed, Finished, FoundFinished, Unrecorded
from clops_sweep.experiment.events import Progress
from clops_sweep.experiment.metrics import scores_in_words
from clops_sweep.experiment.spaces.run_names import Label, RunName

WIDTH = 100
"""Most characters of a line about a finished run."""

_SHORTEST_NAME = 20
"""Least characters of a name that is cut off."""

_SHORTEST_LABEL = 12
"""Least characters of a label that is cut off, beside others that are whole."""


def called(job: Job) -> str:
    """Return the name of a job's run: "CLOPS, seed 0"."""
    return f"{name_of(job)}, seed {job.config.seed}"


def fitted(names: Sequence[RunName], width: int) -> list[str]:
    """Shorten names to a number of columns, if possible without losing their differences.

    Names of fields are shortened first, then labels are dropped that all names share.
    """
    whole = [str(name) for name in names]
    if _fit(whole, width):
        return whole
    short = [name.short for name in names]
    if _fit(short, width):
        return short
    shared = set.intersection(*(set(name.parts) for name in names))
    telling = []
    for name in names:
        labels = [label.short for label in name.parts if label not in shared]
        telling.append(", ".join(labels) or name.short)
    return telling


def _cut(name: RunName, width: int) -> str:
    """Return a name with short labels, and with an ellipsis, if it has no room.

    The ellipsis is in the middle of the longest variant if enough of it is left, so that all numbers stay. Otherwise it
    replaces the longest labels, so that a number is not cut from its name. If neither has room, the whole name is cut.
    """
    (text,) = fitted([name], width)
    room = max(width, _SHORTEST_NAME)
    if len(text) <= room:
        return text
    shortened = _with_cut_variant(name, room) or _with_cut_space(name, room) or _without_longest(name, room)
    return shortened or _cut_in_the_middle(name.symbolic, room)


def _with_cut_space(name: RunName, room: int) -> str:
    """Return a name whose space has an ellipsis in its middle; empty if too little of it is left."""
    whole = ", ".join(label.symbolic for label in name.labels)
    left = room - len(whole) - len(": ")
    if not name.labels or left < _SHORTEST_LABEL:
        return ""
    return f"{_cut_in_the_middle(name.space, left)}: {whole}"


def _with_cut_variant(name: RunName, room: int) -> str:
    """Return a name whose longest variant has an ellipsis in its middle; empty if too little of it is left."""
    labels = [Label(label.symbolic) for label in name.labels]
    of_variants = [position for position, label in enumerate(name.labels) if not label.axis]
    if of_variants:
        longest = max(of_variants, key=lambda position: len(labels[position].text))
        too_long = len(RunName(tuple(labels), name.space).short) - room
        left = len(labels[longest].text) - max(too_long, 0)
        if left >= _SHORTEST_LABEL:
            labels[longest] = Label(_cut_in_the_middle(labels[longest].text, left))
            return RunName(tuple(labels), name.space).short
    return ""


def _without_longest(name: RunName, room: int) -> str:
    """Return a name with an ellipsis for its longest labels, the last one excepted; empty if it has no room."""
    labels = [Label(label.symbolic) for label in name.labels]
    shown = list(range(len(labels)))
    while len(shown) > 1:
        shown.remove(max(shown[:-1], key=lambda position: len(labels[position].text)))
        first_left_out = next(at for at in range(len(labels)) if at not in shown)
        texts = []
        for at, label in enumerate(labels):
            if at in shown:
                texts.append(label)
            elif at == first_left_out:
                texts.append(Label("…"))
        shortened = RunName(tuple(texts), name.space).short
        if len(shortened) <= room:
            return shortened
    return ""


def _cut_in_the_middle(text: str, room: int) -> str:
    if len(text) <= room:
        return text
    end = room // 2
    return f"{text[: room - end - 1]}…{text[-end:]}"


def _fit(texts: Sequence[str], width: int) -> bool:
    return all(len(text) <= width for text in texts)


def name_of(job: Job) -> RunName:
    """Return the name of a job's run, without its seed."""
    return job.name if job.name.parts else RunName.of(job.config.strategy)


def ended(job: Job, report: Finished | FoundFinished | Failed | Unrecorded, status: str, width: int = WIDTH) -> str:
    """Describe how a job ended.

    Args:
        job: the job.
        report: its last report.
        status: the command that explains failures.
        width: most characters of the line of a finished run, whose name is shortened; errors are never cut off.
    """
    name = called(job)
    match report:
        case Finished():
            return _finished(job, report.values, width)
        case FoundFinished():
            return f"finished  {name}, in the store already"
        case Failed(reason):
            why = f": {reason}" if reason else ""
            return f"failed    {name}{why}  ({status} shows {'more' if why else 'why'})"
        case Unrecorded(error):
            return f"not recorded  {name}: {error}"


def _finished(job: Job, values: Mapping[str, float], width: int) -> str:
    """Return the line of a finished run. If its name has no room, symbols are tried, then only the first score.

    Then the longest variant is cut or, without one that is long enough, the longest labels are left out.
    """
    name = name_of(job)
    first = dict(islice(values.items(), 1))
    for shown in (values, first):
        rest = f", seed {job.config.seed}: {scores_in_words(shown)}"
        for text in (str(name), name.short, name.symbolic):
            line = f"finished  {text}{rest}"
            if len(line) <= width:
                return line
    seed = f", seed {job.config.seed}: "
    room = width - len("finished  ") - len(seed)
    cut_variant = _with_cut_variant(name, room - len(scores_in_words(values)))
    if cut_variant:
        return f"finished  {cut_variant}{seed}{scores_in_words(values)}"
    score = scores_in_words(first)  # a name tells more than a second score
    return f"finished  {_cut(name, room - len(score))}{seed}{score}"


def resumed(job: Job, progress: Progress) -> str:
    """Describe with which epoch a job resumes from a checkpoint."""
    following = replace(progress, epoch=progress.epoch + 1)
    return f"resumed   {called(job)}: at {at(following)}, from its checkpoint"


def at(progress: Progress) -> str:
    """Describe the progress of a run: "task 2/6, epoch 3/40"."""
    return f"task {progress.task}/{progress.tasks}, epoch {progress.epoch}/{progress.epochs}"


def time_left(seconds: float) -> str:
    """Describe an expected time until the end; it may have passed."""
    return f"about {duration(seconds)} left" if seconds > 0 else "longer than expected"


def duration(seconds: float) -> str:
    """Format a duration: "7 s", "3 min 05 s", "2 h 10 min"."""
    minutes, seconds = divmod(max(1, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"
