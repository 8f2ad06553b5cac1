"""Update reports over folds, against a recomputation from the stored predictions with NumPy alone."""

from __future__ import annotations

import base64
import io
import json
import re
import shlex
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pypdf
import pytest
from click.testing import CliRunner, Result
from sklearn.metrics import roc_auc_score

from clops_sweep import ContinualRun, Criteria, RunConfig, UsageError, open_frames, read, update_report
from clops_sweep.analysis.dashboard.update_reports import commands_for, reports_of
from clops_sweep.analysis.runs_of_folds import runs_to_pool
from clops_sweep.analysis.update.folds import check_tested_once
from clops_sweep.analysis.update.paired import last_update
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import declare, forget
from tests.helpers.stores import record_failure, record_result

pytestmark = pytest.mark.usefixtures("unpainted")

FOLDED = """
N = 216
PEOPLE = np.arange(N) // 8
CODES = np.arange(N) % 2

@dataset("folded", scenarios=("domain_il",))
def folded(data_root):
    signals = np.random.default_rng(1).normal(size=(N, 2, 50)).astype(np.float32)
    signals += 0.4 * np.where(PEOPLE % 3 == 2, -1, 1)[:, None, None] * (2 * CODES - 1)[:, None, None]
    signals[8, 1] = 0
    return Recordings(
        signals, 50, ("II", "V5"), "mV", CODES, ("SR", "AF"), PEOPLE,
        domains={"ward": np.array(["A", "B", "C"])[PEOPLE % 3]},
        groups={"sex": [("f", "m")[person // 3 % 2] for person in PEOPLE]},
    )
"""
LIMITS = Criteria(max_flips=0.5, min_new_accuracy=0.5)
FOLDS = ("fold:1/3", "fold:2/3", "fold:3/3")


def config(**settings: Any) -> RunConfig:
    """A config of a small run from ward to ward."""
    base = {"dataset": "folded", "scenario": "domain_il", "domain": "ward", "network": "linear"}
    return RunConfig(**{**base, "strategy": "finetune", "epochs_per_task": 4, "learning_rate": 0.01, **settings})


def add(folder: Path, of: RunConfig, store: str = "results", keep: bool = True) -> str:
    """Compute a run, and return its id."""
    frames = open_frames("folded", prepared_root=folder / "prepared", **of.data_key.view)
    run_id = of.run_id(frames.data_hash)
    result = ContinualRun(of, frames, keep_predictions=keep).run()
    opened = RunStore(folder / store, keep=["predictions"])
    opened.open_for_writing()
    record_result(opened, {run_id: of}, result, lambda _: frames.data_hash, {"device": "cpu"})
    return run_id


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[str]]]:
    """A folder with prepared frames and a store with the runs of three folds, another seed and a random split."""
    folder = tmp_path_factory.mktemp("folded")
    declare(folder / "folded.py", FOLDED)
    prepare("folded", prepared_root=folder / "prepared", data_root=None)
    ids = [add(folder, config(split=fold)) for fold in FOLDS]
    add(folder, config(split=FOLDS[1], seed=1))
    ids.append(add(folder, config()))
    yield folder, ids
    forget()


def ask(folder: Path, *words: str, store: str = "results") -> Result:
    ending = ["--results", str(folder / store), "--prepared-root", str(folder / "prepared")]
    return CliRunner().invoke(command, ["update-report", *words, *ending], standalone_mode=False)


def pooled(folder: Path, ids: list[str], store: str = "results") -> pd.DataFrame:
    """A row for each test recording with labels and decisions of the models before and after the last task."""
    tables = []
    for run_id in ids:
        rows = read(folder / store, "predictions", run_ids=run_id)
        rows["right"] = (rows["probability_0"] > 0.5) == (rows["target_0"] > 0)
        stages = [rows[rows["trained_on"] == stage].set_index("instance") for stage in (2, 3)]
        before, after = stages
        both = after[["run_id", "evaluated_on", "task", "patient", "label", "right"]].copy()
        both[["target_1", "probability_1"]] = after[["target_1", "probability_1"]]
        both["before"] = before["right"]
        both["probability_before"] = before["probability_1"]
        errors = [(after[f"probability_{output}"] - after[f"target_{output}"]) ** 2 for output in (0, 1)]
        both["brier"] = errors[0] + errors[1]
        tables.append(both)
    return pd.concat(tables)


