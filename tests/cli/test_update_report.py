"""`clops-sweep update-report` on two small runs of a data set with columns for subgroups."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner, Result

from clops_sweep import ContinualRun, Criteria, RunConfig, UsageError, open_frames, read, update_report
from clops_sweep.analysis.dashboard.update_reports import reports_of
from clops_sweep.analysis.statistics import MIN_UNITS
from clops_sweep.analysis.update.criteria import read_criteria
from clops_sweep.analysis.update.figures import Flips, draw_flips
from clops_sweep.analysis.update.last_task import task_facts
from clops_sweep.analysis.update.measures import Change, Quantity, Slice
from clops_sweep.analysis.update.page import by_verdict, verdict, verdict_in_words
from clops_sweep.analysis.update.report import UpdateReport
from clops_sweep.analysis.update.verdicts import decision
from clops_sweep.cli.commands import command
from clops_sweep.data.catalog import DATASETS
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.store.launch_folders import remember_folders
from clops_sweep.store.run_store import RunStore
from tests.cli.documented import documented
from tests.data.declared_files import declare, forget
from tests.helpers.documentation import examples
from tests.helpers.preloaded import Preloaded
from tests.helpers.stores import record_result, write_finished

CLINIC = """
from tests.data.declared_files import waves
N = 80

@dataset("clinic", scenarios=("class_il",))
def clinic(data_root):
    return Recordings(
        waves(N, 1, 2500), 500, ("II",), "mV", np.arange(N) % 4, ("rest", "walk", "run", "stairs"), np.arange(N) // 4,
        groups={"sex": ["f" if n < 40 else None if n == 79 else "m" for n in range(N)]},
    )
