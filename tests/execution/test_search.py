"""A search through the installed command: real Ray, real processes, real training, and everything that may kill it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import fmean

import pandas as pd
import pytest

from clops_sweep import ContinualRun, RunConfig
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.learning.result import RunResult
from clops_sweep.search.records import StudyRecord
from clops_sweep.search.trials import read_study
from clops_sweep.store.run_store import RunStore
from tests.conftest import Command
from tests.helpers.launching import ATTACHED, ONE_WORKER, TABLES, Sweep, kill, kill_all
from tests.helpers.preloaded import Preloaded

SPACE = """
from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace

SPACE = SearchSpace(
    name="tuned",
    base=RunConfig(epochs_per_task=2, mc_samples=3),
    search=OptunaSearch(
        parameters={{
            "learning_rate": FloatDistribution(1e-4, 1e-2, log=True),
            "storage": {{"by beta": {{}}, "random": {{"storage_order": "random"}}}},
        }},
        n_trials={trials},
        pruning=True,
        max_concurrent=1,
    ),
    seeds=range(2),
)
"""
TRIALS = 6
KEYS = ("run_id", "split", "trained_on", "evaluated_on", "epoch", "task", "instance")


def tables_of(store: RunStore, run_ids: list[str] | None = None) -> dict[str, pd.DataFrame]:
    """Return the rows of runs in each table, in one order."""
    tables = {}
    for name in TABLES:
        rows = store.read(name, run_ids)
        keys = [key for key in KEYS if key in rows]
        tables[name] = rows.sort_values(keys).reset_index(drop=True)
    return tables


@pytest.fixture(scope="module")
def searched(
    drivers: Preloaded, ray_at_hand: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The folder of a search whose driver was killed, that was extended, and lost its workers on the way."""
    folder = tmp_path_factory.mktemp("searched")
    launches: list[Sweep] = []
    try:
        (folder / "space.py").write_text(SPACE.format(trials=3))
        launches.append(Sweep(drivers, folder, ray_at_hand, "space.py", *ATTACHED, *ONE_WORKER))
        launches[0].read_until("trial 0 complete")  # the second is being trained then
        launches[0].kill()
        kill_all(launches[0].tag)  # and its workers, as when the power fails
        before = tables_of(RunStore(folder / "results"))
        assert len(before["runs"])

        (folder / "space.py").write_text(SPACE.format(trials=TRIALS))
        launches.append(Sweep(drivers, folder, ray_at_hand, "space.py", *ATTACHED, *ONE_WORKER))
        launches[1].read_until("trial 1 ")
        workers = launches[1].workers()
        if not workers and version("ray").startswith("2.50"):
            pytest.skip("Ray 2.50 names no forked worker in its title; other tests kill workers there")
        assert workers
        for worker in workers:
            kill(worker)
        assert (launches[1].wait(), launches[1].errors) == (0, "")
        (folder / "output").write_text(launches[1].output)
        finished = before["runs"]["run_id"].tolist()
        after = tables_of(RunStore(folder / "results"), finished)
        for name, rows in before.items():  # a launch merges small parts at its end, so files may differ
            pd.testing.assert_frame_equal(after[name], rows)  # with the times at which runs started
        yield folder
    finally:
        for launch in launches:
            launch.close()


@pytest.fixture(scope="module")
def record(searched: Path) -> StudyRecord:
    (space,) = load_spaces(searched / "space.py")
    return read_study(space, RunStore(searched / "results"))


@pytest.fixture(scope="module")
def alone(record: StudyRecord, prepared_root: Path) -> dict[str, tuple[RunConfig, RunResult]]:
    """Every run of every trial, trained to its end in Python, without Ray, store or search."""
    frames = open_frames("synthetic", prepared_root=prepared_root, split_seed=0, normalize="none")
    found = {}
    for trial in record.trials:
        storage = {"storage_order": "random"} if trial.labels["storage"] == "random" else {}
        for seed, run_id in enumerate(trial.run_ids):
            rate = trial.labels["learning_rate"]
            config = RunConfig(epochs_per_task=2, mc_samples=3, seed=seed, learning_rate=rate, **storage)
            assert config.run_id(frames.data_hash) == run_id
            found[run_id] = config, ContinualRun(config, frames).run()
    return found


def _r(result: RunResult) -> pd.DataFrame:
    matrix = result.r_matrix[result.r_matrix["split"] == "validation"]
    return matrix.pivot_table("auc", "trained_on", "evaluated_on")


