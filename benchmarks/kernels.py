"""The paper's network by its own kernels, as a program of layers and as a PyTorch module, in the same process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from benchmarks import eager, shapes
from benchmarks.timing import seconds_in_turn, table
from clops_sweep import native
from clops_sweep.experiment.plugins.registry import NETWORKS, PAPER_NETWORK
from clops_sweep.learning import losses
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.learner import Learner
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.learners.native_learner import NativeLearner
from clops_sweep.learning.learners.program_learner import ProgramLearner
from clops_sweep.learning.lowering.lower import lowered
from clops_sweep.learning.lowering.program import Program
from clops_sweep.learning.networks.module_probe import probed
from clops_sweep.learning.networks.run_module import RunModule, made

BATCH, FRAMES, SAMPLES, STEPS = 16, 256, 20, 100
AS_PROGRAM = "layers_of_the_paper"


@dataclass
class Parts:
    """What a run computes: calls, and by how many steps or passes to divide their times."""

    step: Callable[[], object]
    passes: Callable[[], object]
    evaluation: Callable[[], object]
    gradients: Callable[[], object]

    def calls(self) -> list[Callable[[], object]]:
        """Return the calls."""
        return [self.step, self.passes, self.evaluation, self.gradients]


DIVISORS = (STEPS, FRAMES * SAMPLES, FRAMES, FRAMES)
"""Steps, passes, frames and frames of the calls of `Parts`."""


def run(*, quick: bool = False, variants: tuple[str, ...] = ()) -> str:
    """Return the section of results.md."""
    bank = FrameBank(shapes.class_il(shapes.scaled(shapes.CLASS_IL, 0.5)), torch.device("cpu"))
    names, parts = [], []
    with _paper_layers():
        for variant in variants or native.available():
            learners = {
                f"its own kernels, {variant}": NativeLearner(0, "binary", 1, 1e-4, bank, variant),
                f"a program, {variant}": _program(bank, AS_PROGRAM, {}, variant),
                f'a program, `norm="layer"`, {variant}': _program(bank, PAPER_NETWORK, {"norm": "layer"}, variant),
            }
            names.extend(learners)
            parts.extend(map(_parts, learners.values()))
    if not variants:
        names.append("PyTorch module")
        parts.append(_parts(ModuleLearner(0, "binary", 1, 1e-4, bank, PAPER_NETWORK)))
    calls = [call for of_one in parts for call in of_one.calls()]
    taken = seconds_in_turn(calls, 2 if quick else 7, at_least=0.02 if quick else 0.1)
    rows = []
    for i, name in enumerate(names):
        times = taken[4 * i : 4 * i + 4]
        cells = [_us(time / divisor) for time, divisor in zip(times, DIVISORS, strict=True)]
        rows.append([name, *cells])
    header = [
        "the paper's network as",
        "step in an epoch, us",
        "Monte-Carlo pass a frame, us",
        "evaluation a frame, us",
        "gradient of an instance, us",
    ]
    return (
        f"## The paper's network\n\nA step of {BATCH} frames in an epoch: forward, backward, Adam. A Monte-Carlo pass "
        f"is one of {SAMPLES} of each of {FRAMES} frames, whose first block they share. A gradient of an instance is "
        "squared and summed, as `ewc` does.\n\n" + table(header, rows)
    )


@contextmanager
def _paper_layers() -> Iterator[None]:
    """Register the paper's network as a user would write it."""

    def make(channels: int, samples: int, outputs: int) -> torch.nn.Module:
        return eager.network(outputs)

    with NETWORKS.temporarily(AS_PROGRAM, make):
        yield


def _program(bank: FrameBank, network: str, options: dict[str, str], variant: str) -> ProgramLearner:
    make = NETWORKS[network]
    statistics = probed(network, make, (1, 2500), 1, options).statistics
    program = lowered(RunModule(made(network, make, 0, (1, 2500), 1, options), 1, statistics), 1, 2500)
    assert isinstance(program, Program), program
    return ProgramLearner(0, "binary", 1, 1e-4, bank, network, options, program=program, variant=variant)


def _parts(learner: Learner) -> Parts:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randint(0, 2000, (BATCH * STEPS,), generator=generator)
    targets = torch.rand(BATCH * STEPS, 1, generator=generator).round()
    keys = torch.zeros(2, dtype=torch.int32)
    order = torch.randperm(BATCH * STEPS, generator=generator)
    task = Instances(rows, targets)
    chosen, of_chosen = rows[:FRAMES], targets[:FRAMES]

    def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return losses.instance_losses("binary", logits, targets)

    return Parts(
        step=lambda: learner.train_epoch(task, None, order, BATCH, keys),
        passes=lambda: learner.dropout_probabilities(chosen, SAMPLES, keys),
        evaluation=lambda: learner.logits(chosen),
        gradients=lambda: learner.mean_of_instance_gradients(chosen, loss, of_chosen, of_each="square"),
    )


def _us(time: float) -> str:
    return f"{1e6 * time:.2f}" if time < 1e-4 else f"{1e6 * time:.0f}"
