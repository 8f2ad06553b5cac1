"""Runs that fail: rows that say why, taken up again when asked for."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from ray._common.utils import get_system_memory
from ray._private.utils import get_used_memory

from clops_sweep import RunConfig
from clops_sweep.data.preparing.prepare import open_frames
from tests.execution.conftest import Launch
from tests.helpers.launching import (
    ALL_METRICS,
    ATTACHED,
    ONE_WORKER,
    TABLES,
    Tables,
    assert_counted_like_fine_tuning,
    assert_equal,
    runs_alone,
)
from tests.helpers.preloaded import Preloaded

BREAKABLE = """
import resource
from pathlib import Path
from clops_sweep import RunConfig, SearchSpace, acquisition_function

FLAG = Path({flag!r})

@acquisition_function("breakable")
def breakable(context, rows):
    from clops_sweep.learning.replay.acquisition import random
    if FLAG.exists():
        raise RuntimeError("the flag is up")
    return random(context, rows)

@acquisition_function("greedy")
def greedy(context, rows):
    import numpy as np
    from clops_sweep.learning.replay.acquisition import random
    if FLAG.exists():  # the process may not have much more memory than it has, and wants it
        before = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**28, before[1]))
        try:
            np.ones(2**29, np.uint8)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
    return random(context, rows)

@acquisition_function("crowded")
def crowded(context, rows):
    import torch
    from clops_sweep.learning.replay.acquisition import random
    seen = FLAG.with_name("seen")
    if FLAG.exists() and not seen.exists():  # what PyTorch raises when somebody else has the GPU's memory for a moment
        seen.touch()
        raise torch.OutOfMemoryError("CUDA out of memory")
    return random(context, rows)

SPACE = SearchSpace(
    name="breakable",
    base=RunConfig(epochs_per_task=2, mc_samples=3),
    axes={{"variant": {{
        "good": {{"storage_fraction": 0.1}},
        "bad": {{"acquisition": "breakable"}},
        "greedy": {{"acquisition": "greedy"}},
        "crowded": {{"acquisition": "crowded"}},
    }}}},
    seeds=range(2),
)
"""


@pytest.mark.nightly
def test_failed_runs_are_taken_up_again(
    launch: Launch, attach: Launch, commands: Preloaded, alone: Tables, tmp_path: Path, prepared_root: Path
) -> None:
    results, flag = tmp_path / "results", tmp_path / "flag"
    flag.touch()
    (tmp_path / "breakable.py").write_text(BREAKABLE.format(flag=str(flag)))
    command = ("breakable.py", "--no-report")
    good = RunConfig(epochs_per_task=2, mc_samples=3, storage_fraction=0.1)
    key = good.data_key
    frames = open_frames(key.dataset, prepared_root=prepared_root, **key.view)
    recorded = {good.replace(seed=seed).run_id(frames.data_hash) for seed in (0, 1)}

    failing = attach(*command, "--max-retries", "1")
    assert failing.wait() == 1
    assert "8 runs asked for, 4 finished, 0 pending, 4 failed" in failing.output
    (again,) = re.findall("^run the failed runs again with: (.*)$", failing.output, re.MULTILINE)
    assert again == shlex.join(
        ["clops-sweep", *command, "--max-retries", "1", *ATTACHED, *ONE_WORKER, "--retry", "failed"]
    )
    runs = pd.read_parquet(results / "runs").set_index("run_id")
    failed = runs[runs["status"] == "failed"]
    assert recorded <= set(runs.index)
    assert sorted(runs.loc[runs["status"] == "finished", "acquisition"]) == [
        "bald_mcd",
        "bald_mcd",
        "crowded",
        "crowded",
    ]
    assert sorted(failed["acquisition"]) == ["breakable", "breakable", "greedy", "greedy"]
    assert len({*runs["prepared_hash"]}) == 1, "failed runs record the edition of their data, too"
    errors = failed.groupby("acquisition")["error"]
    assert errors.get_group("breakable").str.contains("RuntimeError: the flag is up").all()
    assert errors.get_group("greedy").str.contains("MemoryError: Unable to allocate").all()

    status = launch("status", script=commands)
    assert status.wait() == 0
    assert f"4 runs finished, 4 failed in {results}" in status.output
    assert (
        f"failed {failed.index[failed['acquisition'] == 'breakable'][0]}: RuntimeError: the flag is up" in status.output
    )

    flag.unlink()
    retried = attach(*command, "--retry", "failed")
    assert retried.wait() == 0
    assert "4 runs to do; " in retried.output
    runs = pd.read_parquet(results / "runs")
    assert runs["status"].tolist() == ["finished"] * 8
    assert np.isfinite(runs[ALL_METRICS].to_numpy()).all()
    for name, frame in alone.items():
        found = pd.read_parquet(results / name)
        assert_equal(name, _of(found, recorded), _of(frame, recorded))


DELICATE = """
from clops_sweep import RunConfig, SearchSpace, strategy
from clops_sweep.learning.strategies.finetune import FineTuning