"""
Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, list[str]]]:
    """A folder with prepared frames and a store, and the ids of its runs: fine-tuning, EWC, one without predictions
    and an untrained one.
    """
    folder = tmp_path_factory.mktemp("clinic")
    declare(folder / "clinic.py", CLINIC)
    prepare("clinic", prepared_root=folder / "prepared", data_root=None)
    store = RunStore(folder / "results", keep=["predictions"])
    store.open_for_writing()
    ids = []
    rates = {"learning_rate": 1e-9}
    for strategy, kept, rate in (("finetune", True, {}), ("ewc", True, {}), ("lwf", False, {}), ("ewc", True, rates)):
        config = RunConfig(dataset="clinic", strategy=strategy, epochs_per_task=2, batch_size=8, **rate)
        frames = open_frames("clinic", prepared_root=folder / "prepared")
        ids.append(config.run_id(frames.data_hash))
        result = ContinualRun(config, frames, keep_predictions=kept).run()
        record_result(store, {ids[-1]: config}, result, lambda config, data=frames.data_hash: data, {"device": "cpu"})
    yield folder, ids
    forget()


@pytest.fixture
def ask(made: tuple[Path, list[str]]) -> Ask:
    folder = made[0]
    ending = ["--results", folder / "results", "--prepared-root", folder / "prepared"]

    def asked(*arguments: object) -> Result:
        words = [str(it) for it in ("update-report", *arguments, *ending)]
        return CliRunner().invoke(command, words, standalone_mode=False)

    return asked


def test_a_page_and_json_of_an_update(made: tuple[Path, list[str]], ask: Ask, tmp_path: Path) -> None:
    folder, (run_id, *_) = made
    limits = tmp_path / "limits.toml"
    limits.write_text("max_flips = 1.0\nmin_accuracy = 0\n[min_sensitivity]\nwalk = 0.0\n")
    done = ask(run_id[:10], "--groups", "sex", "--criteria", limits, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert set(found) == documented("update-report")
    assert (found["holds"], found["judged"]) == (True, True)
    assert found["instances"] == sum(it["instances"] for it in found["flips"] if it["column"] == "sex")
    page = Path(found["report"])
    assert page == folder.resolve() / "results" / "report" / f"update-{run_id}.html"
    text = page.read_text()
    assert "All 3 acceptance criteria are met, 3 of 3 not certain." in text
    assert not any(criterion["certain"] for criterion in found["criteria"]), "two or three patients"
    beyond, uncut = found["overall"][-1], found["uncut_calibration"]
    for when in ("before", "after"):
        assert beyond[when]["value"] == max(0, uncut[when]["value"])
    assert "sex f" in text
    limitation = text.partition("Fewer than 20 patients: ")[2].partition(". Their intervals")[0]
    with_intervals = [it for it in found["flips"] if np.isfinite(it["right_to_wrong"]["low"] or np.nan)]
    assert all(it["column"] == "all" or f"{it['column']} {it['name']}" in limitation for it in with_intervals)
    of_few = [it for it in found["flips"] if it["units"] < MIN_UNITS]
    assert not any(f"{it['column']} {it['name']}" in limitation for it in of_few), "they have no intervals"
    assert "http" not in text.replace("http://www.w3.org", "")  # it needs nothing else
    assert '<section id="signatures">' in text
    assert re.fullmatch("[0-9a-f]{64}", found["data"]["SHA-256 of the criteria"])
    assert sum(count for of in found["became"].values() for count in of.values()) in (0, found["instances"])
    assert all(it["units"] <= found["units"] for it in found["classes"])
    predictions = RunStore(folder / "results").read("predictions", run_id)
    old = predictions[predictions["evaluated_on"] == 1].pivot_table("probability_0", "instance", "trained_on")
    truth = predictions[predictions["evaluated_on"] == 1].groupby("instance")["target_0"].first() > 0
    right = [(old[task] > 0.5) == truth for task in (1, 2)]
    assert found["flips"][0]["right_to_wrong"]["value"] == pytest.approx((right[0] & ~right[1]).mean())


def test_without_criteria_an_update_is_not_judged(made: tuple[Path, list[str]], ask: Ask, tmp_path: Path) -> None:
    """A forgotten --criteria opens no gate."""
    folder, (run_id, *_) = made
    done = ask(run_id, "--output", tmp_path / "page.html")
    assert done.exit_code == 3
    assert "\nNo acceptance criteria were given, so the update is not judged.\n" in done.output
    assert '<p class="verdict unjudged"' in (tmp_path / "page.html").read_text()
    report = update_report(folder / "results", run_id, prepared_root=folder / "prepared")
    assert report.holds is None
    assert [report.as_data()[name] for name in ("holds", "judged")] == [None, False]


@pytest.mark.usefixtures("unpainted")
def test_a_page_with_a_title_is_kept(made: tuple[Path, list[str]], ask: Ask) -> None:
    folder, (_, run_id, *_) = made
    page = folder / "results" / "report" / f"update-{run_id}.html"
    ask(run_id, "--title", "St Anna")
    done = ask(run_id, "--json")
    assert f"{page}: kept, because it has a title, which this report lacks" in done.stderr
    assert Path(json.loads(done.stdout)["report"]).name == f"update-{run_id}-2.html"
    assert "<h1>Update report: St Anna</h1>" in page.read_text()
    ask(run_id, "--title", "St Bertha")
    assert "<h1>Update report: St Bertha</h1>" in page.read_text()


@pytest.mark.usefixtures("unpainted")
def test_a_page_judged_by_other_criteria_is_kept(made: tuple[Path, list[str]], ask: Ask, tmp_path: Path) -> None:
    folder, (run_id, *_) = made
    page = folder / "results" / "report" / f"update-{run_id}.html"
    for former in page.parent.glob(f"update-{run_id}*"):
        former.unlink()
    strict, loose = tmp_path / "strict.toml", tmp_path / "loose & wide.toml"
    strict.write_text("max_flips = 0\nmin_accuracy = 1.0\n")
    loose.write_text("max_flips = 1\n")

    def written(*words: object) -> tuple[str, str]:
        done = ask(run_id, *words, "--json")
        return Path(json.loads(done.stdout)["report"]).name, done.stderr

    assert written("--criteria", strict)[0] == page.name
    judged = page.read_text()
    name, said = written("--criteria", loose)
    assert name == f"update-{run_id}-2.html"
    day = datetime.fromtimestamp(page.stat().st_mtime, UTC).date()
    relaxed = html.unescape((page.parent / name).read_text())
    (verdict,) = re.findall(r'<p class="verdict[^>]*>([^<]*)[.]</p>', html.unescape(judged))
    assert "acceptance criteri" in verdict
    verdict = verdict.replace("\N{NO-BREAK SPACE}", " ")
    assert f"Judged by other criteria on {day} ({page.name}): {verdict}. Limits that differ: " in relaxed
    assert "Limits that differ: max_flips 0 there, 1 here; min_accuracy 1 there, none here." in relaxed
    assert "Judged by other criteria" not in judged
    why = rf"kept, because it has acceptance criteria of SHA-256 [0-9a-f]{{8}}, which this report lacks; .* is {name}"
    assert re.search(why, said)
    name, said = written()
    assert name == f"update-{run_id}-3.html"
    assert re.search(why.replace("-2.html", "-3.html"), said)
    assert page.read_text() == judged
    loose.write_text("# the same limits\nmax_flips = 1\n")
    assert written("--criteria", loose)[0] == f"update-{run_id}-2.html", "the same criteria replace the same page"
    renamed = strict.rename(tmp_path / "agreed.toml")
    assert written("--criteria", renamed)[0] == page.name
    titles = [title for _, title in reports_of(RunStore(folder / "results"), run_id)]
    assert {re.sub(" [0-9a-f]{8}$", " HASH", title) for title in titles} == {
        "after its last task, criteria loose & wide.toml HASH",
        "after its last task",
        "after its last task, criteria agreed.toml HASH",
    }


@pytest.mark.usefixtures("unpainted")
def test_without_an_id_the_newest_run_that_fits_is_offered(made: tuple[Path, list[str]], ask: Ask) -> None:
    with_predictions = {made[1][0], made[1][1], made[1][3]}
    done = ask()
    assert isinstance(done.exception, UsageError)
    offered = re.search(r"newest run that fits: clops-sweep (update-report (\w+) --plugins .+)", str(done.exception))
    assert offered is not None
    assert offered[2] in with_predictions
    words = [*shlex.split(offered[1]), "--prepared-root", str(made[0] / "prepared")]
    assert CliRunner().invoke(command, words, standalone_mode=False).exit_code == 3
    done = ask("--against", offered[2])
    other = re.search(r"update-report (\w+) --against", str(done.exception))
    assert other is not None
    assert other[1] in with_predictions - {offered[2]}


@pytest.mark.usefixtures("unpainted")
def test_a_criterion_that_fails_gives_exit_status_1(made: tuple[Path, list[str]], ask: Ask, tmp_path: Path) -> None:
    limits, page = tmp_path / "limits.toml", tmp_path / "page.html"
    limits.write_text("max_flips = 1\nmin_accuracy = 1.0\n")
    done = ask(made[1][3], "--criteria", limits, "--output", page)
    assert done.exit_code == 1
    assert "FAILS  min_accuracy" in done.output
    header = page.read_text().partition("<header>")[2]
    assert '<p class="what">data set clinic; run ' in header
    first = header.partition('<p class="verdict')[2].partition("</p>")[0]
    plain = first.replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(r">1 of 2 acceptance criteria not met: accuracy \d+ % \(limit: at least 100 %\)\.$", plain)
    assert " %" not in first, "a percentage stays on one line"
    assert "<b>fails, not certain" in header
    assert header.count("fails, not certain") == 2, "a verdict stands once: as text, and as what its column sorts by"
    rows = re.findall("<tr.*?</tr>", header.partition('<figure id="decisions">')[2].partition("</table>")[0], re.DOTALL)
    verdicts = [re.sub("<.*?>", " ", row).split()[0].strip(",") for row in rows[1:]]
    assert verdicts == ["fails", "holds"]


@pytest.mark.parametrize(
    ("low", "value", "high", "words"),
    [
        (0.0, 0.042, 0.125, "holds, not certain: the interval crosses the limit"),
        (0.01, 0.06, 0.08, "fails, not certain: the interval crosses the limit"),
        (0.0, 0.02, 0.05, "holds, not certain: the interval crosses the limit"),
        (0.0, 0.02, 0.04, "holds"),
        (0.06, 0.07, 0.08, "fails"),
        (np.nan, 0.0, np.nan, "holds, not certain: all resamples agree, and others may differ"),
        (np.nan, 1.0, np.nan, "fails"),
    ],
)
def test_a_verdict_whose_interval_crosses_its_limit_is_not_certain(
    low: float, value: float, high: float, words: str
) -> None:
    made = decision("max_flips", "", 0.05, Quantity(value, low, high), 24, 20)
    assert verdict_in_words(made, "patient") == words
    assert made.crosses == ("crosses" in words)
    assert made.certain == ("not certain" not in words)
    of_few = decision("max_flips", "", 0.05, Quantity(value, low, high), 24, 19)
    assert not of_few.certain
    assert made.crosses or "not certain: fewer than 20 patients" in verdict_in_words(of_few, "patient")
    assert made.holds == (value <= 0.05)
    unjudged = decision("max_flips", "", 0.05, Quantity(value, low, high), 24, 2)
    assert by_verdict([unjudged, made])[0] is (unjudged if made.holds else made)


FEW = """
N = 160

