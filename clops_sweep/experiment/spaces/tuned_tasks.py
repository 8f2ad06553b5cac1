"""A tuned space on prepared data: it is not tuned on what it reports."""

from __future__ import annotations

from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.data.scenarios.leaks import check_leaks
from clops_sweep.errors import UsageError, prefixed, several
from clops_sweep.experiment.prepared_tasks import prepared_tasks
from clops_sweep.experiment.spaces.grid import subject_of
from clops_sweep.experiment.spaces.search_space import TunedSpace
from clops_sweep.experiment.spaces.selection import configs_of
from clops_sweep.experiment.spaces.tuning import TuneOn


def check_tuning(tuned: TunedSpace, data: PreparedData) -> None:
    """Check that a space with a `TuneOn` is not tuned on what it reports, as far as its data are prepared.

    Raises:
        UsageError: it is tuned on all tasks, or on people or signals that are reported (see `check_leaks`).
    """
    tune_on = tuned.search.tune_on
    if not isinstance(tune_on, TuneOn):
        return
    subject = subject_of(tuned.name)
    with prefixed(subject):
        reported = prepared_tasks(tuned.reported_at_bounds, data)
        dataset = tuned.undivided.base.dataset
        for scenario, _ in reported:
            tasks = len(scenario.tasks)
            if tune_on.tasks is not None and tasks <= tune_on.tasks:
                raise UsageError(
                    f"{tune_on}: {scenario.name} of {dataset} has {several(tasks, 'task')}, and all "
                    f"of them are reported; expected fewer to tune on, or tune_on='same'"
                )
        if tune_on.splits is None and tune_on.dataset is None:
            return
        tuned_on = prepared_tasks([config for phase in tuned.phases for config in configs_of(phase)], data)
        for scenario, frames in reported:
            check_leaks(scenario, frames, tuned_on=tuned_on)
