"""A sweep that nothing disturbs, and what the same command does afterwards."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.execution.conftest import Launch
from tests.helpers.launching import ALL_METRICS, TABLES, Sweep, Tables, assert_same
from tests.helpers.preloaded import Preloaded

RUNS = 6


@pytest.fixture(scope="module")
def finished(
    console_script: str, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory, space: str
) -> Sweep:
    """A launch of the whole space that has ended by itself."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "space.py").write_text(space)
    (folder / "clops_sweep").mkdir()  # as in a checkout that the installed package was not made from
    (folder / "clops_sweep" / "__init__.py").write_text("raise RuntimeError('a worker has imported another package')")
    long = folder / "researcher" / "job.12345678" / "scratch"  # as batch systems have it, too long for Ray's sockets
    long.mkdir(parents=True)
    sweep = Sweep(console_script, folder, environment | {"TMPDIR": str(long)}, "space.py", "--ray")
    sweep.wait()
    return sweep


def test_a_sweep_says_what_it_does_and_where_the_results_are(finished: Sweep) -> None:
    tasks, heading, *others = finished.output.splitlines()
    assert tasks == "tasks of synthetic, class_il, split_seed 0: frames (people)"
    assert heading.split() == ["task", "training", "validation", "test"]
    others = [line for line in others if " s so far, " not in line]  # of starts, on a busy machine
    device, *lines = others[6:]  # below a line for each of six tasks
    assert (finished.returncode, finished.errors) == (0, "")
    assert device.startswith("device: cpu")
    assert lines[0].startswith(f"{RUNS} runs to do; log: {finished.folder}/results/.work/logs/")
    assert Path(lines[0].partition("log: ")[2]).is_file()
    assert lines.pop(1) == "workers: Ray, as requested"
    assert lines[1:3] == ["starting Ray (about 8 s)", "starting workers (about 4 s)"]
    of_runs = [line.partition("] finished  ") for line in lines[3 : RUNS + 3]]
    assert [number for number, _, _ in of_runs] == [f"[{n}/{RUNS}" for n in range(1, RUNS + 1)]
    names = ["replay: storage_fraction 0.1", "replay: storage_fraction 0.5", "fine-tuning"]
    assert sorted(line.rpartition(": validation AUC 0.")[0] for _, _, line in of_runs) == sorted(
        f"{name}, seed {seed}" for name in names for seed in range(2)
    )
    lines = [line for line in lines if not line.startswith("In the last half of the epochs of a task, ")]
    best = lines[RUNS + 4 : -2]
    assert best[0].startswith("best of each variant of 'replay', of 2 configurations")
    header = ["configuration", "n", "validation AUC", "test AUC", "test BWT", "run_id"]
    assert [text.strip() for text in best[1].split("  ") if text.strip()] == header
    assert best[3].startswith("the configuration of 'fine-tuning'")
    assert best[6] == "Ranked by validation AUC: the best of many test scores would be partly luck."
    assert best[7].startswith("Mean (lowest to highest); run_id: ")
    assert best[8] == "Columns of runs: auc, test_auc, test_bwt"
    assert len(best) == 3 + 3 + 3 + 1
    assert best[-1] == "list runs with: clops-sweep runs"
    assert lines[RUNS + 3 :] == [
        "6 runs asked for, 6 finished, 0 pending, 0 failed",
        *best,
        f"results: {finished.folder}/results",
        f"report: {finished.folder}/results/report/space/index.html",
    ]
    assert (finished.folder / "results" / "report" / "space" / "index.html").is_file()


def test_a_sweep_gives_what_each_run_gives_alone(finished: Sweep, alone: Tables) -> None:
    assert_same(finished.folder / "results", alone)


def test_a_sweep_leaves_no_process_and_no_files_but_the_log(finished: Sweep) -> None:
    finished.wait_until_gone()
    work = finished.folder / "results" / ".work"
    files = {path.relative_to(work) for path in work.rglob("*") if path.is_file()}
    assert {path.parts[0] for path in files} == {"lock", "logs", "folders.json", "spaces", "verified.json"}


def test_pandas_reads_finite_metrics_and_where_they_come_from(finished: Sweep) -> None:
    runs = pd.read_parquet(finished.folder / "results" / "runs")
    assert np.isfinite(runs[ALL_METRICS].to_numpy()).all()
    assert runs["auc"].between(0.5, 1).all()
    assert (runs["seconds"] > 0).all()
    assert (runs["seconds"] >= runs[["seconds_train", "seconds_acquire", "seconds_evaluate"]].max(axis=1)).all()
    assert runs[["python", "torch", "ray", "device", "host", "data_hash", "package_version"]].notna().all(axis=None)
    assert (pd.Timestamp.now("UTC") - runs["started_at"]).between(pd.Timedelta(0), pd.Timedelta(minutes=30)).all()


def test_a_second_launch_has_nothing_to_do(finished: Sweep, launch: Launch, commands: Preloaded) -> None:
    parts = _parts(finished.folder)
    again = launch("space.py", folder=finished.folder, script=commands)
    assert again.wait() == 0
    first, best, *_, results, report = again.output.splitlines()
    assert first == "nothing is pending: 6 runs asked for, 6 finished, 0 pending, 0 failed"
    assert best == "best of each variant of 'replay', of 2 configurations"
    assert [results, report] == [
        f"results: {finished.folder}/results",
        f"report: {finished.folder}/results/report/space/index.html",
    ]
    assert _parts(finished.folder) == parts


def _parts(folder: Path) -> dict[str, int]:
    """Every part of the store and when it was written."""
    return {
        str(path): path.stat().st_mtime_ns for name in TABLES for path in (folder / "results" / name).glob("*.parquet")
    }
