"""Try every network of braindecode on 22 x 1,000 samples, and write a row for each.

python docs/braindecode/networks.py            tries the models that have no row yet
python docs/braindecode/networks.py MODEL ...
python docs/braindecode/networks.py --checks   makes the checks of a launch alone, without training

Models that are named on the command line are tried again; the other rows of networks.csv stay.
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import nn

from clops_sweep import ContinualRun, RunConfig, Strategy, strategy
from clops_sweep.data.frames import FrameSet
from clops_sweep.experiment.plugins import braindecode
from clops_sweep.experiment.plugins.registry import NETWORKS
from clops_sweep.learning.batches import Batch
from clops_sweep.learning.frame_bank import FrameBank
from clops_sweep.learning.learners.backend import make_learner
from clops_sweep.learning.lowering.lower import NotLowered, lowered
from clops_sweep.learning.models.onnx_export import onnx_bytes
from clops_sweep.learning.models.trained_model import model_from
from clops_sweep.learning.networks.module_probe import check_networks, probed
from clops_sweep.learning.networks.on_features import network_options
from clops_sweep.learning.networks.run_module import RunModule, made
from clops_sweep.testing import of_shape, tiny_config, tiny_frames
from clops_sweep.testing.watch import result_difference, saved_and_loaded

ROWS = Path(__file__).with_name("networks.csv")
MEASURED = ("parameters", "computed_by", "step_ms", "loop_ms")
DEMANDS = ("resumed", "loss", "ewc", "mc", "onnx")
COLUMNS = ("model", "refused", *MEASURED, *DEMANDS)
ELECTRODES = (
    *("Fz", "FC3", "FC1", "FCz", "FC2", "FC4", "C5", "C3", "C1", "Cz", "C2"),
    *("C4", "C6", "CP3", "CP1", "CPz", "CP2", "CP4", "P1", "Pz", "P2", "POz"),
)
SAMPLES, RATE, OUTPUTS, BATCH, STEPS = 1000, 250.0, 4, 16, 5
LARGEST = 1_000_000
"""Parameters of the largest network that is trained here; the checks of a launch are made for all."""

CPU = torch.device("cpu")


@strategy("replay_by_loss")
class ReplayByLoss(Strategy):
    """A user's method: cross-entropy by autograd."""

    def loss(self, batch: Any) -> torch.Tensor:
        """Return the loss of a batch."""
        return self.criterion(self.model(batch.x), batch.y)


def frames_of_electrodes() -> FrameSet:
    """Return tiny frames of 22 electrodes at 250 Hz."""
    frames = of_shape(tiny_frames("time_il"), len(ELECTRODES), SAMPLES)
    return replace(frames, frame_seconds=SAMPLES / RATE, lead_names=tuple(ELECTRODES))


def answer(function: Callable[[], str]) -> str:
    """Return what a function returns, or the error that it raises on one line."""
    try:
        return function()
    except Exception as error:
        return " ".join(f"{error}".split())


def finished(config: RunConfig, frames: FrameSet, state: Any = None) -> ContinualRun:
    """Return a run that was computed to its end, from a checkpoint if given."""
    run = ContinualRun(config, frames, CPU, keep_models="last")
    if state is not None:
        run.restore(saved_and_loaded(state))
    while not run.finished:
        run.advance()
    return run


def resumed(config: RunConfig, frames: FrameSet, whole: ContinualRun) -> str:
    """Return whether a run from a checkpoint after its first epoch has equal bits."""
    first = ContinualRun(config, frames, CPU, keep_models="last")
    first.advance()
    difference = result_difference(whole.result(), finished(config, frames, first.state()).result())
    return "yes" if difference is None else f"no: {difference}"


