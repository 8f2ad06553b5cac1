"""Choice of the learner: the native kernels on a CPU if they were built, otherwise PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clops_sweep import native
from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.config import REPLACED
from clops_sweep.experiment.plugins.registry import NETWORKS, PAPER_NETWORK
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.lowered_learner import LoweredLearner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.native_learner import NativeLearner
from clops_sweep.learning.learners.optimizers import make_optimizer
from clops_sweep.learning.learners.program_learner import ProgramLearner
from clops_sweep.learning.lowering.chosen import program_of
from clops_sweep.learning.lowering.lower import NotLowered
from clops_sweep.learning.networks.module_probe import probed


def make_learner(
    seed: int,
    kind: LossKind,
    outputs: int,
    learning_rate: float,
    bank: FrameBank,
    network: str = PAPER_NETWORK,
    options: Mapping[str, Any] | None = None,
    *,
    optimizer: str = "adam",
    weight_decay: float = 0.0,
    precision: str = "float32",
) -> Learner:
    """Return the fastest learner of a network for the device of the bank; arguments as in `Learner`."""
    learner = _native_learner(seed, kind, outputs, learning_rate, bank, network, options or {}, precision)
    if learner is None:
        learner = ModuleLearner(seed, kind, outputs, learning_rate, bank, network, options)
        if precision == "bfloat16":
            learner.compute_in_bfloat16()
    if optimizer != "adam" or weight_decay:
        learner.optimizer = make_optimizer(optimizer, learner.parameters.flat, learning_rate, weight_decay)
    return learner


def _native_learner(
    seed: int,
    kind: LossKind,
    outputs: int,
    learning_rate: float,
    bank: FrameBank,
    network: str,
    options: Mapping[str, Any],
    precision: str,
) -> Learner | None:
    """Return the learner of a network on the native kernels; None if they do not compute it."""
    if precision != "float32" or bank.device.type != "cpu":
        return None
    if network == PAPER_NETWORK and not REPLACED.intersection(options):
        variant = native.chosen()
        if variant is not None:
            return NativeLearner(seed, kind, outputs, learning_rate, bank, variant)
    return _lowered_learner(seed, kind, outputs, learning_rate, bank, network, options)


def _lowered_learner(
    seed: int,
    kind: LossKind,
    outputs: int,
    learning_rate: float,
    bank: FrameBank,
    network: str,
    options: Mapping[str, Any],
) -> LoweredLearner | None:
    """Return the learner of a network on the native kernels, if they compute it; also its steps if they can."""
    variant = native.chosen_for_programs()
    if variant is None:
        return None
    make = NETWORKS[network]
    shape = (1, *bank.shape)[-2:]
    checks = probed(network, make, shape, outputs, options)
    program = program_of(network, make, shape, outputs, options, checks, variant)
    if isinstance(program, NotLowered):
        return None
    kind_of_learner = LoweredLearner if program.derived else ProgramLearner
    learner = kind_of_learner(
        seed, kind, outputs, learning_rate, bank, network, options, program=program, variant=variant
    )
    return learner if learner.agrees() else None
