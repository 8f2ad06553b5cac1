"""Sweeps whose driver or workers are killed at moments that nobody has chosen."""

from __future__ import annotations

import collections
import os
import random
import time
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from clops_sweep.store.run_store import RunStore
from tests.execution.conftest import Launch
from tests.helpers.launching import (
    ONE_WORKER,
    TABLES,
    Counted,
    assert_counted_like_fine_tuning,
    kill,
    runs_alone,
    wait_for,
)
from tests.helpers.preloaded import Preloaded

SEED = int(os.environ.get("CLOPS_TEST_SEED", "7"))
CLOCK = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "faketime" / "libfaketimeMT.so.1"
RUNS = 16


@pytest.fixture
def moments() -> random.Random:
    print(f"random moments of seed {SEED}: set CLOPS_TEST_SEED for others")
    return random.Random(SEED)


@pytest.mark.nightly
@pytest.mark.parametrize("clock", ["right", pytest.param("years behind", marks=pytest.mark.nightly)])
def test_a_driver_killed_again_and_again_loses_only_what_was_running(
    launch: Launch, attach: Launch, forked: Preloaded, tmp_path: Path, prepared_root: Path, moments: random.Random,
    clock: str,
) -> None:  # fmt: skip
    runs = 14
    counted = Counted(tmp_path, runs=runs, epochs=2)
    killed = []
    counted.gate.write_text(" ".join(map(str, range(runs - 2))))  # the last two wait: no driver ends by itself
    for start in (partial(launch, script=forked), attach):  # with a Ray that goes with it, and with one that stays
        sweep = start("space.py", "--no-report")
        sweep.read_until("runs to do")
        # Counted in the store: the worker of the driver that was killed before may still add to it.
        awaited = min(_recorded(tmp_path / "results") + moments.randint(0, 4), runs - 2)
        wait_for(lambda awaited=awaited: _recorded(tmp_path / "results") >= awaited, f"{awaited} runs")
        time.sleep(moments.uniform(0, 0.2))
        sweep.kill()  # and the next one is launched while Ray has not yet noticed
        killed.append(sweep)
        _whole(tmp_path / "results")
    counted.gate.unlink()
    command = ("space.py", "--no-report")
    # What is preloaded has the right clock.
    last = attach(*command) if clock == "right" else launch(*command, *ONE_WORKER, changes=_wrong_clock())
    assert last.wait() == 0
    assert f"{runs} runs asked for, {runs} finished, 0 pending, 0 failed" in last.output

    found = _whole(tmp_path / "results")
    assert sorted(found["runs"]["seed"]) == list(range(runs))
    # Of what a killed driver's worker began, the last run may have been cut short, and the next driver may take it up.
    begun: dict[tuple[str, int], int] = {}
    for one in counted.beginnings():
        begun[one.tag, one.pid] = one.seed
    in_flight = {begun[tag, pid] for tag, pid in begun if tag in {sweep.tag for sweep in killed}}
    assert len(in_flight) <= 2 + 1  # the workers of the killed drivers
    for task in range(6):
        times = collections.Counter(one.seed for one in counted.beginnings(task))
        assert set(times) == set(range(runs))
        assert {seed for seed, count in times.items() if count > 1} <= in_flight
    some = sorted(in_flight | {0, runs - 1})
    assert_counted_like_fine_tuning(found, runs_alone(counted.configs(some), prepared_root))
    assert list((tmp_path / "results" / ".work" / "checkpoints").glob("*.pt")) == []


def _recorded(results: Path) -> int:
    """How many runs are recorded."""
    return len(RunStore(results).statuses())


def _wrong_clock() -> dict[str, str]:
    """For processes whose clock is years behind."""
    if not CLOCK.exists():
        pytest.skip("libfaketime is not installed")
    return {"LD_PRELOAD": str(CLOCK), "FAKETIME": "-9y"}


def _whole(results: Path) -> dict[str, pd.DataFrame]:
    """The tables as pandas reads them: every finished run whole, and once."""
    finished = set(RunStore(results).statuses())
    if not list((results / "runs").glob("*.parquet")):  # nothing is written before ten seconds
        return {name: RunStore(results).read(name) for name in TABLES}
    found = {name: pd.read_parquet(results / name) for name in TABLES}
    assert set(found["runs"]["run_id"]) >= finished
    assert found["runs"]["run_id"].is_unique
    for name, keys in (
        ("r_matrix", ["run_id", "split", "trained_on", "evaluated_on"]),
        ("curves", ["run_id", "epoch", "task"]),
        ("instances", ["run_id", "task", "instance"]),
    ):
        assert set(found[name]["run_id"]) >= finished
        assert not found[name].duplicated(keys).any()
        assert len(set(found[name].groupby("run_id").size())) <= 1
    return found


@pytest.mark.nightly
def test_a_killed_worker_loses_the_run_that_it_was_in_and_not_its_job(
    attach: Launch, tmp_path: Path, prepared_root: Path
) -> None:
    counted = Counted(tmp_path, runs=RUNS)
    sweep = attach("space.py", "--no-report")
    sweep.read_until("[6/")  # five were cut as jobs of one, before it was known what a run takes
    closed = time.time_ns()
    counted.gate.touch()
    wait_for(lambda: [one for one in counted.beginnings(task=1) if one.moment > closed], "a run at the gate")
    lost = counted.beginnings(task=1)[-1]
    kill(lost.pid)
    counted.gate.unlink()
    assert sweep.wait() == 0
    begun = counted.beginnings(task=0)
    again = [seed for seed, times in collections.Counter(one.seed for one in begun).items() if times > 1]
    assert {one.seed for one in begun} == set(range(RUNS))
    assert len(begun) == RUNS + len(again)
    assert lost.seed in again
    step = 10 * 10**9  # rows of runs travel with their step, of about a second
    assert {one.seed for one in begun if one.pid == lost.pid and one.moment > lost.moment - step} >= set(again)
    done = [one.seed for one in counted.beginnings(task=5) if one.pid == lost.pid]
    assert len(done) >= 6
    found = {name: pd.read_parquet(tmp_path / "results" / name) for name in TABLES}
    assert sorted(found["runs"]["seed"]) == list(range(RUNS))
    some = sorted({lost.seed, done[-1], RUNS - 1})
    assert_counted_like_fine_tuning(found, runs_alone(counted.configs(some), prepared_root))


@pytest.mark.nightly
def test_a_dead_process_of_ray_is_said(launch: Launch, forked: Preloaded, tmp_path: Path) -> None:
    sweep = launch("space.py", "--no-report", *ONE_WORKER, script=forked)
    sweep.read_until("[1/")
    for number, command in sweep.processes().items():
        if "/raylet/raylet " in command:
            kill(number)
    sweep.read_until("the scheduler of the Ray cluster, at 127.0.0.1:")
    _whole(tmp_path / "results")
