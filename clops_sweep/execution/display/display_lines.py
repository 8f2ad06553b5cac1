"""Lines of text about jobs for the display."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean

from clops_sweep.execution.jobs import Job
from clops_sweep.execution.reports import Failed, Finished, FoundFinished, Resumed, Unrecorded
from clops_sweep.experiment.metrics import in_words
from clops_sweep.experiment.spaces.search_space import is_field


def called(job: Job) -> str:
    """Return the name of a job's runs: "CLOPS, seed 0", "CLOPS, 5 seeds", "CLOPS, seed 0 and 7 more"."""
    return f"{names_of(job)[0]}, {which(job)}"


def which(job: Job) -> str:
    """Return the seeds of a job's runs with that name, and whether it has other runs."""
    runs, first = len(job.configs), f"seed {job.configs[0].seed}"
    if runs == 1:
        return first
    if len({config.replace(seed=0) for config in job.configs}) == 1:
        return f"{runs} seeds"
    return f"{first} and {runs - 1} more"


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


def names_of(job: Job) -> tuple[str, ...]:
    """Return the names of a job's runs, without their seeds."""
    return job.names or tuple(config.strategy for config in job.configs)


def ended(job: Job, report: Finished | FoundFinished | Failed | Unrecorded, status: str) -> str:
    """Describe how a job ended; `status` is the command that explains failures."""
    name, runs = called(job), len(job.run_ids)
    match report:
        case Finished():
            return f"finished  {name}: {metrics(report)}"
        case FoundFinished():
            return f"finished  {name}, in the store already"
        case Failed(run_ids):
            some = f"{len(run_ids)} of " if len(run_ids) < runs else ""
            why = f": {report.reason}" if report.reason else ""
            return f"failed    {some}{name}{why}  ({status} shows {'more' if why else 'why'})"
        case Unrecorded(error):
            return f"not recorded  {name}: {error}"


def metrics(report: Finished) -> str:
    """Return the mean metrics of a job's runs; joint training has no forgetting."""
    means = {column: fmean(values) for column, values in report.values.items()}
    several_runs = any(len(values) > 1 for values in report.values.values())
    return in_words(means, "mean " if several_runs else "")


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
