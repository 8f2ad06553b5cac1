"""Sweeps that are asked to stop."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path

import pandas as pd
import pytest
import torch

from clops_sweep.store.run_store import RunStore
from tests.execution.conftest import Launch
from tests.helpers.at_night import mostly_at_night
from tests.helpers.launching import (
    ONE_WORKER,
    TABLES,
    Counted,
    Tables,
    assert_counted_like_fine_tuning,
    assert_same,
    listeners,
    runs_alone,
)
from tests.helpers.preloaded import Preloaded

RUNS = 6


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1],
)
@pytest.mark.nightly
def test_an_interrupted_sweep_is_resumed_with_the_command_that_it_prints(
    launch: Launch, forked: Preloaded, attach: Launch, alone: Tables, tmp_path: Path, number: int
) -> None:
    """Slurm sends SIGUSR1 to every process of a job before its end, and `timeout` SIGTERM to the group."""
    interrupted = launch("space.py", "--no-report", *ONE_WORKER, script=forked)
    interrupted.read_until("[1/")
    interrupted.interrupt(number)
    assert interrupted.wait() == 130
    assert interrupted.errors == ""
    assert "stopping: running trials are being checkpointed (Ctrl-C again stops at once)\n" in interrupted.output
    last = interrupted.output.splitlines()[-1]
    assert last.startswith("interrupted; resume with: clops-sweep ")
    interrupted.wait_until_gone()
    finished = RunStore(tmp_path / "results").statuses()
    assert 1 <= len(finished) < RUNS
    how_far = f"{RUNS} runs asked for, {len(finished)} finished, {RUNS - len(finished)} pending, 0 failed\n"
    assert how_far in interrupted.output
    begun = len(list((tmp_path / "results" / ".work" / "checkpoints").glob("*.pt")))

    resumed = attach(*shlex.split(last.partition("resume with: clops-sweep ")[2]))
    assert resumed.wait() == 0
    assert f"{RUNS - len(finished)} runs to do; " in resumed.output
    assert resumed.output.count("\nresumed   ") == begun
    assert_same(tmp_path / "results", alone)
    assert list((tmp_path / "results" / ".work" / "checkpoints").glob("*")) == []


@pytest.mark.parametrize(
    "number", mostly_at_night([signal.SIGINT, signal.SIGTERM, signal.SIGUSR1], lambda number: number == signal.SIGINT)
)
def test_an_interrupt_before_the_first_trial_ends_at_once(launch: Launch, tmp_path: Path, number: int) -> None:
    sweep = launch()
    sweep.read_until("runs to do")  # and Ray is being started
    sweep.interrupt(number)
    assert sweep.wait() == 130
    assert sweep.errors == ""
    assert sweep.output.splitlines()[-2:] == [
        f"{RUNS} runs asked for, 0 finished, {RUNS} pending, 0 failed",
        "interrupted; resume with: clops-sweep space.py",
    ]
    sweep.wait_until_gone()
    assert RunStore(tmp_path / "results").statuses() == {}


@pytest.mark.nightly
def test_a_run_that_ends_while_the_sweep_is_stopped_is_recorded(
    launch: Launch, forked: Preloaded, tmp_path: Path
) -> None:
    counted = Counted(tmp_path, runs=2, held=5)  # in their last task
    counted.gate.touch()
    sweep = launch("space.py", "--no-report", *ONE_WORKER, script=forked)
    counted.wait_at_gate(workers=1)
    sweep.interrupt()
    sweep.read_until("stopping: ")
    counted.gate.unlink()
    assert sweep.wait() == 130
    assert "2 runs asked for, 1 finished, 1 pending, 0 failed\n" in sweep.output
    assert list(RunStore(tmp_path / "results").statuses().values()) == ["finished"]


@pytest.mark.nightly
def test_a_second_interrupt_ends_at_once_and_what_the_last_checkpoint_has_is_not_trained_again(
    launch: Launch, forked: Preloaded, attach: Launch, prepared_root: Path, tmp_path: Path
) -> None:
    counted = Counted(tmp_path, runs=2)
    counted.gate.touch()  # both workers are in an epoch that does not end
    command = ("space.py", "--no-report", "--checkpoint-every", str(counted.epochs))
    twice = launch(*command, script=forked)
    waiting = counted.wait_at_gate(workers=2)
    assert {one.pid for one in waiting} <= set(twice.processes())
    assert not [title for title in twice.processes().values() if "ray::IDLE" in title]  # nobody has a use for one
    started = {twice.process.pid, *twice.processes()}
    assert listeners(started) == {"127.0.0.1"}  # nobody but this machine reaches Ray meanwhile
    nobody_listens = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # these tests run under nohup
    twice.interrupt(signal.SIGINT if nobody_listens else signal.SIGHUP)  # the terminal is closed
    twice.read_until("stopping: running trials are being checkpointed (Ctrl-C again stops at once)")
    twice.process.send_signal(signal.SIGTERM)  # what batch systems and containers send is taken for an interrupt
    assert twice.wait() == 130
    assert twice.errors == ""
    assert twice.output.splitlines()[-3:] == [
        "2 runs asked for, 0 finished, 2 pending, 0 failed",
        "2 runs interrupted: continue from their checkpoints",
        f"interrupted; resume with: clops-sweep {' '.join(command)}",
    ]
    twice.wait_until_gone()
    checkpoints = (tmp_path / "results" / ".work" / "checkpoints").glob("*.pt")
    assert [torch.load(path, weights_only=True)["task"] for path in checkpoints] == [1, 1]

    counted.gate.unlink()
    resumed = attach(*command)
    assert resumed.wait() == 0
    lines = sorted(line for line in resumed.output.splitlines() if line.startswith("resumed"))
    at = f"at task 2/6, epoch 1/{counted.epochs}, from its checkpoint"
    assert lines == [f"resumed   counted, seed {seed}: {at}" for seed in range(2)]
    assert sorted(one.seed for one in counted.beginnings(task=0)) == [0, 1]
    assert sorted(one.seed for one in counted.beginnings(task=1)) == [0, 0, 1, 1]
    found = {name: pd.read_parquet(tmp_path / "results" / name) for name in TABLES}
    assert_counted_like_fine_tuning(found, runs_alone(counted.configs(range(2)), prepared_root))
