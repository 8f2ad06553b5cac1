"""Choice of the learner: the native kernels on a CPU if they were built, otherwise PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from clops_sweep.learning.learners.stacked_learner import StackedLearner, can_be_stacked


def make_learner(
    seeds: Sequence[int],
    kind: LossKind,
    outputs: int,
    learning_rate: float,
    bank: FrameBank,
    network: str = PAPER_NETWORK,
    options: Mapping[str, Any] | None = None,
    *,
    together: bool | None = None,
    optimizer: str = "adam",
    weight_decay: float = 0.0,
    precision: str = "float32",
) -> Learner:
    """Return the fastest learner of a network for the device of the bank; arguments as in `Learner`.

    Runs of a module are computed in lockstep on a GPU if possible, or on any device if `together` is set.
    """
    plain = optimizer != "sgd" and not weight_decay and precision == "float32"
    plain &= not REPLACED.intersection(options or {})
    if network == PAPER_NETWORK and bank.device.type == "cpu" and plain and not together:
        variant = native.chosen()
        if variant is not None:
            return NativeLearner(seeds, kind, outputs, learning_rate, bank, variant)
    wanted = bank.device.type != "cpu" if together is None else together
    can_be = wanted and can_be_stacked(network, (1, *bank.shape)[-2:], outputs, options or {}, bank.device)
    of_modules = StackedLearner if can_be else ModuleLearner
    learner = of_modules(seeds, kind, outputs, learning_rate, bank, network, options)
    if precision == "bfloat16":
        learner.compute_in_bfloat16()
    learner.optimizer = make_optimizer(optimizer, learner.parameters.flat, learning_rate, weight_decay)
    return learner
