"""Plug-ins that return, raise or change what they should not: each fails alone, with a sentence, and nothing hangs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from clops_sweep import ContinualRun, RunConfig, RunEnd, ScenarioTasks
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.scenarios import class_il
from clops_sweep.errors import UsageError
from clops_sweep.execution.display.terminal import lenient_output, output_to
from clops_sweep.execution.observers.requested import requested_observers
from clops_sweep.execution.observers.thread import Observers
from clops_sweep.experiment.plugins.decorators import observer
from clops_sweep.experiment.plugins.registry import OBSERVERS, SCENARIOS
from clops_sweep.learning.networks.module_probe import probed
from clops_sweep.store.rows import failure_reason
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing import tiny_config, tiny_frames
from tests.helpers.launching import ATTACHED, ONE_WORKER, TABLES, Sweep, assert_equal, comparable, runs_alone
from tests.helpers.preloaded import Preloaded

pytestmark = pytest.mark.nightly

SPACE = '''
import os
import random

import numpy as np
import torch
from torch import nn

from clops_sweep import RunConfig, SearchSpace, acquisition_function, network, storage_function, strategy
from clops_sweep.learning.strategies.finetune import FineTuning


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError


def raising(error):
    def plugin(*arguments):
        raise error() if isinstance(error, type) else error
    return plugin


def endless(*arguments):
    return endless(*arguments)


def spoils(kind):
    def plugin(*arguments):
        {
            "seeds": lambda: (random.seed(0), np.random.seed(0), torch.manual_seed(0)),
            "threads": lambda: torch.set_num_threads(3),
            "dtype": lambda: torch.set_default_dtype(torch.float64),
            "gradients": lambda: torch.set_grad_enabled(False),
        }[kind]()
        return as_scores(arguments[-1])
    return plugin


def mutates(*arguments):
    scores = as_scores(arguments[-1]).clone()
    arguments[-1].zero_()
    return scores


def behind_the_probe(change):
    """A network that does as it should for up to three frames at a time."""
    class Hostile(nn.Module):
        def __init__(self, channels, samples, outputs):
            super().__init__()
            self.body = nn.Linear(channels * samples, outputs)

        def forward(self, frames):
            logits = self.body(frames.flatten(1))
            return change(logits) if len(frames) > 3 else logits
    return Hostile


class BadBackward(torch.autograd.Function):
    @staticmethod
    def forward(context, logits):
        return logits.clone()

    @staticmethod
    def backward(context, gradient):
        raise RuntimeError("no way back")


def ends(logits):
    raise SystemExit(0)


def after(effect):
    def change(logits):
        effect()
        return logits
    return change


def as_scores(values):
    return values.double() if values.dim() == 2 else values.sum(1).double()


SCORES = {
    "none": lambda *given: None,
    "generator": lambda *given: (value for value in given),
    "empty": lambda *given: torch.zeros(0),
    "huge": lambda *given: torch.zeros(1).expand(10**12),
    "complex": lambda *given: as_scores(given[-1]).to(torch.complex64),
    "nan": lambda *given: as_scores(given[-1]) * float("nan"),
    "raises": raising(ValueError("out of order")),
    "exit": raising(SystemExit("enough")),
    "recursion": endless,
}
OF_ONE = {
    "unprintable": raising(Unprintable),
    "long": raising(ValueError("x" * 10**7)),
    "memory": raising(MemoryError),
    "stop": raising(StopIteration),
}
HARMLESS = {"negative": lambda *given: -as_scores(given[-1]), "mutates": mutates}
SPOILS = {kind: spoils(kind) for kind in {spoiling!r}}
NETWORKS = {
    "backward": BadBackward.apply,
    "sparse": lambda logits: logits.to_sparse(),
    "no_gradient": lambda logits: logits.detach(),
    "shape": lambda logits: logits.sum(1),
    "double": lambda logits: logits.double(),
    "tuple": lambda logits: (logits,),
    "nan": lambda logits: logits * float("nan"),
    "exit": ends,
    "dtype": after(lambda: torch.set_default_dtype(torch.float64)),
}


def failing(method, error):
    def fails(self, *arguments, **options):
        raise error
    return type("Hostile", (FineTuning,), {method: fails})


STRATEGIES = {
    "exit": failing("begin_task", SystemExit(0)),
    "exit_later": failing("train_epoch", SystemExit("enough")),
    "raises": failing("end_task", ValueError("out of order")),
    "exit_when_made": failing("__init__", SystemExit(3)),
    "ends_process": type("Hostile", (FineTuning,), {"begin_task": lambda self, task: os._exit(3)}),
}

VARIANTS = {}
for register, field, members in (
    (acquisition_function, "acquisition", SCORES | OF_ONE | HARMLESS | SPOILS),
    (storage_function, "storage_function", SCORES | HARMLESS),
    (network, "network", {name: behind_the_probe(change) for name, change in NETWORKS.items()}),
    (strategy, "strategy", STRATEGIES),
):
    for name, member in members.items():
        register(f"{field}_{name}")(member)
        VARIANTS[f"{field}_{name}"] = {field: f"{field}_{name}"}
        if field == "network":
            VARIANTS[f"{field}_{name}"]["strategy"] = "finetune"
    VARIANTS[f"good after {field}"] = {"storage_fraction": 0.1 + len(VARIANTS) / 1000}

SPACE = SearchSpace("hostile", RunConfig(epochs_per_task=1, mc_samples=2), {"variant": VARIANTS}, seeds=range(1))
'''
"""Plug-ins of four kinds, all computed by the same worker, and good runs after those of each kind."""

ANSWERS = {
    "none": "returned NoneType; expected a tensor of scores",
    "generator": "returned generator; expected a tensor of scores",
    "empty": r"returned scores of shape \[0\]; expected",
    "huge": r"returned scores of shape \[1000000000000\]; expected",
    "complex": "returned torch.complex64; expected scores that are real numbers",
    "nan": "returned NaN for",
    "raises": "ValueError: out of order",
    "exit": "SystemExit: enough",
    "recursion": "RecursionError: maximum recursion depth exceeded",
}
EXPECTED = {
    **{f"{field}_{name}": answer for field in ("acquisition", "storage_function") for name, answer in ANSWERS.items()},
    "acquisition_unprintable": "Unprintable",
    "acquisition_long": "xxx",
    "acquisition_memory": "MemoryError",
    "acquisition_stop": "StopIteration",
    "network_backward": "RuntimeError: no way back",
    "network_sparse": r"the network returned logits \[.*\] of torch.sparse_coo",
    "network_no_gradient": "depend on none of its parameters",
    "network_shape": r"the network returned logits \[\d+\] of .* for \d+ instances; expected a dense float32 tensor",
    "network_double": r"the network returned logits \[.*\] of torch.strided torch.float64",
    "network_tuple": "the network returned tuple for",
    "network_nan": "the network has diverged in epoch 1 of task 1",
    "network_exit": "SystemExit: 0",
    "network_dtype": "RuntimeError: ",
    "strategy_exit": "SystemExit: 0",
    "strategy_exit_later": "SystemExit: enough",
    "strategy_raises": "ValueError: out of order",
    "strategy_exit_when_made": "SystemExit: 3",
    "strategy_ends_process": "worker process has died",
}
"""What has failed, with how; everything else finishes."""

SPOILING = ("seeds", "threads", "dtype", "gradients")


@pytest.fixture(scope="module")
def hostile(
    drivers: Preloaded, ray_at_hand: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sweep]:
    """The whole space, run by one worker, without retries."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "space.py").write_text(SPACE.replace("{spoiling!r}", repr(SPOILING)))
    options = ("--no-report", "--max-retries", "0", *ATTACHED, *ONE_WORKER)
    sweep = Sweep(drivers, folder, ray_at_hand, "space.py", *options)
    try:
        assert sweep.wait() == 1, sweep.errors
        yield sweep
    finally:
        sweep.close()


