"""Choice of the learner: the native kernels on a CPU if they were built, otherwise PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clops_sweep import native
from clops_sweep.data.scenarios import LossKind
from clops_sweep.experiment.config import REPLACED
from clops_sweep.experiment.plugins.registry import PAPER_NETWORK
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.native_learner import NativeLearner
from clops_sweep.learning.learners.optimizers import make_optimizer


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
    plain = optimizer != "sgd" and not weight_decay and precision == "float32"
    plain &= not REPLACED.intersection(options or {})
    if network == PAPER_NETWORK and bank.device.type == "cpu" and plain:
        variant = native.chosen()
        if variant is not None:
            return NativeLearner(seed, kind, outputs, learning_rate, bank, variant)
    learner = ModuleLearner(seed, kind, outputs, learning_rate, bank, network, options)
    if precision == "bfloat16":
        learner.compute_in_bfloat16()
    learner.optimizer = make_optimizer(optimizer, learner.parameters.flat, learning_rate, weight_decay)
    return learner
