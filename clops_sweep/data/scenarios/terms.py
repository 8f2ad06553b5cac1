"""Time-incremental: one task per term, by date of acquisition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import TERMS
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios.instances import class_targets, info_of, kind_of_labels, reference_lead_of
from clops_sweep.data.scenarios.tasks import ScenarioTasks, TaskInstances
from clops_sweep.errors import UsageError


def time_il(frames: FrameSet) -> ScenarioTasks:
    """One task per term, the declared ones or thirds of the dates, with one output per class.

    Raises:
        UsageError: the data set has no dates.
    """
    if frames.times is None:
        raise UsageError(f"time_il needs dates of acquisition, which {frames.name!r} does not have")
    info = info_of(frames)
    chosen = np.ones(len(frames), bool) if info.time_il_all_leads else reference_lead_of(frames)
    term, targets = term_of(frames.times, chosen, info.terms), class_targets(frames)
    tasks = []
    for number in range(len(info.terms) or TERMS):
        instances = chosen & (term == number)
        name, title = f"Term {number + 1}", ""
        if instances.any():
            days = frames.times[instances].astype("datetime64[D]")
            title = f"{name} ({days.min()} to {days.max()})"
        tasks.append(TaskInstances(name, instances, targets, title))
    return ScenarioTasks(kind_of_labels(frames), tasks)


def term_of(times: NDArray[np.datetime64], chosen: NDArray[np.bool_], ends: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the term of every instance [n], from 0; the number of terms for dates after the last end.

    `ends` are ISO dates, each the first day after its term. Without them, terms are terciles of the distinct times of
    the `chosen` instances, so that instances of one recording stay together.
    """
    if not ends:
        distinct = np.unique(times[chosen])
        thirds = distinct[[len(distinct) // 3, 2 * len(distinct) // 3]]
        return np.searchsorted(thirds, times, side="right").astype(np.int64)
    boundaries = np.array(ends, dtype=times.dtype)
    return np.searchsorted(boundaries, times, side="right").astype(np.int64)