def seconds_of_steps(network: str, frames: FrameSet, options: dict[str, Any]) -> tuple[float, float]:
    """Return the milliseconds of a step of the learner, and of a bare loop over the same module, taken in turns."""
    bank = FrameBank(frames, CPU)
    learner = make_learner(0, "softmax", OUTPUTS, 1e-3, bank, network, options)
    bare = made(network, NETWORKS[network], 0, (len(ELECTRODES), SAMPLES), OUTPUTS, options).train()
    optimizer = torch.optim.Adam(bare.parameters(), lr=1e-3)
    rows = torch.arange(BATCH)
    targets = torch.eye(OUTPUTS)[torch.from_numpy(frames.labels)[rows]]
    batch = Batch(rows, targets, torch.full((BATCH,), 1 / BATCH), torch.arange(BATCH))
    keys = torch.tensor([1, 2], dtype=torch.int32)
    ours, theirs = [], []
    for _ in range(STEPS):
        start = time.process_time()
        learner.train_step(batch, keys)
        between = time.process_time()
        optimizer.zero_grad()
        nn.functional.cross_entropy(bare(bank.gather(rows)), targets).backward()
        optimizer.step()
        ours.append(between - start)
        theirs.append(time.process_time() - between)
    return 1e3 * median(ours[2:]), 1e3 * median(theirs[2:])


def dropout(whole: ContinualRun) -> str:
    """Return whether Monte-Carlo passes of a trained network differ."""
    keys = torch.tensor([3, 4], dtype=torch.int32)
    passes = whole.learner.dropout_probabilities(torch.arange(4), 3, keys)
    return "yes" if float(passes.std(dim=1).max()) > 0 else "equal passes"


def exported(whole: ContinualRun) -> str:
    """Return whether the network is exported and gives equal probabilities in ONNX Runtime."""
    (content,) = whole.result().models.values()
    onnx_bytes(model_from(content))
    return "yes"


def tried(model: str, *, trains: bool) -> dict[str, object]:
    """Return the row of a model; without training, its columns are empty."""
    network, frames = braindecode.PREFIX + model, frames_of_electrodes()
    settings = {"network": network, "epochs_per_task": 2, "first_tasks": 1}
    config = tiny_config("time_il", strategy="clops", **settings)
    row: dict[str, object] = {"model": model}
    try:
        check_networks([config], {config.data_key: frames}, keep_models=True)
    except Exception as error:
        return row | {"refused": " ".join(str(error).removeprefix(f"network {network!r}: ").split())}
    options, shape = network_options(config, frames), (len(ELECTRODES), SAMPLES)
    module = made(network, NETWORKS[network], 0, shape, OUTPUTS, options)
    row["parameters"] = sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
    statistics = probed(network, NETWORKS[network], shape, OUTPUTS, options).statistics
    found = lowered(RunModule(module, OUTPUTS, statistics), *shape)
    row["computed_by"] = f"PyTorch: {found}" if isinstance(found, NotLowered) else "kernels"
    if not trains or int(str(row["parameters"])) > LARGEST:
        return row
    step, loop = seconds_of_steps(network, frames, options)
    row |= {"step_ms": f"{step:.3g}", "loop_ms": f"{loop:.3g}"}
    try:
        whole = finished(config, frames)
    except Exception as error:
        return row | {"resumed": " ".join(str(error).split())}
    for column, strategy_name in (("loss", "replay_by_loss"), ("ewc", "ewc")):
        other = tiny_config("time_il", strategy=strategy_name, **settings | {"epochs_per_task": 1})
        row[column] = answer(lambda other=other: "yes" if finished(other, frames).finished else "no")  # type: ignore[misc]
    row["resumed"] = answer(lambda: resumed(config, frames, whole))
    row["mc"] = answer(lambda: dropout(whole))
    row["onnx"] = answer(lambda: exported(whole))
    return row


def main(models: list[str]) -> None:
    """Try models and write their rows."""
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    rows = {row["model"]: row for row in csv.DictReader(ROWS.open())} if ROWS.exists() else {}
    known = [network.removeprefix(braindecode.PREFIX) for network in braindecode.names()]
    named = [model for model in models if model != "--checks"]
    for model in named or [name for name in known if name not in rows]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows[model] = tried(model, trains="--checks" not in models)  # type: ignore[assignment]
        print(rows[model], flush=True)
        with ROWS.open("w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows[name] for name in sorted(rows, key=str.lower))


if __name__ == "__main__":
    main(sys.argv[1:])
