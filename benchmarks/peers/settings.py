"""What is compared with what, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.plugins.values import count_of

DATASET, BATCH, EPOCHS = "synthetic_paper", 16, 20
MEMORY = 0.25
"""Of the training frames of all tasks together; GEM has as much of each task."""


@dataclass(frozen=True)
class Case:
    """One method, or one form of it.

    Attributes:
        name: of the case.
        scenario: `class_il`, one sigmoid, or `class_il_union`, one output a class, where Avalanche's method asks for a
            softmax over classes.
        ours: the strategy and its settings; None where there is nothing to compare with that another case does not say.
        plugin: what makes Avalanche's plain strategy the method, a name in `plugins`; None where it has no such method.
        options: of the plugin.
        epochs: a task.
    """

    name: str
    ours: Mapping[str, Any] | None
    plugin: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    scenario: str = "class_il"
    epochs: int = EPOCHS

    def config(self, seed: int) -> RunConfig:
        """The run; the rival takes from it what all methods have."""
        from benchmarks.peers import like_avalanche  # noqa: F401  registers a strategy

        common = {"dataset": DATASET, "scenario": self.scenario, "batch_size": BATCH, "epochs_per_task": self.epochs}
        return RunConfig(**common, seed=seed, **(self.ours or {"strategy": "finetune"}))


def frames() -> FrameSet:
    """The data set, which has to have been prepared."""
    return open_frames(DATASET)


def memory_of(frames: int) -> int:
    """How many of all tasks' training frames a memory holds."""
    return count_of(MEMORY, frames)


_UNION = "class_il_union"
_GEM = {"strategy": "gem", "storage_fraction": MEMORY}
_AGEM = {"strategy": "agem", "memory_fraction": MEMORY, "agem_batch_size": BATCH}
_EWC = {"strategy": "ewc", "ewc_strength": 400.0}
_SI = {"strategy": "si", "si_strength": 1.0, "si_damping": 1e-3}
_LWF = {"strategy": "lwf", "lwf_strength": 1.0, "lwf_temperature": 2.0}
_DERPP = {"strategy": "derpp", "memory_fraction": MEMORY, "derpp_alpha": 0.1, "derpp_beta": 0.5}

_LIKE_AVALANCHE = {"strategy": "derpp_of_avalanche"}

_ALL = (
    Case("naive", {"strategy": "finetune"}, "Naive"),
    Case("replay", {"strategy": "replay"}, None),
    Case("er, shared by tasks", {"strategy": "er", "memory_division": "task_balanced"}, "Replay"),
    Case("er, reservoir", {"strategy": "er"}, "ReservoirReplay"),
    Case("gem", _GEM, "GEMAtRest", {"memory_strength": 0.5}, epochs=2),
    Case("gem, as shipped", None, "GEM", {"memory_strength": 0.5}, epochs=2),
    Case("agem", _AGEM, "AGEMAtRest", {"sample_size": BATCH}),
    Case("agem, as shipped", None, "AGEM", {"sample_size": BATCH}),
    Case("ewc", _EWC, "FisherOfInstances", {"ewc_lambda": 200.0}),
    Case("ewc, as shipped", None, "EWC", {"ewc_lambda": 200.0}),
    Case("si", _SI, "MendedIntelligence", {"si_lambda": 2.0, "eps": 1e-3}),
    Case("si, as shipped", None, "SI", {"si_lambda": 2.0, "eps": 1e-3}),
    Case("naive, union", {"strategy": "finetune"}, "Naive", scenario=_UNION),
    Case("lwf", _LWF, "TeacherAtRest", {"alpha": 1.0, "temperature": 2.0}, scenario=_UNION),
    Case("lwf, as shipped", None, "LwF", {"alpha": 1.0, "temperature": 2.0}, scenario=_UNION),
    Case("derpp", _DERPP, None, scenario=_UNION),
    Case("derpp, as Avalanche has it", _DERPP | _LIKE_AVALANCHE, "DER", {"alpha": 0.1, "beta": 0.5}, scenario=_UNION),
    Case("gdumb", {"strategy": "gdumb", "memory_fraction": MEMORY}, "GDumb", scenario=_UNION),
)
CASES = {case.name: case for case in _ALL}
