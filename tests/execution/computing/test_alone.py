"""Sweeps without Ray: one process, or several on one store with a shard each."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pandas as pd
import pytest

from clops_sweep.experiment.spaces.selection import all_requests
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.store.run_logs import epoch_scores
from clops_sweep.store.run_store import RunStore
from tests.execution.conftest import Launch
from tests.helpers.launching import Tables, assert_same, runs_alone, wait_for
from tests.helpers.preloaded import Preloaded

RUNS = 6
SHARDS = 3

SLOW = """
import time
from pathlib import Path

from clops_sweep import RunConfig, SearchSpace, strategy
from clops_sweep.learning.strategies.finetune import FineTuning

FOLDER = Path({folder!r})


@strategy("slow")
class Slow(FineTuning):
    def begin_task(self, task):
        print("at task", task)
        if task == 1:
            (FOLDER / "began").touch()
        end = time.monotonic() + {seconds}
        while task and time.monotonic() < end and not (FOLDER / "fast").exists():
            time.sleep(0.01)


@strategy("raising")
class Broken(FineTuning):
    def begin_task(self, task):
        raise RuntimeError("broken on purpose")


SPACE = SearchSpace("slow", RunConfig(epochs_per_task=2), {{"strategy": ["raising", "slow"]}}, seeds=[0])
"""


@pytest.fixture
def alone_in(launch: Launch, commands: Preloaded) -> Launch:
    """Launches a command in which neither Ray nor Tune is imported."""
    return lambda *arguments, **options: launch(*arguments, script=commands, **options)


@pytest.mark.nightly
def test_shards_in_several_processes_give_what_one_sweep_gives(alone_in: Launch, alone: Tables, tmp_path: Path) -> None:
    shards = [("space.py", "--no-ray", "--no-report", "--shard", f"{i}/{SHARDS}") for i in range(1, SHARDS + 1)]
    sweeps = [alone_in(*arguments) for arguments in shards]
    killed = sweeps[0]
    killed.read_until("runs to do")
    wait_for(lambda: RunStore(tmp_path / "results").statuses(), "a finished run")
    killed.process.kill()
    assert killed.wait() in (0, -signal.SIGKILL)  # it may have ended by then
    sweeps.append(alone_in(*shards[0]))
    assert [sweep.wait() for sweep in sweeps[1:]] == [0] * SHARDS
    assert_same(tmp_path / "results", alone)

    asked = [int(re.findall(r"(\d+) runs? asked for", sweep.output)[-1]) for sweep in sweeps[1:]]
    assert sum(asked) == RUNS
    ended = [name for sweep in sweeps for name in re.findall(r"^\[.*\] finished  (.*):", sweep.output, re.MULTILINE)]
    assert len(set(ended)) == RUNS
    assert len(ended) - RUNS <= RUNS // SHARDS  # only what the killed one had not written yet
    assert not list((tmp_path / "results" / ".work" / "checkpoints").glob("*"))


def test_a_launch_of_runs_that_another_one_computes_is_refused_until_that_is_killed(
    alone_in: Launch, tmp_path: Path
) -> None:
    (tmp_path / "slow.py").write_text(SLOW.format(folder=str(tmp_path), seconds=600))
    command = ("slow.py", "--no-ray", "--no-report", "--where", "strategy == 'slow'")
    first = alone_in(*command)
    wait_for((tmp_path / "began").exists, "the second task")
    second = alone_in(*command)
    assert second.wait() == 2
    assert second.errors.count("\n") == 1
    assert f"another launch (process {first.process.pid} on " in second.errors
    assert "is computing 1 run of these; wait until it has ended, or give each launch its --shard" in second.errors
    first.process.kill()
    assert first.wait() == -signal.SIGKILL
    (tmp_path / "fast").touch()
    third = alone_in(*command)
    assert third.wait() == 0
    assert "1 run asked for, 1 finished" in third.output
    for file in (tmp_path / "results" / "curves").iterdir():  # a file beside the table of runs is lost
        file.unlink()
    fourth = alone_in(*command)
    assert fourth.wait() == 0
    assert "1 run asked for, 1 finished" in fourth.output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_group_ends_a_sweep_as_ctrl_c_does(alone_in: Launch, tmp_path: Path, number: int) -> None:
    """`timeout` sends SIGTERM to the group, and a closed terminal SIGHUP."""
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("these tests run under nohup")
    (tmp_path / "slow.py").write_text(SLOW.format(folder=str(tmp_path), seconds=0.5))
    command = ("slow.py", "--no-ray", "--no-report")
    sweep = alone_in(*command)
    wait_for((tmp_path / "began").exists, "the second task")
    sweep.interrupt(number)
    assert (sweep.wait(), sweep.errors) == (130, "")
    *_, counted, interrupted, resume = sweep.output.splitlines()
    assert counted == "2 runs asked for, 0 finished, 1 pending, 1 failed"
    assert interrupted.startswith("1 run interrupted: ")
    assert resume == f"interrupted; resume with: clops-sweep {' '.join(command)}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_stopped_sweep_goes_on_from_its_checkpoint(
    alone_in: Launch, tmp_path: Path, prepared_root: Path, number: int
) -> None:
    (tmp_path / "slow.py").write_text(SLOW.format(folder=str(tmp_path), seconds=0.5))
    command = ("slow.py", "--no-ray", "--no-report", "--stop-status", "75", "--checkpoint-every", "1")
    sweep = alone_in(*command)
    wait_for((tmp_path / "began").exists, "the second task")
    sweep.process.send_signal(number)
    assert sweep.wait() == 75
    assert sweep.errors == ""
    assert "\nstopping: running trials are being checkpointed" in sweep.output
    assert "\n1 run interrupted: continues from its checkpoint\n" in sweep.output
    (tmp_path / "fast").touch()
    again = alone_in(*command)
    assert again.wait() == 1  # one run has failed
    assert "\nresumed   slow, seed 0: at task " in again.output
    assert "2 runs asked for, 1 finished, 0 pending, 1 failed" in again.output

    configs = [request.config for request in all_requests(load_spaces(tmp_path / "slow.py"))]
    expected = runs_alone([it for it in configs if it.strategy == "slow"], prepared_root)
    runs = pd.read_parquet(tmp_path / "results" / "runs").set_index("strategy")
    for name in ("auc", "bwt", "test_auc"):
        assert runs.loc["slow", name] == expected["runs"][name].item()
    assert runs.loc["raising", "error"].rstrip().endswith("RuntimeError: broken on purpose")
    logs = tmp_path / "results" / ".work" / "logs"
    printed = "".join(log.read_text() for log in logs.glob("*.log"))
    assert f"[run {runs.loc['slow', 'run_id'][:12]}] at task 5\n" in printed
    logged = epoch_scores(runs.loc["slow", "run_id"], logs)
    assert logged
    curves = pd.read_parquet(tmp_path / "results" / "curves").set_index(["run_id", "epoch", "task"])["auc"]
    for after in logged:
        stored = curves.loc[runs.loc["slow", "run_id"], after.progress.step]
        assert dict(after.values) == stored[: after.progress.task].to_dict()