@pytest.mark.nightly
def test_trials_are_what_their_runs_give_alone(
    searched: Path, record: StudyRecord, alone: dict[str, tuple[RunConfig, RunResult]]
) -> None:
    assert [trial.number for trial in record.trials] == list(range(TRIALS))
    runs = pd.read_parquet(searched / "results" / "runs").set_index("run_id")
    reached: dict[int, list[float]] = {}
    for trial in record.trials:
        matrices = [_r(alone[run_id][1]) for run_id in trial.run_ids]
        state = "complete"
        for tasks in (1, 2, 4):
            value = fmean(matrix.loc[tasks, :tasks].mean() for matrix in matrices)
            assert trial.intermediate[tasks] == pytest.approx(value, rel=1e-12)
            reached.setdefault(tasks, []).append(value)
            if sum(other > value for other in reached[tasks]) >= max(1, len(reached[tasks]) // 2):
                state = "pruned"
                break
        assert (trial.number, trial.state) == (trial.number, state)
        assert len(trial.intermediate) == (3 if state == "complete" else [1, 2, 4].index(tasks) + 1)
        aucs = [float(alone[run_id][1].runs["auc"].iloc[0]) for run_id in trial.run_ids]
        if state == "complete":
            assert runs.loc[list(trial.run_ids), "auc"].tolist() == aucs
            assert trial.values == (fmean(aucs),)
        else:
            assert not runs.index.isin(trial.run_ids).any()
    assert 0 < len(record.of("pruned")) < TRIALS
    assert (runs["status"] == "finished").all()


@pytest.fixture
def command(searched: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch, in_process: Command) -> Command:
    """The command in this process, on the results of the search."""
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    return lambda *arguments: in_process(*arguments, "--results", searched / "results")


@pytest.mark.nightly
def test_what_is_said_and_shown(searched: Path, command: Command, record: StudyRecord) -> None:
    output = (searched / "output").read_text().splitlines()
    pruned = len(record.of("pruned"))
    asked = "search 'tuned': 6 trials asked for (x 1 split x 2 seeds = up to 12 runs)"
    counts = f"{asked}, {6 - pruned} complete, {pruned} pruned, 0 failed, 0 pending"
    assert output[-4] == counts
    assert f"mean of 2 runs, in trial {record.best[0].number} (" in output[-3]
    assert (searched / "results/report/tuned/figures/tuned-history.svg").is_file()
    again = command(searched / "space.py", "--no-report")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.splitlines() == output[-4:-1]
    assert command("plan", searched / "space.py", "--limit", "20").stdout.splitlines()[0] == counts
    status = command("status").stdout
    assert f"search 'tuned': trials {6 - pruned} complete, {pruned} pruned, 0 failed" in status


TUNED = """
from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace, TuneOn

RATE = {"learning_rate": FloatDistribution(1e-4, 1e-2, log=True)}
SPACE = SearchSpace(
    name="chosen",
    base=RunConfig(epochs_per_task=1),
    axes={"split_seed": range(2)},
    search=OptunaSearch(methods={"er": RATE, "ewc": RATE, "finetune": {}}, trials_each=2, tune_on=TuneOn(tasks=1)),
    seeds=range(1),
)
"""


@pytest.mark.nightly
def test_a_launch_that_is_killed_between_tuning_and_reporting_goes_on(
    drivers: Preloaded, ray_at_hand: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "space.py").write_text(TUNED)
    command = ("space.py", *ATTACHED, *ONE_WORKER)
    killed = Sweep(drivers, tmp_path, ray_at_hand, *command)
    again = None
    try:
        killed.read_until("6 runs to do")
        killed.kill()
        kill_all(killed.tag)
        before = pd.read_parquet(tmp_path / "results" / "runs").set_index("run_id")["started_at"]
        again = Sweep(drivers, tmp_path, ray_at_hand, *command)
        assert (again.wait(), again.errors) == (0, "")
    finally:
        for launch in filter(None, (killed, again)):
            launch.close()
    runs = pd.read_parquet(tmp_path / "results" / "runs")
    assert len(before) >= 2 * 2 * 2
    assert runs.set_index("run_id")["started_at"][before.index].equals(before)  # nothing is computed twice
    tuning, reported = runs[runs["first_tasks"] == 1], runs[runs["first_tasks"].isna()]
    assert (len(tuning), len(reported)) == (2 * 2 * 2, 3 * 2)
    assert tuning["epochs_trained"].eq(1).all()
    table_of_tuning = again.output[again.output.index("tuning of 'chosen' on TuneOn") :].splitlines()
    assert "optimism" in table_of_tuning[1]
    for method, of in tuning.groupby("strategy"):
        best = of.groupby("learning_rate")["auc"].mean().idxmax()
        (rate,) = set(reported.loc[reported["strategy"] == method, "learning_rate"])
        assert rate == pytest.approx(best, rel=1e-11), "grids round to 12 digits"
        line = next(it for it in table_of_tuning if it.startswith(method))
        assert re.search(r" 2 +4 +\d", line), "two trials, four runs"
    table = tmp_path / "results/report/chosen/tables/tuning-chosen.csv"
    assert pd.read_csv(table)["method"].tolist() == ["er", "ewc", "finetune"]
