"""Lines of text about jobs for the display."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Failed, Finished, FoundFinished, Resumed, Unrecorded
from clops_sweep.experiment.metrics import in_words
from clops_sweep.experiment.spaces.search_space import is_field


def called(job: Job) -> str:
    """Return the name of a job's run: "CLOPS, seed 0"."""
    return f"{name_of(job)}, seed {job.config.seed}"


_FIELD = re.compile(r"(?:^|(?<=, )|(?<=: ))(\w+) (?=\S)")


def fitted(names: Sequence[str], width: int) -> list[str]:
    """Shorten names to a number of columns, if possible without losing their differences.

    Names of fields are dropped first, then values that all names share.
    """
    if max(map(len, names), default=0) <= width:
        return list(names)
    short = [_FIELD.sub(lambda found: "" if is_field(found[1]) else found[0], name) for name in names]
    if max(map(len, short)) <= width:
        return short
    parts = [name.split(", ") for name in short]
    return [", ".join(it for it in of if any(it not in other for other in parts)) or ", ".join(of) for of in parts]


def name_of(job: Job) -> str:
    """Return the name of a job's run, without its seed."""
    return job.name or job.config.strategy


def ended(job: Job, report: Finished | FoundFinished | Failed | Unrecorded, status: str) -> str:
    """Describe how a job ended; `status` is the command that explains failures."""
    name = called(job)
    match report:
        case Finished():
            return f"finished  {name}: {in_words(report.values)}"
        case FoundFinished():
            return f"finished  {name}, in the store already"
        case Failed(reason):
            why = f": {reason}" if reason else ""
            return f"failed    {name}{why}  ({status} shows {'more' if why else 'why'})"
        case Unrecorded(error):
            return f"not recorded  {name}: {error}"


def resumed(job: Job, at: Resumed) -> str:
    """Describe where a job resumes from a checkpoint."""
    return f"resumed   {called(job)}: at task {at.task}/{at.tasks}, epoch {at.epoch}/{at.epochs}, from its checkpoint"


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
