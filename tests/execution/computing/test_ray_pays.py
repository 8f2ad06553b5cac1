"""Whether a launch starts Ray, and that results do not depend on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clops_sweep import RunConfig
from clops_sweep.execution.computing.ray_pays import SECONDS_TO_START, Rest, why_ray
from clops_sweep.execution.computing.workers import RayWorkers
from clops_sweep.execution.jobs import Job, LeftOut, Resources
from clops_sweep.experiment.plugins.registry import REGISTRIES, STRATEGIES
from clops_sweep.planning.costs import Costs, kind_of
from tests.execution.conftest import Launch
from tests.helpers.launching import Tables, assert_same
from tests.helpers.preloaded import Preloaded

SHORT = RunConfig(strategy="finetune")
LONG = RunConfig(strategy="clops")

SWITCHING = """
import sys

from clops_sweep.execution.computing import ray_pays
from clops_sweep.execution.worker import job_runner

ray_pays.SECONDS_TO_START = ray_pays.SECONDS_TO_GAIN = ray_pays.SHARE_TO_GAIN = 0.0
job_runner.SECONDS_PER_STEP = 0.0  # Ray takes over after the first epoch

from clops_sweep.cli.command import main

sys.argv[0] = "clops-sweep"
main()
"""


WITHOUT_MEMORY = SWITCHING.replace(
    "from clops_sweep.cli.command import main",
    "from clops_sweep.execution.cluster import start_check\n"
    "start_check._ROOM_FOR_OBJECTS = -(2**40)  # Ray refuses to start\n"
    "from clops_sweep.cli.command import main",
)


def rest(short: int, long: int, places: int, seconds: float = 0.0) -> Rest:
    """The rest of a launch; `seconds` of a short run are known, unless 0."""
    costs = Costs()
    if seconds:
        costs.add(kind_of(SHORT), seconds)
    return Rest([SHORT] * short + [LONG] * long, costs, places)


def test_ray_pays_if_what_its_workers_save_takes_longer_than_its_start() -> None:
    assert not rest(10, 0, 2, seconds=1).ray_pays()
    assert rest(100, 0, 2, seconds=1).ray_pays()
    assert not rest(100, 0, 1, seconds=1).ray_pays()  # a single worker is not faster
    assert not rest(0, 1, 16, seconds=1000).ray_pays()  # nor are many for a single run
    here, with_ray = rest(100, 0, 4, seconds=1).seconds()
    assert here == 100
    assert with_ray == SECONDS_TO_START + 25


def test_ray_is_not_started_for_a_small_gain() -> None:
    """Of 32 s, Ray would save 4; of 1,060 s, less than a tenth."""
    few = rest(32, 0, 2, seconds=1)
    assert few.seconds() == (32, SECONDS_TO_START + 16)
    assert not few.ray_pays()
    assert few.in_words().startswith("workers: this process, which computes 32 runs in about 32 s")
    assert rest(36, 0, 2, seconds=1).ray_pays()
    costs = Costs()
    costs.add(kind_of(SHORT), 1)
    costs.add(kind_of(LONG), 1000)
    assert Rest([LONG, *[SHORT] * 60], costs, 2).seconds() == (1060, SECONDS_TO_START + 1000)
    assert not Rest([LONG, *[SHORT] * 60], costs, 2).ray_pays()


def test_runs_of_a_kind_that_has_not_finished_take_the_mean_and_at_least_as_long_as_the_running_one() -> None:
    unknown = rest(0, 20, 2)
    assert not unknown.known
    assert not unknown.ray_pays()
    running = Job("0" * 64, LONG)
    assert not unknown.ray_pays(running, so_far=0.5)
    assert unknown.ray_pays(running, so_far=5.0)
    assert rest(1, 2, 2, seconds=3).seconds()[0] == 9


def test_ended_runs_are_left_out_and_count_for_the_others() -> None:
    left = rest(0, 20, 2)
    job = Job("0" * 64, LONG)
    left.ended(job, 4.0)
    assert left.seconds()[0] == 19 * 4
    left.left_out(LeftOut(None, LONG))  # another run was found finished
    assert left.seconds()[0] == 18 * 4
    assert left.ray_pays()
    assert "18 runs in about" in left.in_words()


def test_a_run_that_pauses_is_not_over() -> None:
    left = rest(0, 4, 8)
    jobs = [Job(str(number), LONG, until=1) for number in range(4)]
    for job in jobs:
        left.paused(job, 30.0, share=0.25)
    assert left.known
    assert left.seconds()[0] == 4 * 90
    assert left.ray_pays()
    left.paused(jobs[0], 30.0, share=0.5)
    assert left.seconds()[0] == 3 * 90 + 60
    left.left_out(LeftOut(jobs[1].run_id, LONG))  # its trial is pruned
    assert left.seconds()[0] == 2 * 90 + 60
    left.ended(jobs[0], 100.0)
    assert left.seconds()[0] == 2 * 160 * 0.75
    left.ended(jobs[2], 500.0, whole=160.0)  # its checkpoint could not be read
    assert left.seconds()[0] == 160 * 0.75


def test_a_trial_whose_parameters_change_the_kind_counts_for_its_search() -> None:
    left = rest(0, 3, 2)
    left.ended(Job("0" * 64, SHORT), 4.0)
    assert left.seconds()[0] == 2 * 4


def test_on_a_busy_machine_ray_starts_later() -> None:
    left = rest(40, 0, 2, seconds=1)
    assert left.ray_pays()
    left.computed(wall=3.0, cpu=1.0)
    assert not left.ray_pays()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, None),
        ({"workers": "ray"}, "as requested"),
        ({"address": "auto"}, "cluster"),
        ({"gpus_per_trial": 0.5}, "GPUs"),
        ({"epoch_timeout": 3}, "--epoch-timeout"),
        ({"nice": 3}, "--nice"),
        ({"observe": ["tensorboard"]}, "observers"),
    ],
)
def test_some_launches_need_ray(given: dict[str, Any], reason: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if "observe" in given:
        pytest.importorskip("tensorboard")
    for registry in REGISTRIES.values():
        monkeypatch.setattr(type(registry), "added", {})
    found = why_ray(Resources(**given), [RunConfig()])
    assert found is None if reason is None else reason in str(found)


def test_the_line_on_workers_says_why_ray_computes_a_custom_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(STRATEGIES), "added", {"er": object()})
    why = why_ray(Resources(), [RunConfig(strategy="finetune"), RunConfig(strategy="er")])
    assert why is not None
    assert str(RayWorkers(why)).startswith("workers: Ray, because ")
    assert "'er' is not built in, and a crash in its code would end this process; --no-ray computes here" in why


def test_a_custom_method_that_no_run_uses_does_not_need_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(STRATEGIES), "added", {"er": object()})
    assert why_ray(Resources(), [RunConfig(strategy="finetune"), RunConfig(strategy="ewc")]) is None


STARTING = "starting Ray (about 8 s)"


def test_a_launch_of_short_runs_does_not_start_ray_and_says_so(
    launch: Launch, commands: Preloaded, alone: Tables, tmp_path: Path
) -> None:
    sweep = launch("space.py", "--no-report", script=commands)
    assert (sweep.wait(), sweep.errors) == (0, "")
    assert "workers: this process computes the first run" in sweep.output
    assert "workers: this process, which computes 5 runs in about" in sweep.output
    assert STARTING not in sweep.output
    assert_same(tmp_path / "results", alone)


@pytest.mark.nightly
def test_ray_takes_over_with_the_same_numbers(launch: Launch, forked: Preloaded, alone: Tables, tmp_path: Path) -> None:
    sweep = launch("space.py", "--no-report", "--checkpoint-every", "1", script=forked, program=SWITCHING)
    assert (sweep.wait(), sweep.errors) == (0, "")
    assert STARTING in sweep.output.splitlines()
    assert "workers: Ray, which computes 6 runs" in sweep.output
    assert "6 runs asked for, 6 finished" in sweep.output
    assert_same(tmp_path / "results", alone)


@pytest.mark.nightly
def test_a_launch_stops_if_ray_cannot_take_over_and_the_same_one_continues(launch: Launch, forked: Preloaded) -> None:
    sweep = launch("space.py", "--no-report", script=forked, program=WITHOUT_MEMORY)
    assert sweep.wait() == 1
    (stopped,) = sweep.errors.splitlines()
    assert stopped.startswith("clops-sweep: stopped: Ray: ")
    assert "--no-ray computes without Ray; once this is fixed, resume with: " in sweep.errors
    again = launch("space.py", "--no-report", "--no-ray", script=forked)
    assert again.wait() == 0
    assert "6 runs asked for, 6 finished" in again.output