@strategy("delicate")
class Delicate(FineTuning):
    def begin_task(self, task):
        seed = self.training.seed
        if seed == 2 and task == 1:  # what a learning rate that is too high comes to
            self.training.learner.parameters.views["linear2.bias"].fill_(float("nan"))
        if seed == 4 and task == 2:
            raise RuntimeError("not with this seed")

SPACE = SearchSpace("delicate", RunConfig(strategy="delicate", epochs_per_task=1), seeds=range(6))
"""


@pytest.mark.nightly
def test_runs_that_fail_do_not_take_others_with_them(attach: Launch, tmp_path: Path, prepared_root: Path) -> None:
    (tmp_path / "delicate.py").write_text(DELICATE)
    sweep = attach("delicate.py", "--max-retries", "0", "--checkpoint-every", "1", "--no-report")
    assert sweep.wait() == 1
    lines = [line for line in sweep.output.splitlines() if not line.startswith("device: ")]
    connecting = lines.index("connecting to the Ray cluster at auto")
    assert lines[connecting + 1] == "starting workers (about 4 s)"
    failures = [line.partition("] ")[2] for line in lines if "] failed " in line]
    assert len(failures) == 2
    assert "failed    delicate, seed 4: RuntimeError: not with this seed  (clops-sweep status shows more)" in failures
    assert "6 runs asked for, 4 finished, 0 pending, 2 failed" in lines
    results = tmp_path / "results"
    found = {name: pd.read_parquet(results / name) for name in TABLES}
    failed = found["runs"][found["runs"]["status"] == "failed"].set_index("seed")["error"]
    assert set(failed.index) == {2, 4}
    assert "Diverged: the network has diverged in epoch 1 of task 2: a parameter is not finite" in failed[2]
    assert "RuntimeError: not with this seed" in failed[4]
    whole = [RunConfig(strategy="finetune", epochs_per_task=1, seed=seed) for seed in (0, 1, 3, 5)]
    assert_counted_like_fine_tuning(found, runs_alone(whole, prepared_root))
    kept = {path.stem for path in (results / ".work" / "checkpoints").iterdir()}  # for --retry failed
    assert kept == set(found["runs"].set_index("seed")["run_id"][[2, 4]])


ENDED = """
import os
import signal
from pathlib import Path
from clops_sweep import RunConfig, SearchSpace, strategy
from clops_sweep.learning.strategies.finetune import FineTuning

GROUP = {group!r}

@strategy("ended")
class Ended(FineTuning):
    def begin_task(self, task):
        if self.training.seed != 1:
            return
        if not GROUP:
            os.kill(os.getpid(), signal.SIGKILL)
        Path(GROUP, "cgroup.procs").write_text(str(os.getpid()))
        taken = [bytes(2**20) + b"x" for _ in range(2**12)]  # far beyond the limit of the group