@dataset("few", scenarios=("class_il",))
def few(data_root):
    people = np.arange(N) // 4
    return Recordings(
        np.random.default_rng(0).normal(size=(N, 1, 100)).astype(np.float32), 50, ("II",), "mV",
        np.arange(N) % 4, ("rest", "walk", "run", "stairs"), people,
        groups={"site": ["small" if person % 20 == 9 else "large" for person in people]},
    )
"""


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A folder with prepared frames, of which a site has fewer than three test patients, and the id of a run."""
    folder = tmp_path_factory.mktemp("few")
    declare(folder / "few.py", FEW)
    prepare("few", prepared_root=folder / "prepared", data_root=None)
    store = RunStore(folder / "results", keep=["predictions"])
    store.open_for_writing()
    frames = open_frames("few", prepared_root=folder / "prepared")
    for seed in range(20):
        config = RunConfig(dataset="few", strategy="finetune", network="linear", epochs_per_task=1, split_seed=seed)
        frames = open_frames("few", prepared_root=folder / "prepared", split_seed=seed)
        result = ContinualRun(config, frames, keep_predictions=True).run()
        if 0 < result.predictions.query("patient in ('9', '29')")["patient"].nunique() < MIN_UNITS:
            break
    run_id = config.run_id(frames.data_hash)
    record_result(store, {run_id: config}, result, lambda config: frames.data_hash, {"device": "cpu"})
    yield folder, run_id
    forget()


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("limit", [0, 1], ids=["too strict", "met by all"])
def test_a_criterion_about_fewer_than_three_people_is_not_judged(
    few: tuple[Path, str], tmp_path: Path, limit: float
) -> None:
    folder, run_id = few
    criteria = Criteria(max_group_flips=1, min_group_accuracy=1 - limit)
    report = update_report(
        folder / "results", run_id, groups=["site"], criteria=criteria, prepared_root=folder / "prepared"
    )
    small = [decision for decision in report.criteria if decision.of == "site small"]
    large = [decision for decision in report.criteria if decision.of == "site large"]
    assert [decision.holds for decision in small] == [None, None]
    assert all(decision.units < 3 for decision in small)
    assert [decision.holds for decision in large] == [True, bool(limit)]
    assert report.holds is (None if limit else False)
    sizes = {part.name: (part.instances, part.units) for part in report.groups}
    assert {(decision.instances, decision.units) for decision in small} == {sizes["small"]}
    assert {(decision.instances, decision.units) for decision in large} == {sizes["large"]}
    among = [part for part in report.flips if part.column in ("class", "site") and part.units >= MIN_UNITS]
    assert report.worst is not None
    assert report.worst in among, "few people are not the worst group"
    assert report.worst.accuracy.after.value == min(part.accuracy.after.value for part in among)
    alone = [part for part in report.flips if part.units < MIN_UNITS]
    none = replace(report, flips=(report.flips[0], *alone), criteria=())
    assert none.worst is None
    assert none.as_data()["worst"] is None
    assert "no class or subgroup has 3 patients" in none.html()

    uncertain = decision("max_flips", "", 0.05, Quantity(0.042, 0.0, 0.125), 24, 3)
    one = verdict(replace(report, criteria=(uncertain,)))
    assert one == "The acceptance criterion is met, but not certain."
    both = verdict(replace(report, criteria=(uncertain, uncertain)))
    assert both == "All 2 acceptance criteria are met, 2 of 2 not certain."

    file = tmp_path / "limits.toml"
    file.write_text(f"max_group_flips = 1\nmin_group_accuracy = {1 - limit}\n")
    ending = ["--results", str(folder / "results"), "--prepared-root", str(folder / "prepared")]
    words = ["update-report", run_id, "--groups", "site", "--criteria", str(file), *ending]
    said = CliRunner().invoke(command, words, standalone_mode=False)
    assert said.exit_code == (3 if limit else 1)
    instances, units = sizes["small"]
    patients = "1 patient" if units == 1 else f"{units} patients"
    assert re.search(f"limit 100 %; {instances} recordings of {patients} in .+, too few to judge", said.output)
    assert "2 cannot be judged, because they are about fewer than 3 patients." in said.output
    as_data = json.loads(CliRunner().invoke(command, [*words, "--json"], standalone_mode=False).stdout)
    assert as_data["holds"] is (None if limit else False)
    assert {decision["holds"] for decision in as_data["criteria"] if decision["of"] == "site small"} == {None}
    page = report.html()
    assert f'class="verdict {"unjudged" if limit else "failed"}"' in page
    rows = re.findall("<tr.*?</tr>", page.partition('<figure id="decisions">')[2].partition("</table>")[0], re.DOTALL)
    unjudged = [row for row in rows if "too few patients to judge" in row]
    for row, name in zip(unjudged, ("decisions that became wrong", "accuracy"), strict=True):
        assert f">{name} in site small</td>" in row
        assert f">{instances} recordings of {patients} in " in row


