"""What the README tells people to type works as typed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from matplotlib.image import imread
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from clops_sweep import ContinualRun, RunConfig, read
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing import tiny_config, tiny_frames
from tests.helpers.documentation import FOLLOWED, examples
from tests.helpers.launching import ATTACHED, ONE_WORKER
from tests.helpers.preloaded import Preloaded
from tests.helpers.stores import record_result

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
ONE_CPU = {"RAY_OVERRIDE_RESOURCES": '{"CPU": 1}'}  # one worker: a second one costs what it takes to start
BUDGET = ["--seeds", "1", "--set", "epochs_per_task=1", "--set", "mc_samples=2"]


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


_, INSTALL_AND_RUN, INSTALL_AND_TEST, USAGE = _blocks("sh")
FIRST_LINES, QUERY = _blocks("python")
SPACE, SWEEP, ONE_RUN = examples("search_spaces")


def _run(command: str, folder: Path, environment: dict[str, str], commands: Preloaded) -> str:
    """A line of the README with a forked command in place of the installed one, which it names or has on its path."""
    name, *arguments = shlex.split(command)
    assert name in ("clops-sweep", ".venv/bin/clops-sweep")
    done = commands.run(folder, environment | ONE_CPU, *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, ray_at_hand: dict[str, str], drivers: Preloaded) -> Path:
    """What a newcomer has after the first command, on a small budget and a Ray that is there, but for the report."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "search_spaces", folder / "search_spaces")
    command = shlex.join(
        [*shlex.split(INSTALL_AND_RUN.rpartition("&&")[2]), *BUDGET, "--no-report", *ATTACHED, *ONE_WORKER]
    )
    output = _run(command, folder, ray_at_hand, drivers)
    assert "9 runs asked for, 9 finished, 0 pending, 0 failed" in output
    assert f"results: {folder / 'results'}" in output.splitlines()
    return folder


