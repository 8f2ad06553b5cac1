"""Scores and roles of runs in Python, after a launch."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from clops_sweep import UsageError, differences, read, scores, sweep, write_report
from clops_sweep.cli.commands import command
from clops_sweep.execution.outcome import Outcome
from tests.conftest import Command
from tests.data.declared_files import forget

FILE = """
import numpy as np

from clops_sweep import OptunaSearch, Recordings, RunConfig, SearchSpace, TuneOn, dataset


@dataset("worn", scenarios=["class_il_union"])
def worn(data_root):
    y = np.arange(480) % 4
    x = np.random.default_rng(0).normal(size=(480, 1, 50)) + y[:, None, None]
    names = ["lie", "sit", "stand", "walk"]
    return Recordings(x, 50, ["az"], "g", labels=y, classes=names, patients=np.arange(480) // 16)


BASE = RunConfig(dataset="worn", scenario="class_il_union", network="linear", epochs_per_task=1)
METHODS = {"ER": {"strategy": "er", "replay_ratio": [0.5, 1]}, "fine-tuning": {"strategy": "finetune"}}
"""
PLAIN = 'SPACE = SearchSpace("plain", BASE, {"strategy": ["finetune", "er"], "split_seed": range(3)}, seeds=[0, 1])\n'
THREE_METHODS = """
METHODS = ["finetune", "er", "joint"]
SPACE = SearchSpace("three", BASE, {"strategy": METHODS, "split_seed": range(3)}, seeds=[0, 1])
"""
ON_OTHER_SPLITS = """
TRIED = OptunaSearch(sampler="grid", methods=METHODS, tune_on=TuneOn(splits=(100,)))
SPACE = SearchSpace("tuned", BASE, {"split_seed": [0, 1]}, search=TRIED, seeds=[0])
"""
ON_THE_SAME = """
TRIED = OptunaSearch(sampler="grid", methods=METHODS)
SPACE = SearchSpace("same", BASE, {"split_seed": [0, 1]}, search=TRIED, seeds=[0])
"""

INTERRUPTED = """
import signal

from clops_sweep import RunEnd, observer


@observer("ctrl_c")
def ctrl_c(event):
    if isinstance(event, RunEnd):
        signal.raise_signal(signal.SIGINT)


"""
PRETRAINED = """
@dataset("worn_before", scenarios=["class_il_union"])
def worn_before(data_root):
    y = np.arange(480) % 4
    x = np.random.default_rng(1).normal(size=(480, 1, 50)) + y[:, None, None]
    people = 1000 + np.arange(480) // 16
    return Recordings(x, 50, ["az"], "g", labels=y, classes=["a", "b", "c", "d"], patients=people)


FIRST = BASE.replace(dataset="worn_before", network="small_cnn", strategy="finetune")
SPACE = SearchSpace("second", BASE.replace(encoder=FIRST, strategy="er"), seeds=[0])
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(tmp_path / "prepared"))
    forget("worn")
    forget("worn_before")
    yield
    forget("worn")
    forget("worn_before")


def launched(space: str, observe: Sequence[str] = ()) -> Outcome:
    Path("own.py").write_text(FILE + space)
    return sweep("own.py", "results", ray=False, observe=observe)


