"""The compared cases and their common settings."""

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
"""Memory as a share of the training frames of all tasks; for GEM, of each task."""


@dataclass(frozen=True)
class Case:
    """A method, or a variant of it.

    Attributes:
        name: name of the case.
        scenario: `class_il` (one sigmoid), or `class_il_union` (one output per class) if Avalanche's method requires a
            softmax over classes.
        ours: our strategy and its settings; None if another case already has them.
        plugin: name in `plugins` of the plugin that adds the method to Avalanche; None if Avalanche lacks it.
        options: arguments of the plugin.
        epochs: epochs per task.
    """

    name: str
    ours: Mapping[str, Any] | None
    plugin: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    scenario: str = "class_il"
    epochs: int = EPOCHS

    def config(self, seed: int) -> RunConfig:
        """Return the config of our run; Avalanche uses the settings that all methods share."""
        from benchmarks.peers import like_avalanche  # noqa: F401  registers a strategy

        common = {"dataset": DATASET, "scenario": self.scenario, "batch_size": BATCH, "epochs_per_task": self.epochs}
        return RunConfig(**common, seed=seed, **(self.ours or {"strategy": "finetune"}))


def frames() -> FrameSet:
    """Open the data set, which must be prepared."""
    return open_frames(DATASET)


def memory_of(frames: int) -> int:
    """Return the capacity of a memory, given the number of training frames of all tasks."""
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
