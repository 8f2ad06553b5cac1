"""`clops-sweep status` of a store that launches work on."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.events import Progress
from clops_sweep.store.launches import LaunchFile, UnderWay
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.helpers.stores import write_finished


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepared_root: Path) -> RunStore:
    (tmp_path / "space.py").write_text(
        "from clops_sweep import RunConfig, SearchSpace\nSPACE = SearchSpace('seeds', RunConfig(), seeds=range(2))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    return store


def said(*arguments: str) -> str:
    done = CliRunner().invoke(command, ["status", *arguments], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.output


def test_running_runs_of_all_launches(store: RunStore) -> None:
    now = time.time()
    LaunchFile(store).begin(())
    LaunchFile(store).write([UnderWay("a" * 24, "one, seed 0", Progress(2, "b", 6, 3, 20), now + 185)])
    LaunchFile(store).write([UnderWay("b" * 24, "two\x1b[2J, seed 0")])
    lines = said().splitlines()[1:]
    assert (
        sum(
            bool(re.fullmatch(r"  running one, seed 0: task 2/6, epoch 3/20, about 3 min 0\d s left", it))
            for it in lines
        )
        == 1
    )
    assert sum("two" in it and it.endswith(", seed 0: starting") and "\x1b" not in it for it in lines) == 1
    running = {it["name"]: it for it in json.loads(said("--json"))["running"]}
    assert running["one, seed 0"]["seconds_left"] == pytest.approx(185, abs=30)
    assert {running["one, seed 0"][name] for name in ("task", "tasks", "epoch", "epochs")} == {2, 6, 3, 20}
    assert running["two\x1b[2J, seed 0"]["seconds_left"] is None


@pytest.mark.nightly
def test_runs_that_continue_from_a_checkpoint_after_a_kill(store: RunStore, tmp_path: Path) -> None:
    Path("long.py").write_text(
        "from clops_sweep import RunConfig, SearchSpace\n"
        "SPACE = SearchSpace('long', RunConfig(epochs_per_task=5000, strategy='finetune'), seeds=3)\n"
    )
    words = ["-m", "clops_sweep", "long.py", "--no-ray", "--checkpoint-every", "1"]
    with Path("said.txt").open("w") as output:
        launch = subprocess.Popen([sys.executable, *words], stdout=output, stderr=output)
    folder = tmp_path / "results" / ".work" / "checkpoints"
    deadline = time.monotonic() + 90
    while not list(folder.glob("*.pt")):
        assert launch.poll() is None, Path("said.txt").read_text()
        assert time.monotonic() < deadline, Path("said.txt").read_text()
        time.sleep(0.05)
    launch.kill()
    launch.wait()
    (run_id,) = (path.stem for path in folder.glob("*.pt"))
    (folder / f"{'0' * 24}.pt").touch()  # of a run of another search space
    sentence = "1 pending run continues from its checkpoint"
    for files in (["long.py"], []):
        assert sentence in said(*files).splitlines()
        assert json.loads(said(*files, "--json"))["checkpointed"] == 1
    LaunchFile(store).begin(())
    LaunchFile(store).write([UnderWay(run_id, "long, seed 0", Progress(1, "b", 6, 3, 20))])
    assert sentence not in said("long.py"), "it is running"


LOADED = """
import sys
from clops_sweep.cli.commands import command

command(sys.argv[1:], standalone_mode=False)
print("loaded:", *sorted({"pandas", "torch", "optuna"} & set(sys.modules)))
"""


@pytest.mark.parametrize("name", ["status", "plan"])
def test_a_store_that_is_not_there_is_named(store: RunStore, name: str) -> None:
    """A moved store passed for an empty one."""
    absent = ": no such folder yet\n"
    sentence = f"results {Path('elsewhere').absolute()}{absent}"
    done = CliRunner().invoke(command, [name, "space.py", "--results", "elsewhere"], standalone_mode=False)
    assert sentence in done.output
    done = CliRunner().invoke(command, [name, "space.py"], standalone_mode=False)
    assert absent not in done.output


@pytest.mark.parametrize("name", ["plan", "status"])
def test_the_rows_of_finished_runs_are_read_without_pandas(
    store: RunStore, prepared_root: Path, finished_tables: Tables, name: str
) -> None:
    """`plan` reads the devices and seconds of finished runs; pandas takes longer to import than the rest."""
    config = RunConfig()
    run_id = config.run_id(str(PreparedData.found(prepared_root).data_hash(config.data_key)))
    write_finished(store, run_id, finished_tables(run_id, config))
    done = subprocess.run(
        [sys.executable, "-c", LOADED, name, "space.py"], check=True, capture_output=True, text=True, timeout=120
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "2 runs asked for, 1 finished, 1 pending, 0 failed"
    assert any("from 1 finished run" in line for line in lines)
    assert lines[-1] == "loaded:"


def test_minutes_of_compute_are_told_in_seconds(
    store: RunStore, prepared_root: Path, finished_tables: Tables, tmp_path: Path
) -> None:
    """A plan said 0.05 core-hours of runs that take three minutes."""
    config = RunConfig()
    run_id = config.run_id(str(PreparedData.found(prepared_root).data_hash(config.data_key)))
    write_finished(store, run_id, finished_tables(run_id, config))  # 2.5 s
    (tmp_path / "space.py").write_text((tmp_path / "space.py").read_text().replace("range(2)", "range(73)"))
    assert "about 180 core-seconds" in said("space.py")
    (tmp_path / "space.py").write_text((tmp_path / "space.py").read_text().replace("range(73)", "range(289)"))
    assert "about 0.2 core-hours" in said("space.py")