@pytest.mark.nightly
def test_a_page_without_the_plug_ins_keeps_the_fuller_one_and_names_the_command(
    few: tuple[Path, str], tmp_path: Path, environment: dict[str, str], commands: Preloaded
) -> None:
    """A process of its own knows no data set of the file."""
    folder, run_id = few
    shutil.copytree(folder / "results", tmp_path / "results", ignore=shutil.ignore_patterns("report"))
    shutil.copytree(folder / "prepared", tmp_path / "prepared")
    (tmp_path / "few.py").write_text((folder / "few.py").read_text())
    remember_folders(RunStore(tmp_path / "results"), tmp_path / "prepared")
    report = tmp_path / "results" / "report"
    complete = ["--plugins", "few.py", "--prepared-root", "prepared"]

    def ask(*words: str) -> str:
        done = commands.run(tmp_path, environment, "update-report", run_id, *words)
        assert done.returncode == 3, done.stderr
        return done.stderr

    assert ask("--groups", "site", *complete) == ""
    page = report / f"update-{run_id}.html"
    fuller = page.read_bytes()
    said = ask()
    assert page.read_bytes() == fuller
    assert f"{page}: kept, because it has subgroups by site, tracings and titles of tasks, which this report" in said
    assert "dataset &#39;few&#39; is not registered" in (report / f"update-{run_id}-2.html").read_text()
    ask(*complete)
    assert page.read_bytes() == fuller
    assert sorted(file.name for file in report.iterdir()) == [f"update-{run_id}-2.html", f"update-{run_id}.html"]
    named = re.search("with them: clops-sweep update-report (.+)", said)
    assert named is not None
    assert shlex.split(named[1])[0] == run_id
    assert ask(*shlex.split(named[1])[1:]) == ask(*complete)
    said = ask("--output", str(page))
    assert f"{page}: replaced as asked, but it has subgroups by site, tracings" in said
    assert page.read_bytes() != fuller
    page.write_text("<p>Another page.")
    assert "kept, because an earlier version or another program wrote it" in ask("--groups", "site", *complete)
    assert page.read_text() == "<p>Another page."


