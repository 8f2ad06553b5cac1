"""Training steps of networks as programs of layers, beside a PyTorch loop: ``python -m benchmarks.programs``."""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import dataclass  # noqa: E402

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from benchmarks.timing import seconds_in_turn, table  # noqa: E402
from clops_sweep import native  # noqa: E402
from clops_sweep.learning.lowering.lower import lowered  # noqa: E402
from clops_sweep.learning.lowering.network import LoweredNetwork  # noqa: E402
from clops_sweep.learning.lowering.program import Program  # noqa: E402
from clops_sweep.learning.networks.resnet1d_wang import ResNet1dWang  # noqa: E402
from clops_sweep.learning.networks.run_module import RunModule, trained  # noqa: E402
from clops_sweep.learning.networks.small_cnn import SmallCNN  # noqa: E402
from clops_sweep.learning.parameters import Parameters  # noqa: E402

BATCH = 16


class EEGNet(nn.Sequential):
    """EEGNet with F1 = 8 temporal filters, D = 2 spatial filters each, and F2 = 16, for any frames.

    V. J. Lawhern et al., "EEGNet: a compact convolutional neural network for EEG-based brain-computer interfaces",
    Journal of Neural Engineering, 2018.
    """

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        first = [
            nn.Unflatten(1, (1, channels)),
            nn.Conv2d(1, 8, (1, 64), padding="same", bias=False),
            nn.BatchNorm2d(8),
            nn.Conv2d(8, 16, (channels, 1), groups=8, bias=False),
            nn.BatchNorm2d(16),
            nn.ELU(),
            nn.AvgPool2d((1, 4)),
            nn.Dropout(0.25),
        ]
        second = [
            nn.Conv2d(16, 16, (1, 16), padding="same", groups=16, bias=False),
            nn.Conv2d(16, 16, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.ELU(),
            nn.AvgPool2d((1, 8)),
            nn.Dropout(0.25),
        ]
        super().__init__(*first, *second, nn.Flatten(), nn.Linear(16 * (samples // 4 // 8), outputs))


class Residual(nn.Module):
    """A stem of 8 filters, three residual blocks of 8, 16 and 32 filters with stride 2, and the mean over time."""

    class Block(nn.Module):
        """ReLU(h(x) + s(x)), where h is two convolutions and s a convolution of kernel 1 with the same stride."""

        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv1d(before, after, 7, 2, 3, bias=False),
                nn.BatchNorm1d(after),
                nn.ReLU(),
                nn.Conv1d(after, after, 7, 1, 3, bias=False),
                nn.BatchNorm1d(after),
            )
            self.shortcut = nn.Sequential(nn.Conv1d(before, after, 1, 2, bias=False), nn.BatchNorm1d(after))

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            """Map [B, before, samples] to [B, after, samples / 2]."""
            return torch.relu(self.layers(hidden) + self.shortcut(hidden))

    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        del samples
        self.stem = nn.Sequential(nn.Conv1d(channels, 8, 7, padding=3, bias=False), nn.BatchNorm1d(8), nn.ReLU())
        self.blocks = nn.Sequential(*(self.Block(*pair) for pair in ((8, 8), (8, 16), (16, 32))))
        self.head = nn.Linear(32, outputs)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Map float32 [B, channels, samples] to logits [B, C]."""
        logits: torch.Tensor = self.head(self.blocks(self.stem(frames)).mean(2))
        return logits


@dataclass(frozen=True)
class Case:
    """A network and frames; `target` is by how much a step must be faster than the PyTorch loop."""

    name: str
    make: Callable[[int, int, int], nn.Module]
    channels: int
    samples: int
    target: float


CASES = (
    Case("`small_cnn`", SmallCNN, 3, 100, 6),
    Case("`small_cnn`", SmallCNN, 1, 1_000, 4),
    Case("`small_cnn`", SmallCNN, 12, 1_000, 3),
    Case("EEGNet (8, 2)", EEGNet, 22, 1_000, 4),
    Case("residual, 8 to 32 channels", Residual, 12, 1_000, 2.5),
    Case("`resnet1d_wang`", ResNet1dWang, 12, 250, 1),
)


def _batch(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    frames = torch.randn(BATCH, case.channels, case.samples, generator=torch.Generator().manual_seed(0))
    return frames, (torch.arange(BATCH) % 2)[:, None].float()


def loop_of_pytorch(case: Case) -> Callable[[], object]:
    """Return a training step with autograd and `torch.optim.Adam`."""
    frames, targets = _batch(case)
    torch.manual_seed(0)
    module = case.make(case.channels, case.samples, 1).train()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(module(frames), targets).backward()
        optimizer.step()

    return step


@dataclass
class Steps:
    """Training steps by the kernels, as a whole and by half."""

    whole: Callable[[], object]
    forward: Callable[[], object]
    both: Callable[[], object]
    predict: Callable[[], object]


def steps_of_program(case: Case, variant: str) -> Steps:
    """Return steps of the same network as a program; the loss and Adam are computed on vectors by PyTorch."""
    frames, targets = _batch(case)
    torch.manual_seed(0)
    module = case.make(case.channels, case.samples, 1)
    norms = (nn.BatchNorm1d, nn.BatchNorm2d)
    run = RunModule(module, 1, [name for name, layer in module.named_modules() if isinstance(layer, norms)])
    program = lowered(run, case.channels, case.samples)
    assert isinstance(program, Program), program
    views = {name: parameter.data for name, parameter in trained(run.module).items()}
    parameters = Parameters.zeros({name: tuple(view.shape) for name, view in views.items()}, torch.device("cpu"), 32)
    gradient = torch.zeros_like(parameters.flat)
    run.live_in(parameters.views, parameters.like(gradient).views)
    network = LoweredNetwork(program, variant, run.module, parameters)
    parameters.flat.grad = gradient
    optimizer = torch.optim.Adam([parameters.flat], lr=1e-4, fused=True)
    keys, draws = torch.tensor([1, 2], dtype=torch.int32), torch.arange(BATCH)

    def forward() -> torch.Tensor:
        return network.forward(frames, batch_statistics=True, track=True, keys=keys, draws=draws)

    def both() -> None:
        logits = forward()
        network.backward((torch.sigmoid(logits) - targets) / BATCH, gradient)

    def whole() -> None:
        both()
        optimizer.step()

    return Steps(whole, forward, both, lambda: network.predict(frames))


def floating_point_operations(case: Case) -> int:
    """Return those of a step's convolutions and linear layers, with two for a multiplication and an addition."""
    frames, _ = _batch(case)
    with FlopCounterMode(display=False) as counter:
        case.make(case.channels, case.samples, 1)(frames).sum().backward()
    return int(counter.get_total_flops())


def run(*, quick: bool = False, variants: tuple[str, ...] = ()) -> str:
    """Return the section of results.md."""
    rows = []
    for case in CASES:
        for variant in variants or native.available()[:1]:
            steps = steps_of_program(case, variant)
            works = [loop_of_pytorch(case), steps.whole, steps.both, steps.forward, steps.predict]
            loop, whole, both, forward, predict = seconds_in_turn(works, 2 if quick else 7)
            operations = floating_point_operations(case)
            speed = f"{operations / both / 1e9:.0f}"
            times = [f"{1e3 * value:.3f}" for value in (loop, whole, forward, both - forward, predict)]
            ratio = [f"{loop / whole:.1f}", f"{case.target:g}"]
            rows.append([case.name, f"{case.channels} x {case.samples:,}", variant, *times, speed, *ratio])
    header = [
        "network",
        "frames",
        "kernels",
        "PyTorch, ms",
        "program, ms",
        "forward",
        "backward",
        "evaluation",
        "GFLOP/s",
        "faster",
        "target",
    ]
    return (
        f"## Networks as programs of layers\n\nA training step of a batch of {BATCH} on one core: forward, backward "
        "and Adam. PyTorch: eager, `torch.optim.Adam`. Evaluation is one pass without gradient. GFLOP/s are those of "
        "convolutions and linear layers in forward and backward.\n\n" + table(header, rows)
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--variants", nargs="+", choices=native.available(), default=(), help="default: the best")
    arguments = parser.parse_args()
    print(run(quick=arguments.quick, variants=tuple(arguments.variants)))
