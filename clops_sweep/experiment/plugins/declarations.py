"""What each built-in plug-in declares: which config fields it looks at and what may be in lockstep.

Two configs that must give the same numbers are one run. So a strategy's identity is what it looks at, and nothing else:
fine-tuning stores nothing and has no `storage_fraction`; where everything is replayed nothing is scored, and neither
`acquisition` nor `mc_samples` matters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.options import BoolOption, FloatOption, Options

Fields = Mapping[str, Any]
"""A config by field names, as JSON has its values."""

DECLARED = frozenset(
    {
        "storage_fraction",
        "acquisition_fraction",
        "mc_samples",
        "acquisition",
        "acquire_every",
        "storage_function",
        "storage_order",
        "weight_replay",
        "replay_ratio",
        "memory_size",
        "beta_learning_rate",
        "beta_penalty",
        "perturbation_std",
    }
)
"""The fields that matter only to a plug-in that looks at them. All others matter to every run."""

OF_SCENARIOS = frozenset({"task_classes", "domain"})
"""The fields that matter only to a scenario that looks at them, which gets them as keyword arguments."""


LooksAt = Collection[str] | Callable[[Fields], Fields]


@dataclass(frozen=True)
class Declaration:
    """What a plug-in says of itself.

    Attributes:
        looks_at: names of the fields of `DECLARED`, or of a scenario those of `OF_SCENARIOS`, that its numbers depend
            on; or a function from a config's fields to
            those that matter there, with the values that stand for them. None for all of them, whatever they are.
        lockstep: of a strategy, the fields besides `seed` in which runs that are trained in lockstep may differ: they
            change what is replayed, and how it weighs, but not how much.
        options: its own hyperparameters by name; they matter wherever it is in use.
        per_class_outputs: of a strategy, whether it can do nothing where an output stands for several classes, or an
            instance has more than one.
    """

    looks_at: LooksAt | None = None
    lockstep: Collection[str] = ()
    options: Options = field(default_factory=dict)
    per_class_outputs: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.lockstep, str):
            raise UsageError(f"lockstep = {self.lockstep!r}: expected a list of config fields")
        for name in self.lockstep:
            if name not in DECLARED and name not in self.options:
                raise UsageError(f"lockstep: {name!r} is none of {', '.join(sorted({*DECLARED, *self.options}))}")
        if self.looks_at is None or callable(self.looks_at):
            return
        if isinstance(self.looks_at, str):
            raise UsageError(f"looks_at = {self.looks_at!r}: expected a list of config fields")
        for name in self.looks_at:
            if name not in DECLARED | OF_SCENARIOS:
                raise UsageError(f"looks_at: {name!r} is none of {', '.join(sorted(DECLARED))}")

    def seen(self, fields: Fields) -> dict[str, Any]:
        """What of a config's fields its numbers depend on."""
        if callable(self.looks_at):
            return dict(self.looks_at(fields))
        return {name: fields[name] for name in (DECLARED if self.looks_at is None else self.looks_at)}


def clops(function: Callable[[str, Fields], dict[str, Any]]) -> Declaration:
    """The declaration of CLOPS.

    Args:
        function: what the function that a field names looks at, from that field's name and all fields.
    """

    def looks_at(fields: Fields) -> Fields:
        seen = _taken(fields, "storage_fraction", "acquisition_fraction", "storage_order")
        if fields["storage_order"] != "random":  # it dispenses with beta, and with all that goes with it
            seen |= _taken(fields, "storage_function", "beta_learning_rate", "beta_penalty", "weight_replay")
            seen |= function("storage_function", fields)
            if fields["storage_fraction"] == 1:
                seen["storage_order"] = "top"  # everything is stored, in the order in which it is
        if fields["acquisition_fraction"] < 1:  # else everything is replayed and nothing is scored
            seen |= _taken(fields, "acquisition", "acquire_every") | function("acquisition", fields)
        return seen

    return Declaration(
        looks_at,
        frozenset(
            {
                "acquisition",
                "beta_learning_rate",
                "beta_penalty",
                "mc_samples",
                "perturbation_std",
                "storage_function",
                "storage_order",
                "weight_replay",
            }
        ),
    )


def replay(of_clops: Declaration) -> Declaration:
    """The declaration of plain replay, which is CLOPS with random storage and random acquisition."""

    def looks_at(fields: Fields) -> Fields:
        settings = {"storage_order": "random", "acquisition": "random", "weight_replay": False}
        return of_clops.seen({**fields, **settings}) | {"strategy": "clops"}

    return Declaration(looks_at)


FINETUNE = Declaration(())
MULTITASK = Declaration(())
GEM = Declaration(("storage_fraction",))
MIR = Declaration(("storage_fraction", "acquisition_fraction", "replay_ratio"))
JOINT = Declaration(())
EWC = Declaration(
    (),
    ("ewc_strength", "ewc_decay"),
    {
        "ewc_strength": FloatOption(400.0, ge=0, log=True),
        "ewc_online": BoolOption(False),
        "ewc_decay": FloatOption(0.95, ge=0, le=1),
    },
)
SI = Declaration(
    (),
    ("si_strength", "si_damping"),
    {"si_strength": FloatOption(1.0, ge=0, log=True), "si_damping": FloatOption(1e-3, gt=0, log=True)},
)
MAS = Declaration(
    (),
    ("mas_strength",),
    {"mas_strength": FloatOption(1.0, ge=0, log=True)},
)
LWF = Declaration(
    (),
    ("lwf_strength", "lwf_temperature"),
    {"lwf_strength": FloatOption(1.0, ge=0, log=True), "lwf_temperature": FloatOption(2.0, gt=0, log=True)},
)
"""Defaults are the authors': of Kirkpatrick et al. those for Atari games, of Zenke et al. those for split MNIST.

The decay of EWC's online form is a usual one.
"""

CLASS_IL = Declaration(("task_classes",))
DOMAIN_IL = Declaration(("domain",))

BY_DROPOUT = Declaration(("mc_samples",))
BY_PERTURBATION = Declaration(("mc_samples", "perturbation_std"))
NOTHING = Declaration(())
UNKNOWN = Declaration()
"""Of those that say nothing: they may look at everything."""


def _taken(fields: Fields, *names: str) -> dict[str, Any]:
    return {name: fields[name] for name in names}
