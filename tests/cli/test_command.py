"""The command as a user meets it: what it counts, options, help, and exit statuses."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from clops_sweep import RunConfig, __version__
from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.store.run_store import RunStore
from tests.conftest import Command, Tables
from tests.helpers.stores import record_failure, write_finished

GOOD = """
from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="good", base=RunConfig(), axes={"storage_fraction": [0.1, 0.5], "mc_samples": [5, 10]}, seeds=range(3)
)
"""


def _id(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)[-24:]


@pytest.fixture
def space(tmp_path: Path) -> Path:
    (tmp_path / "space.py").write_text(GOOD)
    return tmp_path / "space.py"


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, in_process: Command, tmp_path: Path, prepared_root: Path) -> Command:
    """Like `clops_sweep`, but inside this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    monkeypatch.delenv("CLOPS_DATA_ROOT", raising=False)
    return in_process


# --- wrong input ------------------------------------------------------------------------------------------------------


def test_a_cluster_that_does_not_answer_is_refused(clops_sweep: Command, space: Path) -> None:
    with socket.socket() as free:  # bound and not listening: nobody else takes the port, and nobody answers
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        done = clops_sweep(space.name, "--address", address)
    assert done.returncode == 2
    assert done.stderr.startswith(f"clops-sweep: --address {address}: no Ray cluster answers there")
    assert done.stderr.count("\n") == 1


def test_plan_counts_what_is_asked_for(
    clops_sweep: Command, space: Path, tmp_path: Path, prepared_root: Path, finished_tables: Tables
) -> None:
    before = clops_sweep("plan", space.name)
    assert (before.returncode, before.stderr) == (0, "")
    lines = before.stdout.splitlines()
    assert lines[0] == "12 runs asked for, 0 finished, 12 pending, 0 failed"
    assert [line.partition(";")[0] for line in lines if line.startswith("device: ")] == ["device: cpu"]
    assert "no estimate for them: no run of their kind is finished" in lines
    assert not (tmp_path / "results").exists()

    content = data_hash("synthetic", prepared_root=prepared_root)
    store = RunStore(tmp_path / "results")
    done, failed = RunConfig(storage_fraction=0.1, mc_samples=5), RunConfig(storage_fraction=0.5, mc_samples=5)
    write_finished(store, done.run_id(content), finished_tables(done.run_id(content), done))
    record_failure(store, {failed.run_id(content): failed}, "a\nValueError: no", lambda _: content, {})
    for command in (["plan", space.name], [space.name, "--dry-run"]):
        after = clops_sweep(*command)
        assert after.returncode == 0
        lines = after.stdout.splitlines()
        assert lines[0] == "12 runs asked for, 1 finished, 10 pending, 1 failed"
        (cost,) = [line for line in lines if line.startswith("about ")]
        assert re.fullmatch(
            r"about \d+ core-seconds, \d+ (s|min) of wall-clock time on \d+ cores? "
            "without other load; from 1 finished run of the same kind",
            cost,
        ), cost
        assert "no estimate for 8 of them: no run of their kind is finished" in lines
    alone = clops_sweep(space.name, "--dry-run", "--no-ray").stdout
    ((seconds, clock),) = re.findall(r"about (\d+) core-seconds, (\d+) s of wall-clock time in one process", alone)
    assert seconds == clock, "one run after another"
    assert clops_sweep("status").stdout.splitlines() == [
        f"1 run finished, 1 failed in {tmp_path}/results",
        f"  failed {failed.run_id(content)}: ValueError: no",
        "print the output of a run with: clops-sweep logs RUN_ID",
    ]
    named = clops_sweep("status", space.name).stdout.splitlines()[-2]
    assert named == f"  failed {failed.run_id(content)}: ValueError: no  (storage_fraction 0.5, mc_samples 5, seed 0)"


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--seeds", "5"], 20),
        (["--limit", "7"], 7),
        (["--where", "storage_fraction == 0.5"], 6),
        (["--where", "storage_fraction == 0.5 and seed < 2"], 4),
        (["--set", "batch_size=8"], 12),
        (["--set", "task_order=[5,4,3,2,1,0]", "--seeds", "1"], 4),
    ],
    ids=_id,
)
def test_options_change_what_is_asked_for(command: Command, space: Path, options: list[str], count: int) -> None:
    done = command("plan", space.name, *options)
    assert done.stdout.startswith(f"{count} runs asked for, 0 finished, {count} pending")


def test_plan_loads_neither_torch_nor_ray(space: Path, environment: dict[str, str], tmp_path: Path) -> None:
    code = """
import json, sys
from clops_sweep.cli.command import main
try:
    main(["plan", "space.py"])
finally:
    print(json.dumps(sorted(set(sys.modules) & {"torch", "ray", "matplotlib"})))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_help_and_version(clops_sweep: Command) -> None:
    assert "\n  clops-sweep SPACE.py [options]   run all requested runs" in clops_sweep("--help").stdout
    options = clops_sweep("launch", "--help").stdout
    for name in ("--data-root", "--results", "--set", "--seeds", "--limit", "--where", "--address", "--cpus-per-trial"):
        assert name in options
    assert clops_sweep("--version").stdout == f"clops-sweep, version {__version__}\n"


def test_a_reader_that_goes_away_ends_the_command_quietly(
    console_script: str, environment: dict[str, str], tmp_path: Path
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(
            [console_script, "--help"], cwd=tmp_path, env=environment, stdout=pipe, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (0, b"")