def test_the_example_of_the_page_runs(made: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, (run_id, *_) = made
    (block,) = examples("update_report")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(folder / "prepared"))
    names: dict[str, Any] = {}
    exec(block.replace("11c2d63a", run_id).replace('"sex", "age"', '"sex"'), names)
    assert names["report"].html().startswith("<!DOCTYPE html>")


def test_runs_of_different_data_are_refused(made: tuple[Path, list[str]], tmp_path: Path) -> None:
    folder, (one, *_) = made
    shutil.copytree(folder / "results", tmp_path / "results")
    store, other = RunStore(tmp_path / "results"), "f" * 24
    runs, predictions = store.table("runs", one), store.table("predictions", one)
    renamed = [it.set_column(0, "run_id", pa.array([other] * len(it))) for it in (runs, predictions)]
    place = renamed[0].schema.get_field_index("data_hash")
    renamed[0] = renamed[0].set_column(
        place, "data_hash", pc.binary_join_element_wise(renamed[0]["data_hash"], "x", "")
    )
    tables = {name: store.table(name, one).slice(0, 0) for name in ("r_matrix", "curves", "instances")}
    write_finished(store, other, {**tables, "runs": renamed[0], "predictions": renamed[1]})
    with pytest.raises(UsageError, match=r"different data \(the prepared data have changed in between\)"):
        update_report(store.uri, other, against=one)