def test_an_outcome_shows_scores_of_test_people_and_has_them_as_a_frame() -> None:
    outcome = launched(PLAIN)
    table = outcome.scores()
    runs = read("results", "runs")
    by_method = runs.groupby("strategy")["test_balanced_accuracy"].mean()
    assert table.set_index("configuration")["mean"].to_dict() == pytest.approx(by_method.to_dict())
    assert table["mean"].is_monotonic_decreasing
    assert set(table["metric"]) == {"test_balanced_accuracy"}
    assert set(zip(table["n"], table["unit"], table["finished"], table["requested"], strict=True)) == {
        (3, "patient splits", 6, 6)
    }
    assert (table["low"] < table["mean"]).all()
    assert (table["mean"] < table["high"]).all()
    validation = runs.groupby("strategy")["balanced_accuracy"].mean()
    assert table.set_index("configuration")["validation"].to_dict() == pytest.approx(validation.to_dict())
    pd.testing.assert_frame_equal(table, scores("own.py", "results"))
    best = table.iloc[0]
    line = (
        f"{best['configuration']}: test balanced accuracy {best['mean']:.3f} [{best['low']:.3f}, {best['high']:.3f}], "
        f"n = 3 patient splits; validation {best['validation']:.3f}"
    )
    first, second, *_, last = repr(outcome).splitlines()
    assert (first, second.strip(), last.strip()) == (f"<Outcome: {outcome}", line, "scores() has all of them>")
    assert line.partition(": ")[2] in outcome._repr_html_()
    forgetting = scores("own.py", "results", "balanced_accuracy_forgetting")
    expected = runs.groupby("strategy")["balanced_accuracy_forgetting"].mean().to_dict()
    assert forgetting.set_index("configuration")["mean"].to_dict() == pytest.approx(expected)
    with pytest.raises(UsageError, match="metric 'aucc': not known"):
        scores("own.py", "results", "aucc")


@pytest.mark.usefixtures("unpainted")
def test_differences_are_those_of_a_corrected_t_test() -> None:
    launched(THREE_METHODS)
    table = differences("own.py", "results", "test_balanced_accuracy")
    runs = read("results", "runs")
    by_split = runs.pivot_table("test_balanced_accuracy", "split_seed", "strategy")
    assert set(zip(table["configuration"], table["baseline"], strict=True)) == {
        ("er", "finetune"), ("joint", "finetune"), ("joint", "er")
    }  # fmt: skip
    for row in table.to_dict("records"):
        of_splits = by_split[row["configuration"]] - by_split[row["baseline"]]
        assert row["difference"] == pytest.approx(of_splits.mean())
        # Nadeau and Bengio 2003: a fifth of the people is tested, three fifths train.
        error = (of_splits.var(ddof=1) * (1 / 3 + (6 / 30) / (18 / 30))) ** 0.5
        t = of_splits.mean() / error
        assert row["p"] == pytest.approx(2 * stats.t.sf(abs(t), df=2))
        half = stats.t.ppf(0.5 + row["level"] / 2, df=2) * error
        assert (row["low"], row["high"]) == pytest.approx((of_splits.mean() - half, of_splits.mean() + half))
        assert (row["n"], row["unit"]) == (3, "patient splits")
    ordered = table.sort_values("p")
    steps = (ordered["p"] * [3, 2, 1]).cummax().clip(upper=1)
    assert ordered["p_holm"].tolist() == pytest.approx(steps.tolist())

    of_pair = {}
    for row in differences("own.py", "results").to_dict("records"):
        one, other = row["configuration"], row["baseline"]
        of_pair[row["metric"], one, other] = row["difference"], row["low"], row["high"], row["p_holm"]
        of_pair[row["metric"], other, one] = -row["difference"], -row["high"], -row["low"], row["p_holm"]
    metrics = {metric for metric, *_ in of_pair}
    for baseline in ("finetune", "er", "joint"):  # one that is always second, both, and always first
        turned = differences("own.py", "results", baseline=baseline)
        pairs = set(zip(turned["metric"], turned["configuration"], turned["baseline"], strict=True))
        others = {"finetune", "er", "joint"} - {baseline}
        assert pairs == {(metric, other, baseline) for metric in metrics for other in others}
        assert len(turned) == len(pairs)
        for row in turned.to_dict("records"):
            expected = of_pair[row["metric"], row["configuration"], baseline]
            assert (row["difference"], row["low"], row["high"], row["p_holm"]) == expected
    with pytest.raises(UsageError, match="baseline = 'err': no such configuration; there are er, finetune, joint"):
        differences("own.py", "results", baseline="err")


@pytest.mark.nightly
def test_differences_are_those_of_the_report() -> None:
    launched(THREE_METHODS)
    table = differences("own.py", "results", "test_balanced_accuracy")
    report = write_report("own.py", "results", metrics="test_balanced_accuracy")
    (file,) = report.index.parent.rglob("*differences*.csv")
    written = pd.read_csv(file).set_index(["configuration", "baseline"]).sort_index()
    ours = table.set_index(["configuration", "baseline"]).sort_index()
    for column in ("low", "high", "p_holm"):
        assert ours[column].tolist() == pytest.approx(written[f"test_balanced_accuracy_{column}"].tolist())


