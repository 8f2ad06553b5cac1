"""Try every network of braindecode on 22 x 1,000 samples, and write a row for each.

python docs/braindecode/networks.py            tries the models that have no row yet
python docs/braindecode/networks.py MODEL ...  tries these again

The other rows of networks.csv stay. `pytest -m nightly tests/learning/networks/test_all_of_braindecode.py` tries all
models and compares the rows, but for their times.
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
from clops_sweep.errors import UsageError
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
from clops_sweep.learning.networks.run_module import RunModule, made, trained
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
"""Parameters of the largest network that is trained here; larger ones pass the checks of a launch alone."""

SETTINGS: dict[str, Any] = {"epochs_per_task": 2, "first_tasks": 1}

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


def config_of(model: str, method: str, **changes: Any) -> RunConfig:
    """Return a tiny run of a model."""
    return tiny_config("time_il", strategy=method, network=braindecode.PREFIX + model, **SETTINGS | changes)


def contract(model: str) -> dict[str, str]:
    """Return the row of a model but for its times: why it is refused, or what becomes of it in runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _contract(model)


def _contract(model: str) -> dict[str, str]:
    frames, config = frames_of_electrodes(), config_of(model, "clops")
    row = dict.fromkeys(COLUMNS, "") | {"model": model}
    try:
        check_networks([config], {config.data_key: frames}, keep_models=True)
    except UsageError as error:
        beginning = f"network {config.network!r}: "
        return row | {"refused": " ".join(str(error).removeprefix(beginning).split())}
    row |= layers(config, frames)
    if not is_trained(row):
        return row
    row |= of_a_run(config, frames)
    row["loss"] = answer(lambda: one_epoch(model, "replay_by_loss", frames))
    row["ewc"] = answer(lambda: one_epoch(model, "ewc", frames))
    return row


def is_trained(row: dict[str, str]) -> bool:
    """Return whether a network is accepted and small enough to be trained here."""
    return not row["refused"] and int(row["parameters"]) <= LARGEST


def of_a_run(config: RunConfig, frames: FrameSet) -> dict[str, str]:
    """Return whether a run resumes with equal bits, has dropout in Monte-Carlo passes, and can be exported."""
    try:
        whole = finished(config, frames)
    except Exception as error:
        return {"resumed": " ".join(f"{error}".split())}
    return {
        "resumed": answer(lambda: resumed(config, frames, whole)),
        "mc": answer(lambda: dropout(whole)),
        "onnx": answer(lambda: exported(whole)),
    }


def layers(config: RunConfig, frames: FrameSet) -> dict[str, str]:
    """Return the number of parameters of a network, and what computes it."""
    network, options, shape = config.network, network_options(config, frames), (len(ELECTRODES), SAMPLES)
    module = made(network, NETWORKS[network], 0, shape, OUTPUTS, options)
    statistics = probed(network, NETWORKS[network], shape, OUTPUTS, options).statistics
    program = lowered(RunModule(module, OUTPUTS, statistics), *shape)
    parameters = sum(parameter.numel() for parameter in trained(module).values())
    computed_by = f"PyTorch: {program}" if isinstance(program, NotLowered) else "kernels"
    return {"parameters": f"{parameters}", "computed_by": computed_by}


def one_epoch(model: str, method: str, frames: FrameSet) -> str:
    """Return whether a run of one epoch by a method ends."""
    run = finished(config_of(model, method, epochs_per_task=1), frames)
    return "yes" if run.finished else "no"


def with_times(row: dict[str, str]) -> dict[str, str]:
    """Return a row with the times of a step, if the model is trained."""
    if not is_trained(row):
        return row
    frames, config = frames_of_electrodes(), config_of(row["model"], "clops")
    step, loop = seconds_of_steps(config.network, frames, network_options(config, frames))
    return row | {"step_ms": f"{step:.3g}", "loop_ms": f"{loop:.3g}"}


def read_rows() -> dict[str, dict[str, str]]:
    """Return the rows of the table by model."""
    if not ROWS.exists():
        return {}
    with ROWS.open(newline="") as file:
        return {row["model"]: row for row in csv.DictReader(file)}


def main(models: list[str]) -> None:
    """Try models and write their rows."""
    torch.set_num_threads(1)
    np.seterr(all="ignore")
    rows = read_rows()
    known = [network.removeprefix(braindecode.PREFIX) for network in braindecode.names()]
    for model in models or [name for name in known if name not in rows]:
        rows[model] = with_times(contract(model))
        print(rows[model], flush=True)
        with ROWS.open("w", newline="") as file:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows[name] for name in sorted(rows, key=str.lower))


if __name__ == "__main__":
    main(sys.argv[1:])
