"""Training step of custom networks, compared with a plain PyTorch loop over the same batches."""

from __future__ import annotations

import math
import time

import torch
from torch import nn

from benchmarks import eager
from benchmarks.by_hand import clops
from benchmarks.timing import seconds, table
from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning import streams
from clops_sweep.learning.batches import Instances
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.module_learner import ModuleLearner
from clops_sweep.learning.networks.resnet1d_wang import ResNet1dWang
from clops_sweep.learning.networks.run_module import MakeModule
from clops_sweep.testing import of_shape, tiny_frames

BATCH, STEPS = 16, 20


def narrow(channels: int, samples: int, outputs: int) -> nn.Module:
    """Return a network so small that overhead dominates."""
    layers = [nn.Conv1d(channels, 8, 15, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1), nn.AdaptiveAvgPool1d(4)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(32, outputs))


def recurrent(channels: int, samples: int, outputs: int) -> nn.Module:
    """Return an LSTM over windows of 20 samples."""

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, outputs)

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.head(self.lstm(hidden.transpose(1, 2))[0][:, -1])
            return logits

    return nn.Sequential(nn.Conv1d(channels, 32, 20, 20), Last())


CASES: tuple[tuple[str, MakeModule, int, int], ...] = (
    ("one convolution", narrow, 1, 2500),
    ("the paper's layers", lambda channels, samples, outputs: eager.network(outputs), 1, 2500),
    ("LSTM", recurrent, 3, 1000),
    ("resnet1d_wang", ResNet1dWang, 12, 250),
)


def _frames(channels: int, samples: int) -> FrameSet:
    return of_shape(tiny_frames("class_il", tasks=6), channels, samples)


def _epoch_of_a_learner(make: MakeModule, channels: int, samples: int) -> float:
    """Return the seconds per step of `train_epoch`, including all overhead."""
    bank = FrameBank(_frames(channels, samples), torch.device("cpu"))
    with NETWORKS.temporarily("measured", make):
        learner = ModuleLearner(0, "binary", 1, 1e-4, bank, "measured")
    rows = torch.arange(BATCH * STEPS) % 100
    task = Instances(rows, (rows % 2)[:, None].float())
    order, keys = streams.permutation(0, BATCH * STEPS, "order"), streams.keys(0, "dropout")
    return seconds(lambda: learner.train_epoch(task, None, order, BATCH, keys), at_least=4) / STEPS


def _epoch_of_a_loop(make: MakeModule, channels: int, samples: int) -> float:
    """Return the seconds per step of a hand-written loop over float32 frames in memory."""
    frames = _frames(channels, samples)
    rows = torch.arange(BATCH * STEPS) % 100
    inputs = torch.from_numpy(frames.signal(rows.numpy())).view(len(rows), channels, samples)
    targets = (rows % 2)[:, None].float()
    module = make(channels, samples, 1).train()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4)

    def epoch() -> None:
        for places in torch.randperm(len(rows)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(module(inputs[places]), targets[places]).backward()
            optimizer.step()

    return seconds(epoch, at_least=4) / STEPS


def _whole_runs(make: MakeModule, channels: int, samples: int) -> tuple[float, float]:
    """Return the seconds of a complete run of CLOPS, hand-written and ours; two of each, in turn."""
    frames = of_shape(open_frames("synthetic"), channels, samples)
    taken = [math.inf, math.inf]
    with NETWORKS.temporarily("measured", make):
        config = RunConfig(network="measured", epochs_per_task=5)

        def here() -> None:
            ContinualRun(config, frames).run()

        def by_hand() -> None:
            torch.manual_seed(0)
            clops(config, frames, make(channels, samples, 1))

        for _ in range(2):
            for place, work in enumerate((by_hand, here)):
                began = time.process_time()
                work()
                taken[place] = min(taken[place], time.process_time() - began)
    return taken[0], taken[1]


def run() -> str:
    """Return the section of results.md."""
    whole = []
    for name, make, channels, samples in CASES[:3]:
        hand, here = _whole_runs(make, channels, samples)
        whole.append([name, f"{channels} x {samples:,}", f"{hand:.2f}", f"{here:.2f}", f"{here / hand:.2f}"])
    rows = []
    for name, make, channels, samples in CASES:
        bare, own = (each(make, channels, samples) for each in (_epoch_of_a_loop, _epoch_of_a_learner))
        shape = f"{channels} x {samples:,}"
        rows.append([name, shape, f"{1e3 * bare:.2f}", f"{1e3 * own:.2f}", f"{own / bare:.2f}"])
    header = ["network", "frames", "bare loop, ms a step", "`ModuleLearner`, ms a step", "ratio"]
    return (
        f"## A training step of any other network\n\nBatch {BATCH}, one core: forward, backward and Adam of a "
        "`torch.nn.Module`, in a loop written by hand with `torch.optim.Adam`, and as a run takes it.\n\n"
        + table(header, rows)
        + "\n\nA whole run of CLOPS (`synthetic`, 5 epochs a task), evaluation and metrics included, "
        "beside the same written by hand (`by_hand.py`):\n\n"
        + table(["network", "frames", "by hand, s", "a run, s", "ratio"], whole)
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(run())
