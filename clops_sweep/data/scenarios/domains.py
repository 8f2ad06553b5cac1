"""Domain-incremental scenario: the same classes in every task, from another lead, site or device."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from clops_sweep.data.catalog import DATASETS, LEAD
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios.instances import class_targets, info_of, kind_of_labels, reference_lead_of
from clops_sweep.data.scenarios.tasks import ScenarioTasks, TaskInstances
from clops_sweep.errors import UsageError, nearest

_EXAMPLE = "ward"

_LEAD_ORDER = ("I", "II", "III", "AVL", "AVR", "AVF", "V1", "V2", "V3", "V4", "V5", "V6")
"""Order of the tasks in the released code, which differs from that of the recordings."""


def domain_il(frames: FrameSet, *, domain: str = LEAD) -> ScenarioTasks:
    """One task per domain.

    With "lead", as in the paper, instances are single leads, and every class has a sigmoid. With a column of the data
    set, each value is a task, in the order of the data set, with a softmax over the classes if instances have one
    label.

    Args:
        frames: single leads if the domain is the lead.
        domain: "lead", or one of `FrameSet.domains`.

    Raises:
        UsageError: the data set lacks the leads or the column, or instances contain all leads.
    """
    if domain == LEAD:
        return _by_lead(frames)
    require_domain(frames.name, domain, frames.domains)
    chosen, targets = reference_lead_of(frames), class_targets(frames)
    codes, names = frames.domains[domain]
    present = np.unique(codes[chosen])
    if len(present) < 2:
        raise UsageError(f"domain_il by {domain!r}: {frames.name!r} has {len(present)} value; expected two or more")
    tasks = [TaskInstances(f"{domain} {names[code]}", chosen & (codes == code), targets) for code in present.tolist()]
    return ScenarioTasks(kind_of_labels(frames), tasks)


def require_domain(dataset: str, domain: str, domains: Collection[str]) -> None:
    """Raise a UsageError unless a data set has a column of domains."""
    if domain in domains:
        return
    known = ", ".join([LEAD, *domains])
    where = f"domain may be {known}{_or_declare(dataset, domain, domains)}"
    raise UsageError(f"domain_il: {dataset!r} has no column {domain!r} of domains{nearest(domain, domains)}; {where}")


def _or_declare(dataset: str, column: str, domains: Collection[str]) -> str:
    """Return how a declared data set gets a column of domains, for each way to declare one; empty if it has some."""
    if domains or DATASETS.packaged(dataset) is not None:
        return ""
    return (
        f"; for tasks by {column}, declare domains={{{column!r}: [...]}} with arrays, domains=[{column!r}], a column "
        f"of the table, with files, or domains={{{column!r}: ...}} in each Recording, and set domain={column!r}"
    )


def lacks_leads(frames: FrameSet) -> bool:
    """Return whether no two leads of recordings can be tasks."""
    return len(_leads(frames)) < 2 or "domain_il" not in info_of(frames).scenarios


def _leads(frames: FrameSet) -> NDArray[np.int64]:
    """Return the leads that instances have, by number."""
    return np.flatnonzero(np.bincount(frames.leads, minlength=len(frames.lead_names)))


def _by_lead(frames: FrameSet) -> ScenarioTasks:
    if not frames.single_leads:
        raise UsageError(
            f"domain_il by lead takes instances of one lead, and those of {frames.name!r} are opened with all leads; "
            "expected leads='single'"
        )
    if lacks_leads(frames):
        lacking = f"domain_il needs recordings of several leads, which {frames.name!r} does not have"
        raise UsageError(f"{lacking}{_or_declare(frames.name, _EXAMPLE, frames.domains)}")
    present = _leads(frames)
    targets = class_targets(frames)
    rank = {name: index for index, name in enumerate(_LEAD_ORDER)}
    order = sorted(present, key=lambda lead: rank.get(frames.lead_names[lead].upper(), len(rank)))
    return ScenarioTasks(
        "multilabel",
        [TaskInstances(f"Lead {frames.lead_names[lead]}", frames.leads == lead, targets) for lead in order],
    )