@pytest.fixture(scope="module")
def runs(hostile: Sweep) -> pd.DataFrame:
    """The table of runs, by what is hostile in them."""
    found = pd.read_parquet(hostile.folder / "results" / "runs")
    fields = ("strategy", "network", "storage_function", "acquisition")

    def name(row: pd.Series) -> str:
        return next((row[field] for field in fields if row[field].startswith(field)), "good")

    return found.set_index(found.apply(name, axis=1))


def test_every_hostile_run_fails_alone_with_a_sentence_and_the_others_finish(
    hostile: Sweep, runs: pd.DataFrame
) -> None:
    failed = runs[runs["status"] == "failed"]
    assert sorted(failed.index) == sorted(EXPECTED), failed["error"].drop(EXPECTED, errors="ignore").to_list()
    for name, error in failed["error"].items():
        assert re.search(EXPECTED[str(name)], error.strip().splitlines()[-1][:2000]), (name, error[-500:])
        assert len(error) < 21_000
        assert len(failure_reason(error)) < 1000
    assert hostile.output.count(", in the store already") == 0  # no worker has died where none should
    assert hostile.errors == ""
    hostile.wait_until_gone()


def test_what_a_run_leaves_behind_changes_no_number_of_any(
    hostile: Sweep, runs: pd.DataFrame, prepared_root: Path
) -> None:
    finished = runs[runs["status"] == "finished"]
    spoiled = finished.loc[[f"acquisition_{kind}" for kind in SPOILING]]
    assert set(spoiled["auc"]) == {spoiled["auc"].iloc[0]}
    good = finished.loc[["good"]]
    base = RunConfig(epochs_per_task=1, mc_samples=2)
    configs = [base.replace(storage_fraction=fraction) for fraction in good["storage_fraction"]]
    for table, expected in runs_alone(configs, prepared_root).items():
        found = pd.read_parquet(hostile.folder / "results" / table)
        assert_equal(table, found[found["run_id"].isin(good["run_id"])], comparable(table, expected))
    assert set(TABLES) == {"runs", "r_matrix", "curves", "instances"}


