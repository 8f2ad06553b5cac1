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
from clops_sweep.store.run_store import RunStore


class Machine:
    """A pretended machine.

    Attributes:
        gpus: that PyTorch can use.
        hidden: further GPUs, which it cannot use.
    """

    def __init__(self, root: Path, base: Path) -> None:
        self.gpus: list[Gpu] = [Gpu("pretended", 2**36)] * 8
        self.hidden = 0
        self.base, self._root = base, root

    def asked(self, *changes: dict[str, object], seeds: int = 640) -> Request:
        base = RunConfig(strategy="finetune")
        spaces = [
            SearchSpace(f"space {number}", base.replace(**change), seeds=range(seeds))
            for number, change in enumerate(changes or ({},))
        ]
        return Request(Selection.of(spaces), PreparedData.found(self._root), RunStore(self.base / "results"))


@pytest.fixture
def machine(prepared_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    root = tmp_path / "prepared"
    root.mkdir()
    (root / "synthetic").symlink_to(prepared_root / "synthetic")
    made = Machine(root, tmp_path)
    monkeypatch.setattr(devices, "usable_gpus", lambda: tuple(made.gpus))
    monkeypatch.setattr(devices, "gpus_of_driver", lambda: len(made.gpus) + made.hidden)
    monkeypatch.setattr(native, "available", lambda: ("avx2",))
    return made


def test_the_papers_network_is_computed_on_cpus(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    found = choose(machine.asked(), Resources(), ())
    assert found.resources == Resources()
    said = "cpu; 8 GPUs stay idle: clops_cnn has native kernels for CPUs; override with --device gpu"
    assert found.words == said
    for changes in ({"network": "mlp"}, {"precision": "bfloat16"}):
        assert choose(machine.asked({}, changes), Resources(), ()).words.startswith("gpu; a trial takes 1 GPU")
    monkeypatch.setattr(devices, "_LARGEST_NATIVE", 2499)  # frames of the synthetic data have 2,500 values
    assert choose(machine.asked(), Resources(), ()).words.startswith("gpu; ")
    monkeypatch.undo()
    monkeypatch.setattr(devices, "usable_gpus", lambda: tuple(machine.gpus))
    monkeypatch.setattr(native, "available", lambda: ())
    assert choose(machine.asked(), Resources(), ()).words.startswith("gpu; ")


def test_a_share_of_a_gpu_is_what_is_asked_for(machine: Machine) -> None:
    assert choose(machine.asked(), Resources(device="gpu"), ()).resources.gpus_per_trial == 1
    found = choose(machine.asked(), Resources(gpus_per_trial=0.25), ())
    assert found.resources.gpus_per_trial == 0.25
    assert found.words == "gpu, as requested; a trial takes 0.25 GPU"


def test_a_device_that_is_asked_for_is_taken(machine: Machine) -> None:
    asked = machine.asked({"network": "mlp"})
    assert choose(asked, Resources(device="cpu"), ()).words == "cpu, as requested; 8 GPUs stay idle"
    assert choose(asked, Resources(device="gpu"), ()).words.startswith("gpu, as requested; a trial takes 1 GPU")
