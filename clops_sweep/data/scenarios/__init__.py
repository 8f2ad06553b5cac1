"""Scenarios: from a FrameSet to a sequence of tasks."""

from __future__ import annotations

from clops_sweep.data.scenarios.build import build_scenario
from clops_sweep.data.scenarios.class_incremental import class_il, class_il_union
from clops_sweep.data.scenarios.domains import domain_il
from clops_sweep.data.scenarios.instances import class_targets, reference_lead_of
from clops_sweep.data.scenarios.people import subject_il
from clops_sweep.data.scenarios.tasks import LossKind, Scenario, ScenarioTasks, Subset, Task, TaskInstances
from clops_sweep.data.scenarios.terms import term_of, time_il

__all__ = [
    "LossKind",
    "Scenario",
    "ScenarioTasks",
    "Subset",
    "Task",
    "TaskInstances",
    "build_scenario",
    "class_il",
    "class_il_union",
    "class_targets",
    "domain_il",
    "reference_lead_of",
    "subject_il",
    "term_of",
    "time_il",
]