def test_a_script_prints_the_best_configurations_and_where_the_results_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys, "ps1", raising=False)  # of a notebook that ran in this process
    for idle in ("", "nothing is pending: "):
        line = repr(launched(PLAIN)).splitlines()[1].strip()
        printed = capsys.readouterr().out.splitlines()
        start = printed.index(f"{idle}12 runs asked for, 12 finished, 0 pending, 0 failed")
        assert printed[start + 1].strip() == line
        assert f"results: {Path('results').resolve()}" in printed


@pytest.mark.parametrize("is_interactive", [False, True])
def test_an_interrupted_sweep_ends_the_script_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_interactive: bool
) -> None:
    """Finished runs are stored, and the script does not go on with half of the results."""
    monkeypatch.delattr(sys, "ps1", raising=False)
    if is_interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    with pytest.raises(KeyboardInterrupt):
        launched(INTERRUPTED + PLAIN, observe=["ctrl_c"])
    finished = len(read("results", "runs"))
    assert 1 <= finished < 12  # the next run may end before an observer of the first one is heard
    printed = capsys.readouterr().out
    assert f"interrupted; 12 runs asked for, {finished} finished, {12 - finished} pending, 0 failed" in printed
    assert "the same call of sweep continues; finished runs are not repeated" in printed


def test_trials_of_tuning_have_a_role_and_no_scores() -> None:
    outcome = launched(ON_OTHER_SPLITS)
    runs = read("results", "runs")
    assert runs.columns[:2].tolist() == ["run_id", "role"]
    is_trial = runs["split_seed"] == 100
    assert runs["role"].tolist() == ["trial" if trial else "reported" for trial in is_trial]
    assert runs["role"].value_counts().to_dict() == {"reported": 4, "trial": 2}
    alone = read("results", "runs", columns=["role", "strategy"])
    assert alone.columns.tolist() == ["role", "strategy"]
    assert alone["role"].tolist() == runs["role"].tolist()
    assert read("results", "runs", runs["run_id"][0], "role")["role"].tolist() == [runs["role"][0]]
    assert set(outcome.runs["role"]) == {"reported", "trial"}
    reported = runs[runs["role"] == "reported"].groupby("strategy")["test_balanced_accuracy"].mean()
    assert sorted(outcome.scores()["mean"]) == pytest.approx(sorted(reported))


def test_runs_of_the_choice_are_reported_if_tuning_is_on_the_reported_data() -> None:
    outcome = launched(ON_THE_SAME)
    roles = dict(read("results", "runs", columns=["run_id", "role"]).itertuples(index=False))
    reported = {str(run.run_id) for run in outcome.plan.asked}
    assert {run_id for run_id, role in roles.items() if role == "reported"} == reported
    assert len(reported) == 4
    assert list(roles.values()).count("trial") == 2


def test_a_run_whose_model_is_an_encoder_is_pretraining() -> None:
    Path("own.py").write_text(FILE + PRETRAINED)
    sweep("own.py", "results", ray=False)
    runs = read("results", "runs", columns=["strategy", "role"])
    assert dict(runs.itertuples(index=False)) == {"finetune": "pretraining", "er": "reported"}


def test_an_outcome_whose_store_is_gone_shows_its_counts() -> None:
    outcome = launched(PLAIN)
    shutil.rmtree("results")
    assert repr(outcome) == "<Outcome: 12 runs asked for, 12 finished, 0 pending, 0 failed>"