# --- networks, as they are tried before a sweep -----------------------------------------------------------------------


class Flat(nn.Module):
    def __init__(self, channels: int, samples: int, outputs: int) -> None:
        super().__init__()
        self.body = nn.Linear(channels * samples, outputs)

    def forward(self, frames: torch.Tensor) -> Any:
        return self.body(frames.flatten(1))


class NoWayBack(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, logits: torch.Tensor) -> torch.Tensor:
        return logits.clone()

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        raise RuntimeError("no way back")


class LeavesBackward(NoWayBack):
    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        raise SystemExit(0)


def ends(*arguments: object) -> Any:
    raise SystemExit(0)


def with_outputs(change: Callable[[torch.Tensor], Any]) -> type[Flat]:
    return type("Changed", (Flat,), {"forward": lambda self, frames: change(Flat.forward(self, frames))})


TRIED: dict[str, tuple[Callable[..., Any], str]] = {
    "backward": (
        with_outputs(NoWayBack.apply),
        r"raises in its backward pass on frames \[3, 1, 20\] \(RuntimeError: no",
    ),
    "exit in backward": (with_outputs(LeavesBackward.apply), r"raises in its backward pass .*SystemExit: 0\)"),
    "sparse": (
        with_outputs(lambda logits: logits.to_sparse()),
        r"returned logits \[3, 3\] of torch.sparse_coo .*; expected a dense",
    ),
    "exit": (with_outputs(ends), r"raises on frames .*\(SystemExit: 0\)"),
    "exit when made": (ends, r"raises when made for .*\(SystemExit: 0\)"),
    "generator": (with_outputs(lambda logits: (row for row in logits)), "returned generator for 3 instances; expected"),
}


@pytest.mark.parametrize("name", TRIED)
def test_a_hostile_network_is_refused_in_one_sentence(name: str) -> None:
    make, sentence = TRIED[name]
    with pytest.raises(UsageError, match=f"^network 'mine': {sentence}") as refused:
        probed("mine", make, (1, 20), 3)
    assert len(str(refused.value)) < 400


# --- scenarios --------------------------------------------------------------------------------------------------------


def changed(**fields: Any) -> Callable[[FrameSet], Any]:
    def scenario(frames: FrameSet) -> Any:
        made = class_il(frames)
        first, *others = made.tasks
        for name, value in fields.items():
            object.__setattr__(first, name, value(first))
        return ScenarioTasks(made.kind, [first, *others])

    return scenario