def test_pooled_folds_are_those_of_a_recomputation(made: tuple[Path, list[str]]) -> None:
    folder, (*ids, _) = made
    report = update_report(
        folder / "results",
        ids[1],
        folds=True,
        groups=["sex"],
        criteria=LIMITS,
        prepared_root=folder / "prepared",
    )
    table = pooled(folder, ids)
    assert sorted(table.index) == list(range(216)), "each recording is tested once"
    old, new = table[table["evaluated_on"] < 3], table[table["evaluated_on"] == 3]
    everything, *others = report.flips
    assert (report.instances, report.units) == (144, 18) == (len(old), old["patient"].nunique())
    assert everything.right_to_wrong.value == pytest.approx((old["before"] & ~old["right"]).mean())
    assert everything.right_to_wrong.value > 0, "the test can fail"
    assert everything.accuracy.before.value == pytest.approx(old["before"].mean())
    assert everything.accuracy.after.value == pytest.approx(old["right"].mean())
    assert report.overall[1].after.value == pytest.approx(old["brier"].mean())
    from_pooled = []
    for task in report.earlier:
        rows = old[old["task"] == task.title]
        for auc, score in ((task.auc.before, "probability_before"), (task.auc.after, "probability_1")):
            of_folds = [roc_auc_score(of["target_1"], of[score]) for _, of in rows.groupby("run_id")]
            assert len(of_folds) == 3
            assert auc.value == pytest.approx(np.mean(of_folds)), "the mean of the folds' own values"
            from_pooled.append(abs(roc_auc_score(rows["target_1"], rows[score]) - auc.value))
    assert max(from_pooled) > 1e-3, "the test can fail: pooled probabilities have another AUC"
    detected = {part.name: part.sensitivity.after.value for part in report.classes}
    assert detected == pytest.approx({name: rows["right"].mean() for name, rows in old.groupby("label")})
    of_sex = {"f": old["patient"].astype(int) // 3 % 2 == 0, "m": old["patient"].astype(int) // 3 % 2 == 1}
    for part in others:
        if part.column == "sex":
            assert part.units == old[of_sex[part.name]]["patient"].nunique()
            assert part.accuracy.after.value == pytest.approx(old[of_sex[part.name]]["right"].mean())
    assert report.last_task is not None
    assert report.last_task.accuracy.value == pytest.approx(new["right"].mean())
    assert (report.last_task.instances, report.last_task.units) == (72, 9)
    limits = {decision.criterion: decision.measured.value for decision in report.criteria}
    assert limits == pytest.approx(
        {"max_flips": (old["before"] & ~old["right"]).mean(), "min_new_accuracy": new["right"].mean()}
    )
    low, high = interval_of((old["before"] & ~old["right"]).groupby(old["patient"]).mean().to_numpy())
    assert everything.right_to_wrong.low == pytest.approx(low, abs=0.03)
    assert everything.right_to_wrong.high == pytest.approx(high, abs=0.03)


def interval_of(of_people: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Ends of a bootstrap interval of a mean over people with equally many recordings, with another generator."""
    random = np.random.default_rng(99)
    means = of_people[random.integers(0, len(of_people), (20_000, len(of_people)))].mean(1)
    low, high = np.quantile(means, [0.018, 0.982])  # the levels for 18 people
    return float(low), float(high)


def test_each_fold_is_the_report_of_its_run(made: tuple[Path, list[str]]) -> None:
    folder, (*ids, _) = made
    whole = update_report(folder / "results", ids[0], folds=True, prepared_root=folder / "prepared")
    assert [fold.run_id for fold in whole.folds] == ids
    for fold in whole.folds:
        single = update_report(folder / "results", fold.run_id, prepared_root=folder / "prepared")
        assert (fold.instances, fold.units) == (single.instances, single.units)
        assert fold.accuracy == single.flips[0].accuracy
        assert fold.right_to_wrong == single.flips[0].right_to_wrong
        assert (fold.brier, fold.calibration) == (single.overall[1], single.overall[2])
        aucs = [(task.auc.before.value, task.auc.after.value) for task in single.earlier]
        assert [fold.auc.before.value, fold.auc.after.value] == pytest.approx(np.mean(aucs, axis=0).tolist())
        assert single.last_task is not None
        assert (fold.new_units, fold.new_accuracy) == (single.last_task.units, single.last_task.accuracy)
        assert single.folds == ()
        assert single.pooled == ""
    assert sum(fold.instances for fold in whole.folds) == whole.instances
    assert sum(fold.units for fold in whole.folds) == whole.units


@pytest.mark.nightly
def test_every_fold_gives_one_page(made: tuple[Path, list[str]]) -> None:
    folder, (*ids, _) = made
    pages = []
    for run_id in (ids[0], ids[2]):
        done = ask(folder, run_id[:12], "--folds", "--groups", "sex", "--title", "St <Anna>")
        assert done.exit_code == 3, done.output
        pages.append((folder / "results" / "report" / f"update-{ids[0]}-folds.html").read_text())
    assert pages[0] == pages[1]
    page = pages[0]
    assert "Each of the 27 patients is judged by one of 3 models, which was trained without them." in page
    assert "the verdict is about the recipe" in page
    assert "Each of the 27 patients" in done.output
    assert "St &lt;Anna&gt;" in page
    assert "The models of 3 folds learned ward C (new)." in page
    assert "V5 in 1 recording" in page, "a flat channel"
    text = re.sub(r"</?span>", "", page)
    assert re.search(r"--folds --groups sex --title .*St ", text), "the command that draws the page again"
    counts = {part.name: part.units for part in report_of(folder, ids[0]).counts}
    assert counts["all"] == {"ward A": 9, "ward B": 9, "ward C": 9}
    assert counts["sex f"] == {"ward A": 5, "ward B": 5, "ward C": 5}


def report_of(folder: Path, run_id: str) -> Any:
    return update_report(folder / "results", run_id, folds=True, groups=["sex"], prepared_root=folder / "prepared")


def test_a_person_of_any_fold_is_found_by_pseudonym(made: tuple[Path, list[str]]) -> None:
    folder, (*ids, _) = made
    report = report_of(folder, ids[0])
    others = set(read(folder / "results", "predictions", run_ids=ids[1:3])["patient"])
    for changed in report.people:
        said = ask(folder, ids[0], "--folds", "--json", "--who", changed.pseudonym).stdout
        (person,) = json.loads(said)["people"]
        assert person["pseudonym"] == changed.pseudonym
        if person["person"] in others:
            return
    pytest.fail("no person of the other folds was found")


@pytest.mark.parametrize("folds", [False, True])
def test_a_run_is_not_compared_with_itself(made: tuple[Path, list[str]], folds: bool) -> None:
    folder, (first, *_) = made
    with pytest.raises(UsageError, match=f"a run cannot be compared with itself, and both are run {first}"):
        update_report(folder / "results", first, against=first[:12], folds=folds, prepared_root=folder / "prepared")


def test_runs_that_are_no_complete_folds_are_refused(made: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, (first, *_, random_split) = made
    with pytest.raises(UsageError, match=f"run {random_split}: has no fold, so other splits may test a patient twice"):
        report_of(folder, random_split)
    with pytest.raises(UsageError, match=f"run {random_split}: has no fold"):
        update_report(folder / "results", first, against=random_split, folds=True, prepared_root=folder / "prepared")
    with pytest.raises(UsageError, match="needs the prepared frames, to see that all folds are of one edition"):
        update_report(folder / "results", first, folds=True, prepared_root=tmp_path)


@pytest.mark.nightly
def test_two_recipes_are_compared_fold_by_fold(made: tuple[Path, list[str]]) -> None:
    folder, (*ids, _) = made
    others = [add(folder, config(split=fold, learning_rate=0.5), "recipes") for fold in FOLDS]
    for fold in FOLDS:
        add(folder, config(split=fold), "recipes")
    asked = {"folds": True, "prepared_root": folder / "prepared"}
    report = update_report(folder / "recipes", ids[1], against=others[2], **asked)
    tables = []
    for of_recipe in (others, ids):
        whole = pooled(folder, of_recipe) if of_recipe is ids else pooled(folder, of_recipe, "recipes")
        tables.append(whole.sort_index())
    before, after = tables
    assert (report.instances, report.units) == (216, 27), "those of the last task, too"
    everything = report.flips[0]
    assert everything.right_to_wrong.value == pytest.approx((before["right"] & ~after["right"]).mean())
    assert everything.right_to_wrong.value > 0, "the test can fail"
    assert everything.accuracy.before.value == pytest.approx(before["right"].mean())
    assert everything.accuracy.after.value == pytest.approx(after["right"].mean())
    assert report.last_task is not None
    assert report.last_task.accuracy.value == pytest.approx(after["right"][after["evaluated_on"] == 3].mean())
    assert [task.title for task in report.earlier] == ["ward A", "ward B", "ward C"]
    assert (report.run_id, report.against) == (ids[0], others[0]), "named after fold 1, whichever was given"
    for fold, run_id, other in zip(report.folds, ids, others, strict=True):
        single = update_report(folder / "recipes", run_id, against=other, prepared_root=folder / "prepared")
        assert (fold.run_id, fold.accuracy) == (run_id, single.flips[0].accuracy)
    assert "Each of the 27 patients is judged once before and once after" in report.pooled
    page = report.html()
    assert f"replace those of run {others[0][:8]} and 2 more" in page
    differing = f"Settings that differ: learning_rate 0.5 before, {config().learning_rate} after."
    assert differing in page.partition('<p class="lead">')[2].partition("</p>")[0]
    assert [command for _, command in report.commands if "--against" in command and "--folds" in command]
    assert sum(" rerun " in command for _, command in report.commands) == 6
    done = ask(folder, ids[2], "--folds", "--against", others[1], store="recipes")
    assert f"\n  {differing}\n" in done.output
    name = f"update-{ids[0]}-against-{others[0]}-folds.html"
    assert (folder / "recipes" / "report" / name).is_file(), done.output
    title = f"all folds, {ids[0][:8]} in place of {others[0][:8]}"
    assert reports_of(RunStore(folder / "recipes"), ids[1], ids[0]) == [(name, title)]
    offered = str(ask(folder, "--folds", "--against", others[1], store="recipes").exception)
    assert any(f"update-report {run_id} --against" in offered for run_id in ids)
    with pytest.raises(UsageError, match=f"run {ids[2]} is a fold of the same settings as run {ids[0]}"):
        update_report(folder / "recipes", ids[0], against=ids[2], **asked)


@pytest.mark.nightly
def test_recipes_of_different_folds_are_not_compared(made: tuple[Path, list[str]]) -> None:
    folder, _ = made
    three = [add(folder, config(split=fold), "different") for fold in FOLDS]
    folds_of_four = ("fold:1/4", "fold:2/4", "fold:3/4", "fold:4/4")
    four = [add(folder, config(split=fold, stratify="ward"), "different") for fold in folds_of_four]
    with pytest.raises(
        UsageError, match=f"runs {three[0]} and {four[1]} have 3 and 4 folds; expected runs of the same"
    ):
        update_report(folder / "different", three[0], against=four[1], folds=True, prepared_root=folder / "prepared")


def test_a_missing_fold_is_named_with_the_reason(made: tuple[Path, list[str]]) -> None:
    folder, _ = made
    of = [config(split=fold) for fold in FOLDS]
    first = add(folder, of[0], "incomplete")
    other = add(folder, config(split=FOLDS[1], learning_rate=0.5), "incomplete")
    frames = open_frames("folded", prepared_root=folder / "prepared", **of[2].data_key.view)
    failed = {of[2].run_id(frames.data_hash): of[2]}
    record_failure(
        RunStore(folder / "incomplete"), failed, "ValueError: no", lambda _: frames.data_hash, {"device": "cpu"}
    )
    done = ask(folder, first, "--folds", store="incomplete")
    assert isinstance(done.exception, UsageError)
    rate = config().learning_rate
    assert str(done.exception) == (
        f"run {first}: 2 folds of its settings without a finished run: fold:2/3 (run {other[:8]} differs in "
        f"learning_rate 0.5 instead of {rate}), fold:3/3 (failed); all 3 are needed, so that every patient is tested "
        "once"
    )


def test_a_fold_without_predictions_is_named(made: tuple[Path, list[str]]) -> None:
    folder, _ = made
    ids = []
    for fold in FOLDS:
        ids.append(add(folder, config(split=fold), "without", keep=fold != FOLDS[1]))
    with pytest.raises(UsageError, match=f"run {ids[1]}: its predictions were not stored"):
        update_report(folder / "without", ids[0], folds=True, prepared_root=folder / "prepared")


def test_a_person_who_is_tested_twice_is_refused(made: tuple[Path, list[str]]) -> None:
    folder, (first, second, *_) = made
    parts = [last_update(read(folder / "results", "predictions", run_ids=run_id)).rows for run_id in (first, second)]
    check_tested_once(parts, FOLDS[:2])
    patients = parts[1].patients.copy()
    patients[0] = parts[0].patients[0]
    with pytest.raises(UsageError, match="a patient is tested in fold:1/3 and in fold:2/3, but pooled folds count"):
        check_tested_once([parts[0], replace(parts[1], patients=patients)], FOLDS[:2])


SPACE = """
from clops_sweep import RunConfig, SearchSpace, folds

BASE = RunConfig(
    dataset="folded", scenario="domain_il", domain="ward", network="linear", strategy="finetune", epochs_per_task=4,
    learning_rate=0.01,
)
SPACE = SearchSpace("of_folds", BASE, {"split": folds(3)}, seeds=[0])
"""


def test_a_launch_over_folds_recommends_the_pooled_report(made: tuple[Path, list[str]]) -> None:
    folder, (first, *_) = made
    (folder / "space.py").write_text(SPACE)
    (folder / "space_criteria.toml").unlink(missing_ok=True)
    folders = ["--results", str(folder / "results"), "--prepared-root", str(folder / "prepared")]
    words = [str(folder / "space.py"), "--no-ray", "--no-report", "--keep", "predictions", *folders]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exit_code == 0, done.output
    assert "3 finished, 0 pending" in done.output
    said = re.search(r"update report of all folds of finetune: clops-sweep (update-report .+)", done.output)
    assert said is not None
    assert "--folds" in said[1]
    assert "no acceptance criteria were found in space_criteria.toml beside the search-space file" in done.output
    recommended = CliRunner().invoke(command, [*shlex.split(said[1])], standalone_mode=False)
    assert recommended.exit_code == 3, recommended.output
    assert f"update-{first}-folds.html" in recommended.output


@pytest.mark.parametrize(
    ("change", "options", "which"),
    [
        ("", ["--limit", "1"], "a typical run"),
        (", first_tasks=1", [], None),
        (', strategy="multitask"', [], None),
    ],
)
def test_a_launch_recommends_no_report_that_is_refused(
    made: tuple[Path, list[str]], tmp_path: Path, change: str, options: list[str], which: str | None
) -> None:
    folder, _ = made
    file = tmp_path / "space.py"
    base = SPACE.replace('strategy="finetune", ', "") if "strategy" in change else SPACE
    file.write_text(base.replace("epochs_per_task=4,", f"epochs_per_task=4{change},"))
    folders = ["--results", str(tmp_path / "results"), "--prepared-root", str(folder / "prepared")]
    words = [str(file), "--no-ray", "--no-report", "--keep", "predictions", *options, *folders]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.exit_code == 0, done.output
    said = re.search(r"update report of (.+?) of \w+: clops-sweep (update-report .+)", done.output)
    if which is None:
        assert said is None, done.output
        return
    assert said is not None, done.output
    assert (said[1], "--folds" in said[2]) == (which, False)
    recommended = CliRunner().invoke(command, shlex.split(said[2]), standalone_mode=False)
    assert recommended.exit_code == 3, recommended.output


def test_the_page_of_a_run_has_the_commands_of_its_reports_that_work(made: tuple[Path, list[str]]) -> None:
    folder, (first, *others) = made
    store = RunStore(folder / "results")
    row, random = (store.rows("runs", run_ids=[run_id])[0] for run_id in (first, others[-1]))
    data = PreparedData.found(folder / "prepared", None)
    (folder / "space.py").write_text(SPACE)
    (folder / "space_criteria.toml").write_text("max_group_flips = 1.0\n")
    of_folds = runs_to_pool(store, row, data)
    assert of_folds == [first, *others[:2]]
    commands = commands_for(store, row, data, [str(folder / "space.py")], of_folds)
    assert [what for what, _ in commands] == ["this run", "all folds"]
    for what, text in commands:
        words = shlex.split(text)[1:]
        assert words[words.index("--groups") + 1] == "sex"
        assert words[words.index("--criteria") + 1] == str(folder / "space_criteria.toml")
        assert ("--folds" in words) == (what == "all folds")
        done = CliRunner().invoke(command, [*words, "--prepared-root", str(folder / "prepared")], standalone_mode=False)
        assert done.exit_code == 0, done.output
    pages = [name for name, _ in reports_of(store, others[0], of_folds[0])]
    assert f"update-{first}-folds.html" in pages, "each fold leads to the report on all"
    assert {name.removesuffix("-2.html") for name in pages} <= {f"update-{first}-folds", f"update-{first}-folds.html"}
    assert runs_to_pool(store, random, data) == []
    assert [what for what, _ in commands_for(store, random, data)] == ["this run"]
    ((_, without),) = commands_for(store, row)
    assert shlex.split(without)[1:3] == ["update-report", first]
    assert "--groups" not in shlex.split(without), "columns for subgroups need the prepared data"
    for settings in ({"strategy": "multitask"}, {"first_tasks": 1}):
        without_update = add(folder, config(**settings), "no update")
        other = RunStore(folder / "no update")
        assert commands_for(other, other.rows("runs", run_ids=[without_update])[0], data) == []
    gone = add(folder, config(split=FOLDS[0]), "one fold")
    alone = RunStore(folder / "one fold")
    assert runs_to_pool(alone, alone.rows("runs", run_ids=[gone])[0], data) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_verdicts_fit_the_screen(made: tuple[Path, list[str]], tmp_path: Path, chromium: Any, width: int) -> None:
    """On a phone, "tested on" was wider than the screen."""
    folder, (first, *_) = made
    criteria = Criteria(max_flips=1.0, max_group_flips=0.0, min_sensitivity={"AF": 0.5})
    report = update_report(
        folder / "results", first, folds=True, groups=["sex"], criteria=criteria, prepared_root=folder / "prepared"
    )
    page = tmp_path / "page.html"
    page.write_text(report.html())
    chromium.call(
        "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
    )
    chromium.open(page.as_uri())
    wide = "[...document.querySelectorAll('#decisions .scroll')].map(box => box.scrollWidth - box.clientWidth)"
    assert max(chromium.run(wide)) <= 2
    assert chromium.run("document.documentElement.scrollWidth") <= width
    chromium.call("Emulation.clearDeviceMetricsOverride")


def test_on_a_phone_parts_and_long_tables_are_folded_and_paper_has_all(
    made: tuple[Path, list[str]], chromium: Any, tmp_path: Path
) -> None:
    """The page was 30 screens long, of which the verdicts are two."""
    folder, (*ids, _) = made
    report = update_report(
        folder / "results", ids[1], folds=True, groups=["sex"], criteria=LIMITS, prepared_root=folder / "prepared"
    )
    page = tmp_path / "page.html"
    page.write_text(report.html())
    rows = "document.querySelectorAll('#slices tbody tr')"
    shown = f"[...{rows}].filter(it => it.checkVisibility()).length"
    folded = "document.querySelectorAll('details.part:not([open])').length"
    chromium.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    try:
        chromium.open(page.as_uri())
        height = chromium.run("document.documentElement.scrollHeight")
        assert chromium.run(f"{folded} === document.querySelectorAll('details.part').length")
        assert chromium.run("document.getElementById('decisions').checkVisibility()"), "the verdicts are not folded"
        paper = chromium.call("Page.printToPDF", displayHeaderFooter=False)["data"]
        assert chromium.run("document.documentElement.scrollHeight") == height, "folded again after printing"
        chromium.run("location.hash = 'subgroups'; new Promise(done => requestAnimationFrame(done))")
        assert chromium.run("document.querySelector('#subgroups > details').open"), "a link opens its part"
        assert chromium.run(shown) == 5 < len(report.flips)
        button = chromium.run("document.querySelector('#slices .rest').textContent")
        chromium.run("document.querySelector('#slices .rest').click()")
        assert chromium.run(shown) == len(report.flips)
        chromium.run("document.querySelector('.unfold button').click()")
        assert chromium.run(folded) == 0
        assert chromium.run("document.documentElement.scrollHeight") > 3 * height
        assert chromium.run("document.documentElement.scrollWidth") <= 390
    finally:
        chromium.call("Emulation.clearDeviceMetricsOverride")
        chromium.open("about:blank")
        chromium.events.clear()
    reader = pypdf.PdfReader(io.BytesIO(base64.b64decode(paper)))
    words = unicodedata.normalize(
        "NFKC", " ".join(page.extract_text() for page in reader.pages)
    )  # ff may be one letter
    for person in report.people:
        assert person.pseudonym in words
    for text in ("How to reproduce", "prepared by", "A verdict is certain if", "Sensitivity at a specificity"):
        assert text in " ".join(words.split())
    assert str(len(report.flips)) in button
    assert button not in " ".join(words.split())
