"""What a launch computes on, on pretended machines: their GPUs and their speeds are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.execution.devices import choice, speed
from clops_sweep.execution.devices.choice import choose
from clops_sweep.execution.devices.speed import Speed, known_speeds
from clops_sweep.execution.jobs import Resources
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.machine import Gpu
from clops_sweep.planning.request import Request
from clops_sweep.store.run_store import RunStore
from tests.stores import write_finished

FAST, SLOW = Speed(1.0, 0.01, 2**28), Speed(0.01, 1.0, 2**28)
GIB = 2**30
Tables = Callable[..., dict[str, pa.Table]]


class Machine:
    """A pretended machine.

    Attributes:
        gpus: that PyTorch can use.
        hidden: further GPUs, which it cannot use.
        cores: of the machine.
        speed: of every network.
        measured: the batch sizes of the networks that were timed.
    """

    def __init__(self, root: Path, base: Path) -> None:
        self.gpus: list[Gpu] = [Gpu("pretended", 80 * GIB)] * 8
        self.hidden, self.cores, self.speed = 0, 64, FAST
        self.measured: list[int] = []
        self.base, self._root = base, root

    def measure(self, config: RunConfig, frames: object, device: str) -> Speed:
        assert device == "cuda"
        self.measured.append(config.batch_size)
        return self.speed

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
    for module in (choice, speed):
        monkeypatch.setattr(module, "usable_gpus", lambda: tuple(made.gpus))
    monkeypatch.setattr(choice, "gpus_of_driver", lambda: len(made.gpus) + made.hidden)
    monkeypatch.setattr(choice, "available_cores", lambda: made.cores)
    monkeypatch.setattr(choice, "measure", made.measure)
    return made


def test_all_gpus_of_a_workstation_are_used(machine: Machine) -> None:
    found = choose(machine.asked(), Resources(), (), 640)
    assert found.words == "gpu, 12 times as fast as 64 cores; a trial takes 0.5 GPU and up to 40 runs in lockstep"
    assert (found.resources.gpus_per_trial, found.resources.lockstep) == (0.5, 40)  # 640 runs are two jobs a GPU
    few = choose(machine.asked(), Resources(), (), 20)
    assert (few.resources.gpus_per_trial, few.resources.lockstep) == (0.5, 2)  # 20 runs on 8 GPUs
    assert "idle" not in few.words


def test_slow_gpus_stay_idle_and_the_launch_says_so(machine: Machine) -> None:
    machine.speed = SLOW
    found = choose(machine.asked(), Resources(), (), 640)
    assert found.resources == Resources()
    assert found.words == "cpu; 8 GPUs stay idle, 800 times as slow as 64 cores; override with --device gpu"


def test_the_cores_and_gpus_of_the_machine_decide(machine: Machine) -> None:
    """A GPU of ten cores' speed is worth it beside eight cores, and not beside eleven; four GPUs need four cores."""
    machine.speed, machine.gpus = Speed(1.0, 0.1, 1), machine.gpus[:1]
    for cores, kind in ((8, "gpu"), (11, "cpu")):
        machine.cores = cores
        assert choose(machine.asked(), Resources(), (), 640).words.startswith(kind)
    machine.cores, machine.gpus = 2, machine.gpus * 4
    assert choose(machine.asked(), Resources(), (), 640).words.endswith("; 2 GPUs stay idle")
    alone = choose(machine.asked(), Resources(no_ray=True), (), 640)
    assert alone.words.endswith("; 3 GPUs stay idle")


