"""What methods with a memory of fixed size declare: options, with the authors' defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.declarations import Declaration, Fields
from clops_sweep.experiment.plugins.options import BoolOption, ChoiceOption, FloatOption, IntOption, Option
from clops_sweep.experiment.plugins.values import count_of

MEMORY_FRACTION = FloatOption(0.25, gt=0, le=1)
"""Of the training instances of all tasks together."""

MEMORY_DIVISION = ChoiceOption("reservoir", choices=("reservoir", "task_balanced", "class_balanced"))

IN_PLACE_OF = {"memory_size": "memory_fraction"}
"""Fields that take the place of an option: a config with one has no value of the other, and may not be given both."""

_MEMORY: dict[str, Option] = {"memory_fraction": MEMORY_FRACTION}
_DIVIDED: dict[str, Option] = _MEMORY | {"memory_division": MEMORY_DIVISION}


def er(function: Callable[[str, Fields], dict[str, Any]]) -> Declaration:
    """The declaration of ER.

    Args:
        function: what the function that a field names looks at, from that field's name and all fields.
    """

    def looks_at(fields: Fields) -> Fields:
        names, seen = ["replay_ratio", "memory_size"], dict[str, Any]()
        if fields["er_storage_order"] != "random":
            names += ["storage_function", "beta_learning_rate", "beta_penalty"]
            seen |= function("storage_function", fields)
        if fields["er_acquire"]:
            names += ["acquisition", "acquisition_fraction", "acquire_every"]
            seen |= function("acquisition", fields)
        return seen | {name: fields[name] for name in names}

    options = {"er_storage_order": ChoiceOption("random", choices=("random", "top", "bottom"))}
    return Declaration(looks_at, options=_DIVIDED | options | {"er_acquire": BoolOption(False)})


DERPP = Declaration(
    ("replay_ratio", "memory_size"),
    options=_MEMORY | {"derpp_alpha": FloatOption(0.1, ge=0), "derpp_beta": FloatOption(0.5, ge=0)},
)
ER_ACE = Declaration(("replay_ratio", "memory_size"), options=_DIVIDED, per_class_outputs=True)
AGEM = Declaration(("memory_size",), options=_MEMORY | {"agem_batch_size": IntOption(256, ge=1)})
GDUMB = Declaration(("memory_size",), options=_MEMORY)


def capacity_of(fields: Fields, instances: int) -> int | None:
    """How many instances a memory of fixed size may hold; None where neither its size nor its share is given.

    Args:
        fields: a config's fields and options by name.
        instances: training instances of all tasks.

    Raises:
        UsageError: the memory would be larger than all tasks together.
    """
    size = fields.get("memory_size")
    if size is None:
        share = fields.get("memory_fraction")
        return None if share is None else count_of(share, instances)
    if size > instances:
        raise UsageError(f"memory_size = {size}: expected at most {instances}, the training instances of all tasks")
    return int(size)