def test_a_key_of_thousands_of_names_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    file = tmp_path / "criteria.toml"
    file.write_text(".".join(["a"] * 9000) + " = 1\n")
    with pytest.raises(UsageError, match=r"criteria.toml: has 18,004 bytes; expected at most 16,384"):
        read_criteria(file)


WARD = """
from tests.data.declared_files import waves
N = 160
CODES = np.arange(N) // 2 % 4
PEOPLE = np.arange(N) // 8

@dataset("ward", scenarios=("class_il", "class_il_union", "time_il", "domain_il", "subject_il"))
def ward(data_root):
    return Recordings(
        waves(N, 1, 100), 50, ("II",), "mV", CODES, ("SR", "AF", "AFL", "PVC"), PEOPLE,
        times=np.datetime64("2020-01-01") + PEOPLE.astype("timedelta64[D]"),
        domains={"site": np.array(["A", "B"])[PEOPLE % 2]},
    )


@dataset("divided", scenarios=("time_il",))
def divided(data_root):
    return Recordings(
        waves(N, 1, 100), 50, ("II",), "mV", CODES, ("SR", "AF", "AFL", "PVC"), PEOPLE,
        times=np.datetime64("2020-01-01") + PEOPLE.astype("timedelta64[D]"),
        split=[("train", "train", "test")[person % 3] for person in PEOPLE],
    )


@dataset("rare", scenarios=("domain_il",))
def rare(data_root):
    there = (CODES < 3) | (PEOPLE % 2 == 1)
    return Recordings(
        waves(N, 1, 100)[there], 50, ("II",), "mV", CODES[there], ("SR", "AF", "AFL", "PVC"), PEOPLE[there],
        domains={"site": np.array(["A", "B"])[PEOPLE[there] % 2]},
    )
"""


