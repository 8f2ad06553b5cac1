"""What a launch computes on, on pretended machines: their GPUs are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from clops_sweep import RunConfig, SearchSpace, native
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.execution import devices
from clops_sweep.execution.devices import choose
from clops_sweep.execution.jobs import Resources
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.machine import Gpu
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore


class Machine:
    """A pretended machine.

    Attributes:
        gpus: that PyTorch can use.
        hidden: further GPUs, which it cannot use.
        cores: of the machine.
    """

    cores = 64

    def __init__(self, root: Path, base: Path) -> None:
        self.gpus: list[Gpu] = [Gpu("pretended", 2**36)] * 8
        self.hidden = 0
        self.base, self._root = base, root

    def asked(self, *changes: dict[str, object], seeds: int = 640) -> State:
        base = RunConfig(strategy="finetune")
        spaces = [
            SearchSpace(f"space {number}", base.replace(**change), seeds=range(seeds))
            for number, change in enumerate(changes or ({},))
        ]
        store = RunStore(self.base / "results")
        return State.of(Request(Selection.of(spaces), PreparedData.found(self._root), store))


@pytest.fixture
def machine(prepared_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    root = tmp_path / "prepared"
    root.mkdir()
    (root / "synthetic").symlink_to(prepared_root / "synthetic")
    made = Machine(root, tmp_path)
    monkeypatch.setattr(devices, "usable_gpus", lambda: tuple(made.gpus))
    monkeypatch.setattr(devices, "gpus_of_driver", lambda: len(made.gpus) + made.hidden)
    monkeypatch.setattr(devices, "available_cores", lambda: made.cores)
    monkeypatch.setattr(native, "available", lambda: ("avx2",))
    return made


def test_the_papers_network_is_computed_on_cpus(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    found = choose(machine.asked(), Resources())
    assert found.resources == Resources()
    said = "cpu; 8 GPUs stay idle: clops_cnn has native kernels for CPUs; override with --device gpu"
    assert found.words == said
    for changes in ({"network": "mlp"}, {"precision": "bfloat16"}):
        assert choose(machine.asked({}, changes), Resources()).words.startswith("gpu; 8 trials share a GPU")
    monkeypatch.setattr(devices, "LARGEST_NATIVE", 2499)  # frames of the synthetic data have 2,500 values
    assert choose(machine.asked(), Resources()).words.startswith("gpu; ")
    monkeypatch.undo()
    monkeypatch.setattr(devices, "usable_gpus", lambda: tuple(machine.gpus))
    monkeypatch.setattr(native, "available", lambda: ())
    assert choose(machine.asked(), Resources()).words.startswith("gpu; ")


def test_a_share_of_a_gpu_is_what_is_asked_for(machine: Machine) -> None:
    assert choose(machine.asked(), Resources(device="gpu")).resources.gpus_per_trial == 0.125
    found = choose(machine.asked(), Resources(gpus_per_trial=0.25))
    assert found.resources.gpus_per_trial == 0.25
    assert found.words == "gpu, as requested; a trial takes 0.25 GPU"


def test_a_device_that_is_asked_for_is_taken(machine: Machine) -> None:
    asked = machine.asked({"network": "mlp"})
    assert choose(asked, Resources(device="cpu")).words == "cpu, as requested; 8 GPUs stay idle"
    assert choose(asked, Resources(device="gpu")).words.startswith("gpu, as requested; 8 trials share a GPU")


@pytest.mark.parametrize(
    ("gpus", "memory", "cores", "seeds", "options", "trials", "why"),
    [
        (1, 80e9, 64, 640, {}, 8, "more would gain little"),
        (8, 80e9, 16, 640, {}, 2, "16 cores for 8 GPUs"),
        (8, 80e9, 4, 640, {}, 1, "4 cores for 8 GPUs"),
        (1, 80e9, 16, 640, {"cpus_per_trial": 4}, 4, "16 cores for 1 GPU"),
        (2, 80e9, 64, 5, {}, 3, "5 runs for 2 GPUs"),
        (1, 12e9, 64, 640, {}, 3, "a run needs about 2.9 of 12 GB"),
        (1, 1e9, 64, 640, {}, 1, "a run needs about 2.9 of 1 GB"),
        (1, 80e9, 64, 640, {"workers": "this process"}, 1, "--no-ray computes one run at a time"),
    ],
)
def test_trials_share_a_gpu_by_its_memory_and_by_cores(
    machine: Machine,
    gpus: int,
    memory: float,
    cores: int,
    seeds: int,
    options: dict[str, object],
    trials: int,
    why: str,
) -> None:
    machine.gpus, machine.cores = [Gpu("pretended", int(memory))] * gpus, cores
    asked = machine.asked({"network": "small_cnn"}, seeds=seeds)
    found = choose(asked, Resources(**options))  # type: ignore[arg-type]
    share = found.resources.gpus_per_trial
    assert share * trials <= 1 < share * (trials + 1)
    words = f"{trials} trials share a GPU" if trials > 1 else "a trial takes 1 GPU"
    assert found.words == f"gpu; {words}: {why}"


def test_the_largest_run_counts(machine: Machine) -> None:
    """Its network, its batches and its frames, not those of most runs."""
    machine.gpus = [Gpu("pretended", int(20e9))]

    def trials(*changes: dict[str, object]) -> float:
        return round(1 / choose(machine.asked(*changes), Resources(device="gpu")).resources.gpus_per_trial)

    assert trials({}) == 8
    assert trials({}, {"network": "resnet1d_wang"}) < 8
    assert trials({}, {"batch_size": 4096}) < 8


def test_the_memory_of_data_that_are_not_prepared_is_unknown(machine: Machine) -> None:
    asked = machine.asked({"network": "small_cnn", "dataset": "mitbih"})
    words = "gpu; a trial takes 1 GPU: the data are not prepared, so the memory of a run is unknown"
    assert choose(asked, Resources()).words == words


def test_without_a_gpu_here_a_trial_of_a_cluster_takes_a_whole_one(machine: Machine) -> None:
    machine.gpus = []
    found = choose(machine.asked(), Resources(device="gpu", address="10.0.0.1:6379"))
    assert found.resources.gpus_per_trial == 1
    assert found.words == "gpu, as requested; a trial takes 1 GPU: this machine has none to judge by"