def test_continuous_integration_runs_both_commands_as_they_stand_here() -> None:
    """The commands that install are not run by the tests: they are what `.ci/run` takes from the README and runs."""
    shown = subprocess.run(
        ["bash", ROOT / ".ci" / "run", "--show"], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout.splitlines()
    assert shown == [INSTALL_AND_TEST.strip(), INSTALL_AND_RUN.strip()]


@pytest.mark.nightly
def test_the_usage_works(folder: Path, environment: dict[str, str], commands: Preloaded) -> None:
    plan, launch, status, claims, report = USAGE.splitlines()
    counts = r"18 runs asked for, 0 finished, 18 pending, 0 failed\n"
    assert re.match(counts, _run(plan, folder, environment, commands))
    assert "runs asked for" in _run(f"{launch} --dry-run", folder, environment, commands)
    assert "9 runs finished, 0 failed" in _run(status, folder, environment, commands)
    assert "1 seed where 3 are needed" in " ".join(_run(claims, folder, environment, commands).split())
    assert "index.html" in _run(report, folder, environment, commands)


def test_the_first_lines_draw_the_picture_that_the_readme_shows(tmp_path: Path, forked: Preloaded) -> None:
    program = FIRST_LINES.replace("sweep(SPACE)", "print(sweep(SPACE, ray=False))")
    (tmp_path / "first.py").write_text(program)
    script = "import runpy; runpy.run_path('first.py', run_name='__main__')"
    done = forked.run(tmp_path, forked.environment, program=script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "6 runs asked for, 6 finished, 0 pending, 0 failed"
    (tmp_path / "first.py").write_text(FIRST_LINES)
    report = _run("clops-sweep report first.py", tmp_path, forked.environment, forked)
    assert "results/report/first/index.html" in report
    drawn, shown = tmp_path / "wearable.png", ROOT / "docs" / "wearable.png"
    assert imread(drawn).shape == imread(shown).shape
    forgotten = read(tmp_path / "results", "runs").groupby("strategy")["balanced_accuracy_forgetting"].mean()
    assert forgotten["finetune"] > 0.8
    assert forgotten["er"] < 0.2


@pytest.mark.nightly
def test_the_query_works(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    query = _last_value(QUERY, {})
    assert query.shape == (2, 2)  # fine-tuning has no memory, and null in both columns
    assert query.notna().all(axis=None)


def test_the_search_space_of_its_page_asks_for_the_runs_that_it_says() -> None:
    names: dict[str, Any] = {}
    exec(SPACE, names)
    assert len(list(names["SPACE"].requests())) == 2 * 3 * 5


def test_the_single_run_of_the_page_works(prepared_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    one_run = _last_value(ONE_RUN, {})
    assert one_run["auc"].between(0.5, 1).all()


ON_THE_BUDGET = """
from dataclasses import replace

from clops_sweep.search_spaces.quickstart import SPACE

CHANGES = {"epochs_per_task": 1, "mc_samples": 2}
SPACE = [replace(space, base=space.base.replace(**CHANGES), seeds=range(1)) for space in SPACE]
"""
"""The quickstart as `BUDGET` has it."""


@pytest.mark.nightly
def test_what_the_pages_ask_a_store_works(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "search_spaces").mkdir()
    (tmp_path / "search_spaces" / "quickstart.py").write_text(ON_THE_BUDGET)
    (tmp_path / "results").symlink_to(folder / "results")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    block, _ = examples("store")
    assert _last_value(block, names).between(0.5, 1).all()
    assert set(names["runs"]["role"]) == {"reported"}
    table, of_scores, figures, record = examples("report")
    exec(table, names)
    exec(of_scores, names)
    means = pd.read_csv("scores.csv").set_index("configuration")["mean"]
    runs = pd.read_parquet("results/runs")
    assert means["fine-tuning"] == pytest.approx(runs.loc[runs["strategy"] == "finetune", "test_auc"].mean())
    page = _last_value(figures, {})
    assert page.index.is_file()
    assert (tmp_path / "r.pdf").stat().st_size > 1_000
    assert _last_value(record, {}).shape == (2, 2)


def test_what_the_page_of_searches_asks_a_study_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    space, block, *_ = examples("searches")
    names: dict[str, Any] = {}
    exec(space, names)
    study = optuna.create_study(
        study_name=names["SPACE"].name, storage=JournalStorage(JournalFileBackend("results/optuna.journal"))
    )
    study.optimize(lambda trial: trial.suggest_float("learning_rate", 0, 1), n_trials=2)
    trials = _last_value(block, {})
    assert len(trials) == 2


def test_the_folds_of_the_page_of_datasets_ask_for_runs() -> None:
    block, _ = examples("datasets")
    names: dict[str, Any] = {}
    exec(block, names)
    assert len(list(names["SPACE"].requests())) == 4 * 2 * 5


@pytest.fixture
def predictions(tmp_path: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """The predictions of a run, in the store `results` of the current folder."""
    monkeypatch.chdir(tmp_path)
    config = RunConfig(strategy="finetune", epochs_per_task=1)
    run = ContinualRun(config, open_frames("synthetic", prepared_root=prepared_root), keep_predictions=True)
    store = RunStore("results", keep=["predictions"])
    store.open_for_writing()
    result = run.run()
    record_result(store, {str(result.runs["run_id"].item()): config}, result, lambda config: "0", {})
    return result.predictions


@pytest.mark.usefixtures("predictions")
def test_the_page_of_scenarios_makes_another_metric_of_the_predictions() -> None:
    *_, block = examples("scenarios")
    precision = _last_value(block, {})
    assert 0 < precision <= 1


def test_the_page_of_stores_lists_the_class_of_each_output(predictions: pd.DataFrame) -> None:
    _, block = examples("store")
    classes = _last_value(block, {}).set_index("task")["label"]
    assert sorted(classes.index) == sorted(set(predictions["task"]))
    of_tasks = predictions.groupby("task")["label"].unique()
    assert all(label in of_tasks[task] for task, label in classes.items())
    assert (of_tasks.str.len() == 2).all()


def test_the_page_of_streams_tells_how_single_people_fare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    space, block, online = examples("streams")
    for one, runs in ((space, 4 * 3 * 2), (online, 4 * 2 * 3)):
        names: dict[str, Any] = {}
        exec(one, names)
        assert len(list(names["SPACE"].requests())) == runs
    monkeypatch.chdir(tmp_path)
    config, frames = tiny_config("subject_il", strategy="finetune", epochs_per_task=1), tiny_frames("class_il")
    store = RunStore("results", keep=["predictions"])
    store.open_for_writing()
    result = ContinualRun(config, frames, keep_predictions=True).run()
    record_result(store, {str(result.runs["run_id"].item()): config}, result, lambda config: frames.data_hash, {})
    in_no_task = _last_value(block, {})
    assert in_no_task.tolist() == pytest.approx(result.runs["test_accuracy"].tolist())


_, CLAIMS, FAIR = examples("claims")
_, LEFT_OUT = examples("datasets")
PAGES = [CLAIMS, FAIR, LEFT_OUT]


@pytest.mark.parametrize("block", PAGES, ids=["claims", "fair", "left out"])
def test_the_search_spaces_of_pages_ask_for_runs(block: str) -> None:
    names: dict[str, Any] = {}
    exec(block, names)
    for request in names["SPACE"].requests():
        assert ContinualRun(request.config, tiny_frames(request.config.scenario)).tasks_trained == 0


def test_the_page_of_models_predicts(tmp_path: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    config, frames = tiny_config("class_il", epochs_per_task=1), tiny_frames("class_il")
    store = RunStore("results", keep=["models"])
    store.open_for_writing()
    run_id, result = config.run_id(frames.data_hash), ContinualRun(config, frames, keep_models="last").run()
    record_result(store, {run_id: config}, result, lambda config: frames.data_hash, {})
    names: dict[str, Any] = {}
    block, continued = examples("models")
    exec(block.replace("3f2a", run_id[:4]), names)
    assert names["probabilities"].shape == (8, 1)
    exec(continued, names)
    assert names["config"].start_from.startswith("run:3f2a")


def test_every_example_of_a_page_is_run_by_some_test() -> None:
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    for page in (ROOT / "docs").glob("*.md"):
        if examples(page.stem) and page.stem not in FOLLOWED:
            assert f'examples("{page.stem}")' in tests, page


@pytest.mark.nightly
def test_a_sweep_from_python_works(tmp_path: Path, forked: Preloaded) -> None:
    *_, table = SWEEP.strip().splitlines()
    script = SWEEP.replace("sweep(space)", "print(sweep(space))").replace(table, f"print({table}.shape)")
    done = forked.run(tmp_path, forked.environment | ONE_CPU, program=script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["4 runs asked for, 4 finished, 0 pending, 0 failed", "(4, 3)"]


def test_links_and_pictures_are_there() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", README)
    assert targets
    for target in targets:
        if target.startswith("https://"):
            continue
        path = ROOT / (target.partition("#")[0] or "README.md")
        assert path.is_file(), target
        assert path.stat().st_size < 200_000


def _last_value(block: str, names: dict[str, object]) -> object:
    """Runs a block as a notebook cell: the value of its last line, if that is an expression."""
    import ast

    tree = ast.parse(block)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "README.md", "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "README.md", "exec"), names)
    return eval(compile(ast.Expression(last.value), "README.md", "eval"), names)
