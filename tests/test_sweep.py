"""Whole sweeps through the installed command: real Ray, real processes, real files."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.prepare import open_frames
from clops_sweep.space import all_requests, load_spaces
from clops_sweep.store import RunStore
from clops_sweep.tables import METRICS, SCHEMAS, config_row

SPACE = """
from clops_sweep import RunConfig, SearchSpace

BASE = RunConfig(epochs_per_task=2, mc_samples=3)
SPACE = [
    SearchSpace(name="replay", base=BASE, axes={"storage_fraction": [0.1, 0.5]}, seeds=range(2)),
    SearchSpace(name="fine-tuning", base=BASE.replace(strategy="finetune"), seeds=range(2)),
]
"""
RUNS = 6
pytestmark = pytest.mark.timeout(600)  # a busy machine may take a minute to start Ray
TABLES = ("runs", "r_matrix", "curves", "instances")
ALL_METRICS = [prefix + metric for prefix in ("", "test_") for metric in METRICS]
COMPUTED = ["run_id", "status", "seed", "left_out", *ALL_METRICS]

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Tables = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def alone(prepared_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """What every run of the space gives alone, in Python, without Ray and without a store."""
    path = tmp_path_factory.mktemp("alone") / "space.py"
    path.write_text(SPACE)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for request in all_requests(load_spaces(path)):
        dataset, split_seed, normalize = request.config.data_key
        frames = open_frames(dataset, prepared_root=prepared_root, split_seed=split_seed, normalize=normalize)
        for name, frame in vars(ContinualRun(request.config, frames).run()).items():
            parts[name].append(frame)
    return {name: _sorted(name, pd.concat(frames)) for name, frames in parts.items()}


def _sorted(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """What was computed, by run; rows of a run in their own order."""
    columns = COMPUTED if name == "runs" else SCHEMAS[name].names
    frame = frame.sort_values("run_id", kind="stable", ignore_index=True)[columns]
    for column in columns:  # pandas does not compare lists in cells
        if pa.types.is_list(SCHEMAS[name].field(column).type):
            frame[column] = frame[column].map(lambda values: None if values is None else tuple(values))
    return frame


def _assert_same(results: Path, expected: Tables) -> None:
    for name, frame in expected.items():
        _assert_equal(name, pd.read_parquet(results / name), frame)


def _assert_equal(name: str, found: pd.DataFrame, expected: pd.DataFrame) -> None:
    """Bit for bit."""
    pd.testing.assert_frame_equal(_sorted(name, found), expected, check_exact=True, check_dtype=False)


class Sweep:
    """A launch of the command as a process of its own, with all that it starts."""

    def __init__(self, script: str, folder: Path, environment: dict[str, str], *arguments: str) -> None:
        self.tag = f"clops-sweep-test-{uuid.uuid4().hex}"
        self.folder = folder
        self.process = subprocess.Popen(
            [script, *arguments],
            cwd=folder,
            env=environment | {"CLOPS_TEST_TAG": self.tag, "RAY_OVERRIDE_RESOURCES": '{"CPU": 2}'},  # two workers
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a group of its own, as a shell makes one for what it starts
        )
        self.output = self.errors = ""
        self.returncode: int | None = None

    def read_until(self, text: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line
            if text in line:
                return
        raise AssertionError(f"{text!r} was not printed: {self.output}{self._errors()}")

    def wait(self) -> int:
        """Waits for the end; afterwards nothing that it has started may be left."""
        output, self.errors = self.process.communicate(timeout=280)
        self.output += output
        self.returncode = self.process.returncode
        return self.returncode

    def _errors(self) -> str:
        return self.process.stderr.read() if self.process.stderr and self.process.poll() is not None else ""

    def processes(self) -> dict[int, str]:
        """The processes that this launch has started and that are there now, by id."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if self.tag.encode() in (entry / "environ").read_bytes():
                        found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:  # it has ended meanwhile
                    continue
        return found

    def wait_until_gone(self, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while left := self.processes():
            assert time.monotonic() < end, f"still there: {left}"
            time.sleep(0.05)


Launch = Callable[..., Sweep]


@pytest.fixture
def launch(console_script: str, environment: dict[str, str], tmp_path: Path) -> Iterator[Launch]:
    """Starts sweeps over the space of this file; whatever is left of them at the end of the test is killed."""
    (tmp_path / "space.py").write_text(SPACE)
    started: list[Sweep] = []

    def start(*arguments: str, folder: Path = tmp_path) -> Sweep:
        started.append(Sweep(console_script, folder, environment, *(arguments or ("space.py",))))
        return started[-1]

    yield start
    for sweep in started:
        for process in sweep.processes():
            os.kill(process, signal.SIGKILL)
        sweep.process.communicate()


# --- a sweep that nothing disturbs ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(console_script: str, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """A launch of the whole space that has ended by itself."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "space.py").write_text(SPACE)
    (folder / "clops_sweep").mkdir()  # as in a checkout that the installed package was not made from
    (folder / "clops_sweep" / "__init__.py").write_text("raise RuntimeError('a worker has imported another package')")
    sweep = Sweep(console_script, folder, environment, "space.py")
    sweep.wait()
    return sweep


def test_a_sweep_says_what_it_does_and_where_the_results_are(finished: Sweep) -> None:
    lines = finished.output.splitlines()
    assert (finished.returncode, finished.errors) == (0, "")
    assert lines[0].startswith(f"{RUNS} runs to do; Ray's own output goes to {finished.folder}/results/.work/logs/")
    assert Path(lines[0].partition("goes to ")[2]).is_file()
    assert [line.split("]")[0] for line in lines[1 : RUNS + 1]] == [f"[{n}/{RUNS}" for n in range(1, RUNS + 1)]
    assert lines[RUNS + 1 :] == [
        "6 runs asked for, 6 finished, 0 pending, 0 failed",
        f"results: {finished.folder}/results",
        f"report: {finished.folder}/results/report/space/index.html",
    ]
    assert (finished.folder / "results" / "report" / "space" / "index.html").is_file()


def test_a_sweep_gives_what_each_run_gives_alone(finished: Sweep, alone: Tables) -> None:
    _assert_same(finished.folder / "results", alone)


def test_a_sweep_leaves_no_process_and_no_files_but_the_log(finished: Sweep) -> None:
    finished.wait_until_gone()
    work = finished.folder / "results" / ".work"
    assert [path.parent.name for path in work.rglob("*") if path.is_file()] == ["logs"]
    assert list((finished.folder / "results" / ".work" / "checkpoints").glob("*")) == []


def test_pandas_reads_finite_metrics_and_where_they_come_from(finished: Sweep) -> None:
    runs = pd.read_parquet(finished.folder / "results" / "runs")
    assert len(runs) == RUNS
    assert np.isfinite(runs[ALL_METRICS].to_numpy()).all()
    assert runs["auc"].between(0.5, 1).all()
    assert (runs["seconds"] > 0).all()
    assert (runs["seconds"] >= runs[["seconds_train", "seconds_acquire", "seconds_evaluate"]].max(axis=1)).all()
    assert runs[["python", "torch", "ray", "device", "host", "data_hash", "package_version"]].notna().all(axis=None)
    assert (pd.Timestamp.now("UTC") - runs["started_at"]).between(pd.Timedelta(0), pd.Timedelta(minutes=30)).all()
    table = runs[runs["strategy"] == "clops"].pivot_table("auc", "storage_fraction", "seed")
    assert table.shape == (2, 2)


def test_a_second_launch_has_nothing_to_do(finished: Sweep, launch: Launch) -> None:
    parts = _parts(finished.folder)
    again = launch("space.py", folder=finished.folder)
    assert again.wait() == 0
    assert again.output.splitlines() == [
        "nothing is pending: 6 runs asked for, 6 finished, 0 pending, 0 failed",
        f"results: {finished.folder}/results",
        f"report: {finished.folder}/results/report/space/index.html",
    ]
    assert _parts(finished.folder) == parts


def test_more_seeds_mean_the_difference_only(finished: Sweep, launch: Launch) -> None:
    plan = launch("plan", "space.py", "--seeds", "3", folder=finished.folder)
    assert plan.wait() == 0
    assert plan.output.splitlines()[0] == "9 runs asked for, 6 finished, 3 pending, 0 failed"
    assert "from finished runs of the same kind" in plan.output


# --- sweeps that are disturbed ----------------------------------------------------------------------------------------


def _parts(folder: Path) -> dict[str, int]:
    """Every part of the store and when it was written."""
    return {
        str(path): path.stat().st_mtime_ns for name in TABLES for path in (folder / "results" / name).glob("*.parquet")
    }


def test_a_driver_killed_in_the_middle_loses_only_what_was_running(
    launch: Launch, alone: Tables, tmp_path: Path
) -> None:
    killed = launch()
    killed.read_until("[2/")
    killed.process.kill()
    assert killed.wait() == -signal.SIGKILL
    killed.wait_until_gone()
    finished = RunStore(tmp_path / "results").statuses()
    assert 2 <= len(finished) < RUNS
    assert set(finished.values()) == {"finished"}
    for name in TABLES:
        assert set(finished) <= set(pd.read_parquet(tmp_path / "results" / name)["run_id"])
    parts = _parts(tmp_path)

    again = launch()
    assert again.wait() == 0
    assert again.output.startswith(f"{RUNS - len(finished)} runs to do; ")
    rewritten = {path for path, moment in _parts(tmp_path).items() if parts.get(path, moment) != moment}
    assert not {path for path in rewritten if any(run_id in path for run_id in finished)}
    _assert_same(tmp_path / "results", alone)


def test_an_interrupted_sweep_is_resumed_with_the_command_that_it_prints(
    launch: Launch, alone: Tables, tmp_path: Path
) -> None:
    interrupted = launch()
    interrupted.read_until("[1/")
    os.killpg(interrupted.process.pid, signal.SIGINT)  # what a terminal does on Ctrl-C: to all of them
    assert interrupted.wait() == 130
    assert interrupted.errors == ""
    assert "stopping: running trials are being checkpointed (Ctrl-C again stops at once)\n" in interrupted.output
    assert "Traceback" not in interrupted.output
    last = interrupted.output.splitlines()[-1]
    assert last.startswith("interrupted; resume with: clops-sweep ")
    interrupted.wait_until_gone()
    finished = RunStore(tmp_path / "results").statuses()
    assert 1 <= len(finished) < RUNS

    resumed = launch(*shlex.split(last.partition("resume with: clops-sweep ")[2]))
    assert resumed.wait() == 0
    assert resumed.output.startswith(f"{RUNS - len(finished)} runs to do; ")
    _assert_same(tmp_path / "results", alone)
    assert list((tmp_path / "results" / ".work" / "checkpoints").glob("*")) == []


def test_an_interrupt_before_the_first_trial_ends_at_once(launch: Launch, tmp_path: Path) -> None:
    sweep = launch()
    sweep.read_until("runs to do")  # and Ray is being started
    os.killpg(sweep.process.pid, signal.SIGINT)
    assert sweep.wait() == 130
    assert sweep.errors == ""
    assert sweep.output.splitlines()[-1] == "interrupted; resume with: clops-sweep space.py"
    sweep.wait_until_gone()
    assert RunStore(tmp_path / "results").statuses() == {}


def test_a_worker_that_is_killed_costs_no_run_and_changes_no_number(
    launch: Launch, alone: Tables, tmp_path: Path
) -> None:
    sweep = launch()
    sweep.read_until("[1/")
    workers = [number for number, title in sweep.processes().items() if "ray::ContinualRunTrainable" in title]
    assert workers
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    assert sweep.wait() == 0
    assert len(RunStore(tmp_path / "results").statuses()) == RUNS
    _assert_same(tmp_path / "results", alone)


BREAKABLE = """
from pathlib import Path
from clops_sweep import RunConfig, SearchSpace, acquisition_function

@acquisition_function("breakable")
def breakable(context, rows):
    from clops_sweep.learning.replay.acquisition import random
    if Path({flag!r}).exists():
        raise RuntimeError("the flag is up")
    return random(context, rows)

SPACE = SearchSpace(
    name="breakable",
    base=RunConfig(epochs_per_task=2, mc_samples=3),
    axes={{"variant": {{"good": {{"storage_fraction": 0.1}}, "bad": {{"acquisition": "breakable"}}}}}},
    seeds=range(2),
)
"""


def test_failed_and_unrecorded_runs_are_taken_up_again(
    launch: Launch, alone: Tables, tmp_path: Path, prepared_root: Path
) -> None:
    results, flag = tmp_path / "results", tmp_path / "flag"
    flag.touch()
    (tmp_path / "breakable.py").write_text(BREAKABLE.format(flag=str(flag)))
    command = ("breakable.py", "--stack", "1", "--no-report")
    good = RunConfig(epochs_per_task=2, mc_samples=3, storage_fraction=0.1)
    dataset, split_seed, normalize = good.data_key
    frames = open_frames(dataset, prepared_root=prepared_root, split_seed=split_seed, normalize=normalize)
    recorded, unrecorded = (good.replace(seed=seed).run_id(frames.data_hash) for seed in (0, 1))
    in_the_way = results / "curves" / f"finished-{unrecorded}.parquet"
    in_the_way.mkdir(parents=True)  # a disk that takes everything but one part of one run

    failing = launch(*command, "--max-retries", "1")
    assert failing.wait() == 1
    assert "4 runs asked for, 1 finished, 1 pending, 2 failed" in failing.output
    assert "not recorded  storage_fraction 0.1, acquisition bald_mcd, seed 1: [Errno 21]" in failing.output
    assert str(in_the_way) in failing.output
    runs = pd.read_parquet(results / "runs").set_index("run_id")
    failed = runs[runs["status"] == "failed"]
    assert set(runs.index) == {recorded, *failed.index}
    assert failed["acquisition"].tolist() == ["breakable"] * 2
    assert failed["error"].str.contains("RuntimeError: the flag is up").all()

    status = launch("status")
    assert status.wait() == 0
    assert f"1 runs finished, 2 failed in {results}" in status.output
    assert f"failed {failed.index[0]}: RuntimeError: the flag is up" in status.output

    in_the_way.rmdir()
    flag.unlink()
    retried = launch(*command, "--retry", "failed")
    assert retried.wait() == 0
    assert retried.output.startswith("3 runs to do; ")
    runs = pd.read_parquet(results / "runs")
    assert runs["status"].tolist() == ["finished"] * 4
    assert np.isfinite(runs[ALL_METRICS].to_numpy()).all()
    for name, frame in alone.items():
        found = pd.read_parquet(results / name)
        _assert_equal(name, _of(found, {recorded, unrecorded}), _of(frame, {recorded, unrecorded}))


def test_failed_runs_are_left_alone_unless_asked_for(launch: Launch, tmp_path: Path, prepared_root: Path) -> None:
    config = next(load_spaces(tmp_path / "space.py")[0].requests()).config
    dataset, split_seed, normalize = config.data_key
    frames = open_frames(dataset, prepared_root=prepared_root, split_seed=split_seed, normalize=normalize)
    run_id = config.run_id(frames.data_hash)
    row = {"run_id": run_id, **config_row(config), "status": "failed", "error": "ValueError: no"}
    table = pa.Table.from_pylist([{name: row.get(name) for name in SCHEMAS["runs"].names}], schema=SCHEMAS["runs"])
    RunStore(tmp_path / "results").write_failed(run_id, table)
    left = launch("space.py", "--limit", "1", "--no-report")
    assert left.wait() == 1
    assert left.output.startswith("nothing is pending: 1 runs asked for, 0 finished, 0 pending, 1 failed")


def _of(frame: pd.DataFrame, run_ids: set[str]) -> pd.DataFrame:
    return frame[frame["run_id"].isin(run_ids)].reset_index(drop=True)