SPACE = SearchSpace("ended", RunConfig(strategy="ended", epochs_per_task=1), seeds=range(3))
"""


@pytest.fixture
def small_group() -> Iterator[Path]:
    """Yield a control group of 64 MB, in which the kernel kills what needs more."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(root, f"clops-sweep-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / limit).write_text(str(2**26))
        except OSError:
            group.rmdir()
            continue
        yield group
        group.rmdir()
        return
    pytest.skip("needs the right to make control groups with a limit of memory")


def _ended(attach: Launch, tmp_path: Path, group: str) -> None:
    (tmp_path / "ended.py").write_text(ENDED.format(group=group))
    sweep = attach("ended.py", "--max-retries", "0", "--no-report")
    assert sweep.wait() == 1
    assert "3 runs asked for, 2 finished, 0 pending, 1 failed" in sweep.output
    says = "WorkerKilled: the worker's process ended without an error: killed for want of memory, or crashed"
    helps = "fewer run at a time with more --cpus-per-trial"
    (failed,) = [line for line in sweep.output.splitlines() if "] failed " in line]
    assert says in failed
    assert helps in failed
    runs = pd.read_parquet(tmp_path / "results" / "runs").set_index("seed")
    assert runs["status"].to_dict() == {0: "finished", 1: "failed", 2: "finished"}
    assert runs.loc[1, "reason"].endswith(helps)


@pytest.mark.nightly
def test_a_worker_that_is_killed_is_a_failed_run_that_says_what_helps(attach: Launch, tmp_path: Path) -> None:
    _ended(attach, tmp_path, "")


@pytest.mark.nightly
def test_a_worker_that_the_kernel_kills_for_want_of_memory_is_a_failed_run_that_says_what_helps(
    attach: Launch, tmp_path: Path, small_group: Path
) -> None:
    _ended(attach, tmp_path, str(small_group))
    assert not (small_group / "cgroup.procs").read_text()


HUNGRY = """
import time
from clops_sweep import RunConfig, SearchSpace, acquisition_function

@acquisition_function("hungry")
def hungry(context, rows):
    import numpy as np
    from clops_sweep.learning.replay.acquisition import random
    taken = []
    while True:  # as much as it gets: memory that is taken costs time
        taken.append(np.ones({size} // 10 if len(taken) < 10 else 0, np.uint8))
        time.sleep(0.25)  # Ray looks as often
    return random(context, rows)

SPACE = SearchSpace(name="hungry", base=RunConfig(epochs_per_task=1, acquisition="hungry"), seeds=range(1))
"""
GIGABYTE = 10**9


@pytest.mark.nightly
def test_a_worker_that_ray_ends_for_want_of_memory_is_a_failed_run_and_not_the_end_of_the_sweep(
    launch: Launch, forked: Preloaded, commands: Preloaded, tmp_path: Path
) -> None:
    used, there = get_used_memory(), get_system_memory()
    if there - used < 6 * GIGABYTE:
        pytest.skip("may take three gigabytes of memory, and there are not many more")
    (tmp_path / "hungry.py").write_text(HUNGRY.format(size=3 * GIGABYTE))
    full = {"RAY_memory_usage_threshold": str((used + 1.5 * GIGABYTE) / there)}
    ended = launch("hungry.py", "--no-report", "--max-retries", "0", *ONE_WORKER, changes=full, script=forked)
    assert ended.wait() == 1
    assert "1 run asked for, 0 finished, 0 pending, 1 failed" in ended.output
    status = launch("status", script=commands)
    assert status.wait() == 0
    assert ": the machine ran out of memory and Ray ended the worker; fewer run at a time" in status.output


def _of(frame: pd.DataFrame, run_ids: set[str]) -> pd.DataFrame:
    return frame[frame["run_id"].isin(run_ids)].reset_index(drop=True)