def test_many_slow_networks_outweigh_a_fast_one(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = {16: FAST, 32: replace(SLOW, gpu=1e4)}
    monkeypatch.setattr(choice, "measure", lambda config, frames, device: speeds[config.batch_size])
    assert choose(machine.asked({"batch_size": 16}), Resources(), (), 640).words.startswith("gpu")
    both = machine.asked({"batch_size": 16}, {"batch_size": 32})
    assert choose(both, Resources(), (), 640).words.startswith("cpu")


def test_a_device_that_is_asked_for_is_taken(machine: Machine) -> None:
    assert choose(machine.asked(), Resources(device="cpu"), (), 1).words == "cpu, as requested; 8 GPUs stay idle"
    assert machine.measured == []
    machine.speed = SLOW
    found = choose(machine.asked(), Resources(device="gpu"), (), 640)
    assert found.words.startswith("gpu, as requested; a trial takes 0.5 GPU")
    share = choose(machine.asked(), Resources(gpus_per_trial=0.25), (), 640)
    assert share.resources.gpus_per_trial == 0.25


def test_without_a_gpu_runs_are_computed_on_cpus(machine: Machine) -> None:
    machine.gpus = []
    assert choose(machine.asked(), Resources(), (), 1).words == "cpu; this machine has no GPU"
    machine.hidden = 2
    assert choose(machine.asked(), Resources(), (), 1).words.startswith("cpu; 2 GPUs stay idle: PyTorch ")
    elsewhere = choose(machine.asked(), Resources(address="auto", device="gpu"), (), 1)  # its GPUs may come later
    assert (elsewhere.resources.gpus_per_trial, elsewhere.resources.lockstep) == (1, 40)


def test_memory_bounds_locksteps_and_trials(machine: Machine) -> None:
    machine.gpus, machine.speed = [Gpu("pretended", 8 * GIB)], replace(FAST, run_bytes=GIB)
    small = choose(machine.asked(), Resources(), (), 640)
    assert (small.resources.gpus_per_trial, small.resources.lockstep) == (1, 4)  # 1 GiB, and 1.5 GiB a run
    machine.gpus = [Gpu("pretended", 80 * GIB)]
    assert choose(machine.asked(), Resources(lockstep=2), (), 640).resources.gpus_per_trial == 0.0526  # 4 GiB each
    machine.cores = 4
    assert choose(machine.asked(), Resources(lockstep=2), (), 640).resources.gpus_per_trial == 0.25  # a core each


def test_a_network_is_timed_once_per_batch_size_and_machine(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    both = machine.asked({"batch_size": 16}, {"batch_size": 32})
    assert choose(both, Resources(), (), 1, may_measure=False).words.startswith("not known yet; the launch measures")
    assert machine.measured == []
    choose(both, Resources(), (), 1)
    assert choose(both, Resources(), (), 1, may_measure=False).words.startswith("gpu")
    choose(machine.asked({"batch_size": 32, "learning_rate": 0.5}), Resources(), (), 1)
    assert sorted(machine.measured) == [16, 32]
    known = known_speeds(machine.asked().data.root)
    assert known == dict.fromkeys((f"clops_cnn, batch {size}, 1 x 2500" for size in (16, 32)), FAST)
    monkeypatch.setattr(speed.socket, "gethostname", lambda: "another")
    assert known_speeds(machine.asked().data.root) == {}
    (machine.asked().data.root / ".speeds.json").write_text("[1")  # torn
    choose(both, Resources(), (), 1)
    assert sorted(machine.measured) == [16, 16, 32, 32]


def test_one_kind_of_device_per_search_space(machine: Machine, finished_tables: Tables) -> None:
    asked, ids = machine.asked(), {}
    for number, device in enumerate(("cpu", "cuda", None)):
        config = asked.selection.configs[number]
        tables = finished_tables(f"{number}", config)
        place = tables["runs"].schema.get_field_index("device")
        field = tables["runs"].schema.field(place)
        tables["runs"] = tables["runs"].set_column(place, field, pa.array([device], pa.string()))
        write_finished(asked.store, f"{number}", tables)  # type: ignore[arg-type]
        ids[device] = [f"{number}"]
    assert choose(asked, Resources(), ids["cpu"], 1).words == "cpu, like the finished runs; 8 GPUs stay idle"
    assert choose(asked, Resources(), ids[None], 1).words.startswith("cpu, like the")  # written by an early version
    machine.speed = SLOW
    assert choose(asked, Resources(), ids["cuda"], 640).words.startswith("gpu, like the finished runs; a trial takes")
    for resources, before in ((Resources(device="gpu"), "cpu"), (Resources(gpus_per_trial=1), "cpu")):
        with pytest.raises(UsageError, match="computed on CPUs; expected --device cpu or auto, or other --results"):
            choose(asked, resources, ids[before], 1)
    with pytest.raises(UsageError, match="computed on GPUs; expected --device gpu or auto, or other --results"):
        choose(asked, Resources(device="cpu"), ids["cuda"], 1)
    machine.gpus = []
    with pytest.raises(UsageError, match=r"computed on GPUs, and PyTorch .* cannot use a GPU here"):
        choose(asked, Resources(), ids["cuda"], 1)


def test_a_gpu_that_fails_is_left_alone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> Speed:
        raise RuntimeError("CUDA error: no kernel image is available")

    monkeypatch.setattr(choice, "measure", fail)
    found = choose(machine.asked(), Resources(), (), 1)
    assert found.words == "cpu; 8 GPUs stay idle: not usable (CUDA error: no kernel image is available)"
    with pytest.raises(UsageError, match=r"^the GPU cannot be used: CUDA error"):
        choose(machine.asked(), Resources(device="gpu"), (), 1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"device": "tpu"},
        {"device": "cpu", "gpus_per_trial": 1},
        {"nice": 20},
        {"nice": 5, "no_ray": True},
        {"nice": 5, "address": "auto"},
    ],
)
def test_wrong_devices_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Resources(**wrong)  # type: ignore[arg-type]
