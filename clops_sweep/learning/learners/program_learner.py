"""ProgramLearner: a user's network on a CPU, whose steps and epochs are computed by the native kernels."""

from __future__ import annotations

from typing import Any

from clops_sweep import native
from clops_sweep.learning.arrays import optional_array
from clops_sweep.learning.learners.kernel_learner import KernelLearner
from clops_sweep.learning.learners.lowered_learner import LoweredLearner


class ProgramLearner(KernelLearner, LoweredLearner):
    """`LoweredLearner` with losses, steps and whole epochs by the kernels.

    For a network whose weights are parameters, not derived from them. Arguments as for `LoweredLearner`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.core = native.trained_program(
            program=self._lowered.kernels,
            softmax=self.kind == "softmax",
            gradient=self._gradient.flat.numpy(),
            frames=self.bank.stored.numpy(),
            gain=optional_array(self.bank.gain),
            offset=optional_array(self.bank.offset),
        )

    def count_passes(self, passes: int) -> None:
        """As `KernelLearner.count_passes`: batch norm counts them."""
        self._lowered.count_passes(passes)