def test_the_runs_of_one_search_space_are_read() -> None:
    launched(PLAIN)
    Path("plain.py").write_text(Path("own.py").read_text())
    forget("worn")
    launched(ON_OTHER_SPLITS)
    runs = read("results", "runs", space="own.py")
    assert set(runs["role"]) == {"reported", "trial"}
    reported = runs[runs["role"] == "reported"]
    assert sorted(zip(reported["strategy"], reported["split_seed"], strict=True)) == [
        ("er", 0), ("er", 1), ("finetune", 0), ("finetune", 1)
    ]  # fmt: skip
    curves = read("results", "curves", space="own.py", columns="run_id")
    assert set(curves["run_id"]) == set(runs["run_id"])
    assert len(read("results", "runs")) > len(runs)
    with pytest.raises(UsageError, match="read: expected run_ids or space, not both"):
        read("results", "runs", runs["run_id"], space="own.py")
    listed = CliRunner().invoke(command, ["runs", "own.py", "--json"], catch_exceptions=False)
    assert {run["run_id"] for run in json.loads(listed.stdout)["runs"]} == set(reported["run_id"])


@pytest.mark.nightly
def test_runs_on_data_that_were_prepared_anew_are_not_pooled_with_earlier_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A recording was added; the runs of the other split count as missing, in every view, and stay in the store."""
    grid = 'SPACE = SearchSpace("plain", BASE, {"strategy": ["finetune", "er"], "split_seed": range(2)}, seeds=[0])\n'
    launched(grid)
    before = read("results", "runs", columns=["run_id", "prepared_hash"])
    assert len(set(before["prepared_hash"])) == 1, "one for both splits"
    monkeypatch.setattr("tests.cli.test_scores.FILE", FILE.replace("480", "496"))
    forget("worn")
    launched(grid.replace("range(2)", "range(1)"))
    Path("own.py").write_text(FILE + grid)
    forget("worn")
    left_aside = (
        "2 runs are of another edition of the data and left aside: they count as missing, and a launch computes"
    )
    with pytest.warns(UserWarning, match=f"search space 'plain': {left_aside} them anew") as warned:
        table = scores("own.py", "results")
    assert {warning.filename for warning in warned} == {__file__}
    assert set(zip(table["n"], table["finished"], table["requested"], strict=True)) == {(1, 1, 2)}
    with pytest.warns(UserWarning, match=left_aside) as warned:
        runs = read("results", "runs", space="own.py")
    assert {warning.filename for warning in warned} == {__file__}
    assert set(runs["split_seed"]) == {0}
    assert not set(runs["run_id"]) & set(before["run_id"])
    listed = CliRunner().invoke(command, ["runs", "own.py"], catch_exceptions=False)
    assert f"{left_aside} them anew; list the runs of all editions with: clops-sweep runs\n" in listed.stderr
    assert "\n2 runs in " in listed.stdout
    for edition in (before["prepared_hash"].iloc[0], runs["data_hash"].iloc[0]):  # without files
        drawn = CliRunner().invoke(command, ["report", "--data-hash", edition], catch_exceptions=False)
        assert drawn.exit_code == 0, drawn.output
    _, named = listed.stderr.split("list the runs of all editions with: clops-sweep ")
    words = [*shlex.split(named), "--json"]
    every = json.loads(CliRunner().invoke(command, words, catch_exceptions=False).stdout)["runs"]
    assert len(every) == 6
    assert {run["settings"]["prepared_hash"] for run in every} > set(before["prepared_hash"])
    claimed = CliRunner().invoke(command, ["claims", "own.py", "--own-data"], catch_exceptions=False)
    assert f"plain: {left_aside} them anew\n" in claimed.stderr
    forget("worn")
    assert launched(grid).scores()["finished"].tolist() == [2, 2]


def test_runs_of_a_file_say_that_its_recordings_changed(in_process: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the data are prepared again, stored runs do not count, and "0 runs" alone does not say why."""
    monkeypatch.delenv("CLOPS_DATA_ROOT", raising=False)
    np.save("y.npy", np.arange(480) % 4)
    of_file = FILE.replace('scenarios=["class_il_union"]', 'scenarios=["class_il_union"], files=["y.npy"]', 1)
    Path("own.py").write_text(of_file.replace("np.arange(480) % 4", 'np.load(data_root / "y.npy")', 1) + PLAIN)
    sweep("own.py", "results", ray=False)
    in_process("runs", "own.py")  # its error output has the lines of the sweep, too
    assert in_process("runs", "own.py").stderr == ""
    np.save("y.npy", np.arange(480) // 2 % 4)
    assert "data set worn changed since it was prepared (edited: y.npy)" in in_process("runs", "own.py").stderr