def writes(frames: FrameSet) -> Any:
    frames.frames[:] = 0


SCENES: dict[str, tuple[Callable[..., Any], str]] = {
    "none": (lambda frames: None, "the function returns NoneType; expected clops_sweep.ScenarioTasks"),
    "generator": (lambda frames: (task for task in class_il(frames).tasks), "the function returns generator"),
    "exit": (ends, "raises SystemExit for 'synthetic': 0"),
    "raises": (lambda frames: 1 / 0, "raises ZeroDivisionError for 'synthetic': division by zero"),
    "writes": (writes, "raises ValueError for 'synthetic': assignment destination is read-only"),
    "positions": (changed(instances=lambda task: np.flatnonzero(task.instances)), "expected a truth value for each of"),
    "nan": (changed(targets=lambda task: task.targets * np.nan), "targets hold something else than 0 and 1"),
    "negative": (changed(targets=lambda task: task.targets - 1.0), "targets hold something else than 0 and 1"),
    "text": (changed(targets=lambda task: task.targets.astype(str)), "targets hold something else than 0 and 1"),
    "no name": (changed(name=lambda task: 3), "a task is called 3; expected text"),
    "far output": (changed(outputs=lambda task: (7,)), r"outputs \[7\]: expected positions below 1"),
    "two outputs": (
        changed(targets=lambda task: np.hstack([task.targets] * 2)),
        "targets have the shape|2 outputs with",
    ),
}


@pytest.mark.parametrize("name", SCENES)
def test_a_hostile_scenario_is_refused_in_one_sentence(name: str) -> None:
    function, sentence = SCENES[name]
    with SCENARIOS.temporarily("mine", function), pytest.raises(UsageError, match=sentence) as refused:
        ContinualRun(tiny_config("class_il").replace(scenario="mine"), tiny_frames("class_il"))
    assert len(str(refused.value)) < 400


# --- observers --------------------------------------------------------------------------------------------------------


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def unprintable(event: object) -> None:
    raise Unprintable


def closes(event: object) -> None:
    sys.stdout.close()


def prints(event: object) -> None:
    print("x" * 10**6)


def endless(event: object) -> None:
    endless(event)


def waits(event: object) -> None:
    time.sleep(60)


OBSERVED: dict[str, tuple[Callable[..., Any], str]] = {
    "exit": (ends, "raises SystemExit: 0; runs go on"),
    "unprintable": (unprintable, r"raises Unprintable: \(it cannot be printed\); runs go on"),
    "recursion": (endless, "raises RecursionError: maximum recursion depth"),
    "hangs": (waits, "has not returned at the end of the sweep"),
    "closes standard output": (closes, ""),
    "prints a lot": (prints, ""),
    "returns a generator": (lambda event: (it for it in "abc"), ""),
}


@pytest.mark.parametrize("name", OBSERVED)
def test_a_hostile_observer_costs_no_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OBSERVERS, "_plugins", dict(OBSERVERS.built_in))
    function, sentence = OBSERVED[name]
    observer("hostile")(function)
    calls: list[object] = []
    observer("good")(calls.append)
    notes: list[str] = []
    requested = requested_observers(["hostile", "good"], RunStore(tmp_path / "results"))
    with lenient_output(), output_to(tmp_path / "log"):
        observers = Observers(requested, notes.append)
        observers.tell([RunEnd("ab12", RunConfig(), "finished", {"auc": 0.75})])
        observers.close(1 if name == "hangs" else 20)
    assert len(calls) == (name != "hangs")
    assert len(notes) == bool(sentence)
    assert not sentence or re.search(sentence, notes[0])


# --- commands ---------------------------------------------------------------------------------------------------------


def test_a_network_that_ends_the_process_does_not_end_the_command(
    clops_sweep: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "space.py").write_text(
        "from clops_sweep import RunConfig, SearchSpace, network\n"
        "@network('mine')\ndef make(channels, samples, outputs):\n    raise SystemExit(0)\n"
        "SPACE = SearchSpace('s', RunConfig(strategy='finetune', network='mine'))\n"
    )
    done = clops_sweep("space.py")
    assert done.returncode == 2
    assert done.stderr.startswith("clops-sweep: network 'mine': raises when made for channels = ")