@pytest.fixture(scope="module")
def ward(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with prepared frames of data sets with classes, dates, sites and people."""
    folder = tmp_path_factory.mktemp("ward")
    declare(folder / "ward.py", WARD)
    for name in ("ward", "rare", "divided"):
        prepare(name, prepared_root=folder / "prepared", data_root=None)
    yield folder
    forget()


def updated(folder: Path, **settings: Any) -> UpdateReport:
    """Train a run with these settings, and compare it with itself before its last task."""
    config = RunConfig(
        **{"dataset": "ward", "network": "linear", "epochs_per_task": 1, "strategy": "finetune"} | settings
    )
    frames = open_frames(config.dataset, prepared_root=folder / "prepared")
    store = RunStore(folder / f"results-{config.dataset}-{config.scenario}", keep=["predictions"])
    store.open_for_writing()
    run_id = config.run_id(frames.data_hash)
    result = ContinualRun(config, frames, keep_predictions=True).run()
    record_result(store, {run_id: config}, result, lambda config: frames.data_hash, {"device": "cpu"})
    return update_report(store.uri, run_id, prepared_root=folder / "prepared")


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize(
    ("settings", "sentences"),
    [
        (
            {"scenario": "class_il"},
            [
                "The classes of the last task are AFL, PVC.",
                "The model before has not learned AFL, PVC: not available before",
                "the task of an instance is known at test time: each decision is among the classes of that task "
                "(AF or SR; AFL or PVC)",
                "need the scenario class_il_union",
            ],
        ),
        (
            {"scenario": "class_il_union"},
            [
                "The model before has not learned AFL, PVC: not available before",
                "the task of an instance is unknown at test time: each decision is among the classes of all tasks "
                "(SR, AF, AFL, PVC)",
            ],
        ),
        (
            {"scenario": "time_il"},
            [
                "The last task has recordings of other dates: Term 3 (2020-01-1",
                "The classes are the same as before: SR, AF, AFL, PVC.",
            ],
        ),
        (
            {"scenario": "domain_il", "domain": "site"},
            [
                "The last task has recordings of another site: B.",
                "The classes are the same as before: SR, AF, AFL, PVC.",
            ],
        ),
        (
            {"scenario": "subject_il", "people_per_task": 6},
            [
                "The last task has recordings of other people: Group 2 (6 people).",
                "Every task is tested on the same people",
                "The classes are the same as before: SR, AF, AFL, PVC.",
            ],
        ),
    ],
    ids=lambda it: it["scenario"] if isinstance(it, dict) else "",
)
def test_the_page_says_what_the_scenario_changes(
    ward: Path, settings: dict[str, Any], sentences: Sequence[str]
) -> None:
    report = updated(ward, **settings)
    page = report.html()
    for sentence in sentences:
        assert sentence in page
    by_class = settings["scenario"].startswith("class_il")
    assert [it.name for it in report.new_classes] == (["AFL", "PVC"] if by_class else [])
    assert (report.new is None) == (by_class or settings["scenario"] == "subject_il")


def test_a_split_that_is_given_is_not_called_random(ward: Path) -> None:
    assert updated(ward, dataset="divided", scenario="time_il").data["split of the patients"] == "given in the data"
    assert updated(ward, scenario="time_il").data["split of the patients"] == "random, split_seed 0"


def test_a_stratified_split_names_its_column(ward: Path) -> None:
    report = updated(ward, scenario="domain_il", domain="site", stratify="site")
    assert report.data["split of the patients"] == "60, 20 and 20 % of the people of each site, split_seed 0"


def test_each_model_has_its_own_patients_in_training(ward: Path, tmp_path: Path) -> None:
    report = updated(ward, scenario="domain_il", domain="site")
    frames = open_frames("ward", prepared_root=ward / "prepared")
    training = {int(frames.patient_names[patient]) for patient in frames.patients[frames.split == 0]}
    of_first = {person for person in training if person % 2 == 0}
    assert 0 < len(of_first) < len(training)
    trained = {name: values for name, *values in report.description}["patients in training"]
    assert trained == [str(len(of_first)), str(len(training))]
    store = ward / "results-ward-domain_il"
    without = update_report(store, report.run_id, prepared_root=tmp_path)
    trained = {name: values for name, *values in without.description}["patients in training"]
    assert trained == ["unknown without the prepared frames", str(len(training))]


@pytest.mark.usefixtures("unpainted")
def test_a_class_of_the_last_site_alone_is_shown_apart(ward: Path) -> None:
    report = updated(ward, dataset="rare", scenario="domain_il", domain="site")
    (new_class,) = report.new_classes
    assert new_class.name == "PVC"
    assert report.new is not None
    predictions = RunStore(ward / "results-rare-domain_il").read("predictions", report.run_id)
    last = predictions[(predictions["trained_on"] == 2) & (predictions["evaluated_on"] == 2)]
    assert new_class.instances == (last["label"] == "PVC").sum()
    assert report.new.instances == (last["label"] != "PVC").sum()
    assert "The model before has not learned PVC: not available before" in report.html()
    assert report.html().count("not available before") == 3  # header, description of the change, table of new classes


def test_without_prepared_frames_the_page_says_where_its_classes_are_from(ward: Path, tmp_path: Path) -> None:
    there = updated(ward, scenario="time_il")
    report = update_report(ward / "results-ward-time_il", there.run_id, prepared_root=tmp_path)
    assert "The last task has recordings of other dates: Term 3." in report.html()
    assert any("is not prepared in" in sentence for sentence in report.limitations)
    assert report.flips[0] == there.flips[0]


def test_in_python_the_file_of_a_data_set_that_is_not_registered_is_to_import(
    ward: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = updated(ward, scenario="time_il")
    arguments = ward / "results-ward-time_il", there.run_id
    monkeypatch.delitem(DATASETS.added, "ward")
    report = update_report(*arguments, prepared_root=ward / "prepared")
    said = "dataset 'ward' is not registered; import the file that declares it"
    assert any(said in sentence for sentence in report.limitations)
    with pytest.raises(UsageError, match=f"{said}$"):
        update_report(*arguments, prepared_root=ward / "prepared", folds=True)


def test_outputs_have_the_names_of_classes_of_the_training_data(ward: Path) -> None:
    updated(ward, scenario="time_il")
    (row,) = RunStore(ward / "results-ward-time_il").rows("runs")
    frames = open_frames("ward", prepared_root=ward / "prepared")
    assert task_facts(row, frames).outputs == {0: "SR", 1: "AF", 2: "AFL", 3: "PVC"}
    assert task_facts(row, None).outputs == {}
    updated(ward, scenario="class_il")
    (row,) = RunStore(ward / "results-ward-class_il").rows("runs")
    assert task_facts(row, frames).outputs == {}, "outputs are positions within a task"


WINDOWS = """
from tests.data.declared_files import waves

@dataset("windows", scenarios=("class_il",))
def windows(data_root):
    return Recordings(
        waves(80, 1, 200), 50, ("II",), "mV", np.arange(80) % 4, ("rest", "walk", "run", "stairs"), np.arange(80) // 4,
        window_seconds=2,
    )
"""


def recordings_by_hand(folder: Path) -> str:
    """The sentence on recordings, from the stored predictions of windows."""
    frames = open_frames("windows", prepared_root=folder / "prepared")
    assert frames.recordings is not None
    rows = read(folder / "results-windows-class_il", "predictions")
    last = rows["trained_on"].max()
    rows = rows[(rows["evaluated_on"] > 0) & (rows["evaluated_on"] < last)]
    rows = rows.assign(recording=frames.recordings[rows["instance"]])
    rows["right"] = (rows["probability_0"] > 0.5) == (rows["target_0"] > 0)
    shares = rows.groupby(["trained_on", "recording"])["right"].mean()
    before, after = shares[last - 1] > 0.5, shares[last] > 0.5
    assert 0 < after.mean() < 1
    return (
        f"Shares and limits count windows. Of {len(after)} recordings, each right if more than half of its windows "
        f"are, {(before & ~after).sum()} became wrong and {(after & ~before).sum()} right: "
        f"{100 * before.mean():.0f} % to {100 * after.mean():.0f} % are right."
    )


@pytest.mark.usefixtures("unpainted")
def test_parts_of_recordings_are_called_windows(ward: Path) -> None:
    declare(ward / "windows.py", WINDOWS)
    prepare("windows", prepared_root=ward / "prepared", data_root=None)
    report = updated(ward, dataset="windows", scenario="class_il")
    assert report.noun == "window"
    assert f"{report.instances} test windows of {report.units} patients" in report.html()
    assert report.recordings == recordings_by_hand(ward)
    assert f"<p>{report.recordings}</p>" in report.html()
    whole = updated(ward, scenario="time_il")
    assert (whole.noun, whole.recordings) == ("recording", "")
    text = re.sub("<(style|script).*?</(style|script)>", "", whole.html(), flags=re.DOTALL)
    assert f"{whole.instances} test recordings of {whole.units} patients" in text
    assert "instance" not in text


def test_two_intervals_of_a_group_stay_two_lines(made: tuple[Path, list[str]]) -> None:
    flips = Quantity(0.1, 0.0, 0.2)
    accuracy = Change("accuracy", flips, flips, flips)
    figure = draw_flips(Flips((Slice("all", "all", 10, 5, accuracy, flips, flips),)))
    heights = [set(line.get_ydata()) for line in figure.axes[0].lines if len(set(line.get_xdata())) == 2]
    assert len(heights) == 2
    assert not heights[0] & heights[1]
