"""What methods with a memory of fixed size declare: options, with the authors' defaults, and what they cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clops_sweep.experiment.declarations import Declaration, Fields, Work
from clops_sweep.experiment.options import BoolOption, ChoiceOption, FloatOption, IntOption, Option

MEMORY_FRACTION = FloatOption(0.25, gt=0, le=1)
"""Of the training instances of all tasks together."""

MEMORY_DIVISION = ChoiceOption("reservoir", choices=("reservoir", "task_balanced", "class_balanced"))

_MEMORY: dict[str, Option] = {"memory_fraction": MEMORY_FRACTION}
_DIVIDED: dict[str, Option] = _MEMORY | {"memory_division": MEMORY_DIVISION}


def er(function: Callable[[str, Fields], dict[str, Any]]) -> Declaration:
    """The declaration of ER.

    Args:
        function: what the function that a field names looks at, from that field's name and all fields.
    """

    def looks_at(fields: Fields) -> Fields:
        names, seen = ["replay_ratio"], dict[str, Any]()
        if fields["er_storage_order"] != "random":
            names += ["storage_function", "beta_learning_rate", "beta_penalty"]
            seen |= function("storage_function", fields)
        if fields["er_acquire"]:
            names += ["acquisition", "acquisition_fraction", "acquire_every"]
            seen |= function("acquisition", fields)
        return seen | {name: fields[name] for name in names}

    options = {"er_storage_order": ChoiceOption("random", choices=("random", "top", "bottom"))}
    return Declaration(looks_at, _work_of_er, options=_DIVIDED | options | {"er_acquire": BoolOption(False)})


def _stored(fields: Fields, task: int, tasks: int) -> float:
    """What is in the memory when a task begins, in tasks."""
    return float(min(fields["memory_fraction"] * tasks, task))


def _work_of_er(fields: Fields, task: int, tasks: int) -> Work:
    passes = {"random": 0, "balc_kld": 2}.get(fields["acquisition"], 1) * fields["mc_samples"]
    scored = _stored(fields, task, tasks) * passes / fields["acquire_every"] if fields["er_acquire"] else 0.0
    return Work(_replayed_beside(1)(fields, task, tasks).trained, scored)


def _replayed_beside(sets: int) -> Callable[[Fields, int, int], Work]:
    """So many mini-batches beside every batch, from the second task on."""

    def work(fields: Fields, task: int, tasks: int) -> Work:
        del tasks
        return Work(1 + sets * fields["replay_ratio"] if task else 1)

    return work


def _work_of_agem(fields: Fields, task: int, tasks: int) -> Work:
    del tasks
    return Work(1 + fields["agem_batch_size"] / fields["batch_size"] if task else 1)


def _work_of_gdumb(fields: Fields, task: int, tasks: int) -> Work:
    return Work(min(fields["memory_fraction"] * tasks, task + 1))


DERPP = Declaration(
    ("replay_ratio",),
    _replayed_beside(2),
    options=_MEMORY | {"derpp_alpha": FloatOption(0.1, ge=0), "derpp_beta": FloatOption(0.5, ge=0)},
)
ER_ACE = Declaration(("replay_ratio",), _replayed_beside(1), options=_DIVIDED, one_output_a_class=True)
AGEM = Declaration((), _work_of_agem, options=_MEMORY | {"agem_batch_size": IntOption(256, ge=1)})
GDUMB = Declaration((), _work_of_gdumb, options=_MEMORY)
