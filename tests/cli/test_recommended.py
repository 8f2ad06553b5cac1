"""Commands that messages recommend work as typed."""

from __future__ import annotations

import ast
import contextlib
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clops_sweep.analysis.dashboard.app import Dashboard
from clops_sweep.analysis.dashboard.server import Server
from clops_sweep.analysis.dashboard.snapshot import FollowedStore
from clops_sweep.analysis.dashboard.source import StoreSource
from clops_sweep.analysis.dashboard.update_reports import commands_for
from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.cli.commands import command
from clops_sweep.data.prepared.commands import data_command
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.plugins.registry import ENCODERS, STRATEGIES
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import forget
from tests.data.published_formats import small_mitbih, write_mitbih_record
from tests.helpers.preloaded import Preloaded
from tests.helpers.unpainted import unpainted

Typed = Callable[[list[str]], "subprocess.CompletedProcess[str]"]
Runs = Callable[[list[str]], None]

FILE = """
import numpy as np
from torch import nn
from clops_sweep import Claim, Contrast, Recordings, RunConfig, SearchSpace, Side, dataset, encoder

@dataset("wearable", scenarios=("class_il_union",))
def wearable(data_root):
    random = np.random.default_rng(0)
    people, labels = np.repeat(np.arange(24), 8), np.tile(np.arange(4), 48)
    signals = random.normal(size=(192, 1, 64)).astype(np.float32) + labels[:, None, None]
    return Recordings(signals, 32, ["acc"], "g", labels, ("a", "b", "c", "d"), people)

@encoder("flat", channels=1, samples=64)
def flat(weights):
    return nn.Flatten()

BASE = RunConfig(dataset="wearable", scenario="class_il_union", network="linear", epochs_per_task=1)
SPACE = SearchSpace("own", BASE, {"strategy": ["finetune", "er"], "split_seed": range(3)}, seeds=1)
ER, FINETUNE = Side("ER", {"strategy": "er"}), Side("fine-tuning", {"strategy": "finetune"})
CLAIMS = [Claim("er", "ER is above fine-tuning", Contrast(ER, FINETUNE, "test_auc"))]
"""
ROOT = "--prepared-root", "my data"
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _without_figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sketch, "drawn", unpainted)
        yield


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "own.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    forget("wearable")
    yield tmp_path
    forget("wearable")
    if "flat" in ENCODERS:
        ENCODERS.forget("flat")


def run(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def said_by(result: Result) -> str:
    return str(result.exception) if result.exception is not None else result.output


def recommended(text: str) -> list[str]:
    """Return the words of the one command that a text recommends."""
    (found,) = re.findall(r"'(clops-sweep [^']+)'", text)
    assert not re.search(r"\b[A-Z]{3,}\b", found), "no placeholder is left"
    return shlex.split(found)


@pytest.fixture
def as_typed(commands: Preloaded) -> Typed:
    """Runs a command in a process of its own, which knows nothing of this one."""
    return lambda words: commands.run(Path.cwd(), os.environ, *words[1:])


@pytest.fixture
def runs_as_typed(as_typed: Typed) -> Runs:
    """Runs a command in a process of its own, without an error."""

    def run(words: list[str]) -> None:
        done = as_typed(words)
        assert done.returncode == 0, done.stderr

    return run


LOOK = "data", "look", "wearable", "--plugins", "own.py", *ROOT


def test_data_that_are_not_prepared(folder: Path, runs_as_typed: Runs) -> None:
    refused = run(*LOOK)
    assert refused.exit_code != 0
    runs_as_typed(recommended(said_by(refused)))
    assert run(*LOOK).exit_code == 0


@pytest.mark.parametrize("file", ["frames.npy", pytest.param("manifest.json", marks=pytest.mark.nightly)])
def test_damaged_data(folder: Path, file: str, runs_as_typed: Runs) -> None:
    assert run("data", "prepare", "wearable", "--plugins", "own.py", *ROOT).exit_code == 0
    (folder / "my data" / "wearable" / file).write_bytes(b"damaged")
    runs_as_typed(recommended(said_by(run(*LOOK))))
    assert run(*LOOK).exit_code == 0


def test_features_that_are_not_computed(folder: Path, runs_as_typed: Runs) -> None:
    assert run("data", "prepare", "wearable", "--plugins", "own.py", *ROOT).exit_code == 0
    from clops_sweep.data.preparing.prepared_data import PreparedData
    from clops_sweep.errors import UsageError
    from clops_sweep.experiment.config import RunConfig
    from clops_sweep.learning.encoders.encoders import Encoders

    of = RunConfig(dataset="wearable", scenario="class_il_union", network="linear", encoder="flat")
    data = PreparedData(folder / "my data", None, Encoders(lambda run_id: b""))
    with pytest.raises(UsageError) as refused:
        data.frames(of.data_key)
    runs_as_typed(recommended(str(refused.value)))
    assert PreparedData(folder / "my data", None, data.encoders).frames(of.data_key).encoded is not None


def test_evict_names_the_folder(folder: Path, runs_as_typed: Runs) -> None:
    runs_as_typed(["clops-sweep", "data", "prepare", "wearable", "--plugins", "own.py", *ROOT])
    runs_as_typed(shlex.split(data_command("evict", "wearable", prepared_root=Path("my data"))))
    assert not (folder / "my data" / "wearable").exists()


@pytest.mark.parametrize("prepared", [True, False])
def test_claims_on_own_data_with_several_splits_are_sealed(folder: Path, prepared: bool) -> None:
    if prepared:
        assert run("data", "prepare", "wearable", "--plugins", "own.py", *ROOT).exit_code == 0
    sealed = run("claims", "own.py", "--seal", *ROOT)
    assert sealed.exit_code == 0, said_by(sealed)
    (seal,) = Path("results/claims").iterdir()
    assert len(json.loads(seal.read_text())["data"]) == 3, "a hash of each split"


def test_plan_solves_splits_of_prepared_data(folder: Path) -> None:
    before = json.loads(run("plan", "own.py", "--json", *ROOT).stdout)
    assert before["unprepared"] == ["wearable"]
    assert run("data", "prepare", "wearable", "--plugins", "own.py", *ROOT).exit_code == 0
    forget("wearable")
    assert json.loads(run("plan", "own.py", "--json", *ROOT).stdout)["unprepared"] == []


# Commands about a store and about other data, each from the message that names it.

STORE = "--results", "my results"
FAILS = """
from clops_sweep import strategy
from clops_sweep.learning.strategies.finetune import FineTuning

@strategy("fails")
class Fails(FineTuning):
    def begin_task(self, task):
        raise RuntimeError("broken on purpose")
"""


def launch(file: str) -> None:
    done = run("launch", file, "--no-ray", "--no-report", *STORE, *ROOT)
    assert done.exit_code == 0, said_by(done)
    forget("wearable")


def commands_in(text: str) -> list[list[str]]:
    """Return the commands of a text or page; each ends with its line, quotation or element."""
    with_words = re.sub(r"<span>([^<]*)</span>", r"\1", text)  # a line breaks between words only
    text = html.unescape(re.sub(r"<[^>]+>", "\n", with_words))
    commands = []
    for line in re.findall(r"clops-sweep \w(?:[^\n'`;()]|'[^'\n]*')+", text):
        with contextlib.suppress(ValueError):  # prose with an apostrophe
            commands.append(shlex.split(re.sub(r" shows \w+$", "", line.rstrip(" ."))))
    return commands


def one_command(text: str, word: str) -> list[str]:
    """Return the first command of a text that has a word."""
    return next(words for words in commands_in(text) if word in words)


def test_a_run_names_its_repetition_and_its_output(folder: Path, runs_as_typed: Runs) -> None:
    launch("own.py")
    store = RunStore("my results")
    run_id = store.read("runs")["run_id"].iloc[0]
    runs_as_typed(one_command(said_by(run("show", run_id, *STORE)), "rerun"))


@pytest.mark.nightly
def test_pages_name_the_repetition_and_the_output_of_runs(folder: Path, runs_as_typed: Runs) -> None:
    """A report, and the page of a run on the dashboard."""
    launch("own.py")
    drawn = run("report", "own.py", *STORE)
    assert drawn.exit_code == 0, said_by(drawn)
    forget("wearable")
    (page,) = Path("my results").glob("report/*/index.html")
    runs_as_typed(one_command(page.read_text(), "rerun"))
    store = RunStore("my results")
    dashboard = Dashboard(FollowedStore(store, StoreSource(store, lambda key: None), 0))
    try:
        shown = dashboard.page("run", {"run": store.read("runs")["run_id"].iloc[0]})
    finally:
        dashboard.close()
    assert shown is not None
    runs_as_typed(one_command(shown, "rerun"))


@pytest.mark.nightly
def test_a_launch_names_the_status_and_that_the_output_of_failed_runs(
    folder: Path, runs_as_typed: Runs, as_typed: Typed
) -> None:
    failing = (
        FILE.partition("ER, FINETUNE = ")[0]
        .replace("BASE = ", FAILS + "\nBASE = ")
        .replace('["finetune", "er"]', '["finetune", "fails"]')
    )
    (folder / "failing.py").write_text(failing)
    words = "launch", "failing.py", "--no-ray", "--no-report", "--max-retries", "0", *STORE, *ROOT
    done = as_typed(["clops-sweep", *words])
    status = one_command(done.stdout + done.stderr, "status")
    shown = as_typed(status)
    assert "broken on purpose" in shown.stdout, shown.stderr
    runs = RunStore("my results").read("runs")
    run_id = runs.loc[runs["status"] == "failed", "run_id"].iloc[0]
    runs_as_typed([run_id if word == "RUN_ID" else word for word in one_command(shown.stdout, "logs")])
    runs_as_typed(["clops-sweep", "report", "failing.py", *STORE, *ROOT])
    (page,) = Path("my results").glob("report/*/index.html")
    store = RunStore("my results")
    followed = FollowedStore(store, StoreSource(store, lambda key: None), 0)
    dashboard = Dashboard(followed, files=["failing.py"], data=PreparedData(folder / "my data"))
    try:
        overview = dashboard.page("", {})
    finally:
        dashboard.close()
    assert overview is not None
    for text in (page.read_text(), overview):
        again = as_typed([*one_command(text, "--retry"), "--no-ray", "--no-report"])
        assert (again.returncode, again.stderr) == (1, "")
        assert "RuntimeError: broken on purpose" in again.stdout


SMALL = """
SPACE = SearchSpace("own", BASE, {"strategy": ["finetune", "er"]}, seeds=1)
"""


@pytest.fixture
def small(folder: Path) -> Path:
    """A search space of two runs, of which the store "my results" has both."""
    (folder / "small.py").write_text(FILE.partition("SPACE = ")[0] + SMALL)
    launch("small.py")
    return folder


@pytest.mark.nightly
def test_a_launch_from_python_names_the_status(folder: Path, as_typed: Typed) -> None:
    head = FILE.partition("SPACE = ")[0].replace("BASE = ", FAILS + "\nBASE = ")
    (folder / "failing.py").write_text(f"{head}\n{SMALL}".replace('["finetune", "er"]', '["fails"]'))
    asked = 'results="my results", prepared_root="my data", ray=False, max_retries=0'
    (folder / "script.py").write_text(f'import clops_sweep\nclops_sweep.sweep("failing.py", {asked})\n')
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True)
    status = one_command(done.stdout + done.stderr, "status")
    shown = as_typed(status)
    assert "broken on purpose" in shown.stdout, shown.stderr


@pytest.mark.nightly
def test_vfdb_names_the_check_of_its_frames(folder: Path, runs_as_typed: Runs) -> None:
    """Small records in the formats of both databases, at the rate of VFDB for its own."""
    root = small_mitbih(folder / "all data")
    rhythms = [("(N", 12, ""), ("(VT", 12, ""), ("(VFL", 12, "")]
    for number in range(418, 426):
        write_mitbih_record(root / "vfdb", str(number), rhythms, rate=250, leads=("ECG",))
    words = ("--option", "frames_per_class=10", "--option", "frames_per_patient_and_class=2", "--json")
    given = "--data-root", str(root), *ROOT
    prepared = run("data", "prepare", "mitbih_vfdb", *given, *words)
    assert prepared.exit_code == 0, said_by(prepared)
    verified = run("data", "verify", "vfdb", *given)
    assert "8 records are intact" in verified.output, said_by(verified)
    check = recommended(verified.output)
    assert check[:4] == ["clops-sweep", "data", "verify", "mitbih_vfdb"]
    runs_as_typed(check)


@pytest.mark.nightly
def test_a_report_of_one_seed_names_the_launch_of_five(folder: Path, runs_as_typed: Runs) -> None:
    """Joint training is above fine-tuning on these data with these settings; the command keeps them."""
    waves = "3 * np.sin(np.arange(64) * (labels[:, None, None] + 1) / 5)"
    text = FILE.partition("SPACE = ")[0].replace("labels[:, None, None]", waves) + SMALL
    (folder / "small.py").write_text(text.replace('"er"', '"joint"'))
    settings = "--set", "learning_rate=0.003", "--set", "epochs_per_task=2"
    done = run("launch", "small.py", "--no-ray", *settings, *STORE, *ROOT)
    assert done.exit_code == 0, said_by(done)
    (page,) = Path("my results").glob("report/*/index.html")
    runs_as_typed([*one_command(page.read_text(), "--seeds"), "--no-ray"])
    assert len(RunStore("my results").statuses()) == 10


def test_a_checklist_names_the_launch_or_a_run(small: Path, runs_as_typed: Runs) -> None:
    listed = run("checklist", "small.py", *STORE, *ROOT)
    runs_as_typed([*one_command(listed.output, "small.py"), "--dry-run"])
    assert len(RunStore("my results").statuses()) == 2, "these are its runs"
    runs_as_typed(one_command(run("checklist", *STORE, *ROOT).output, "show"))


def test_check_names_the_merge_that_mends_copies(small: Path, runs_as_typed: Runs) -> None:
    """The files of a launch, copied under names of another one."""
    for file in sorted(Path("my results").glob("*/*.parquet")):
        written, _, number, digest = file.name.split("-")
        shutil.copy(file, file.with_name(f"{written}-90000000-{number}-{digest}"))
    before = RunStore("my results").table("r_matrix")
    checked = run("check", *STORE)
    said = said_by(checked) + checked.output
    assert "2 runs are there twice" in said
    runs_as_typed(one_command(said, "merge"))
    assert run("check", *STORE).exit_code == 0
    assert RunStore("my results").table("r_matrix").equals(before)


def test_merge_names_the_check_of_the_store_with_incomplete_runs(small: Path, as_typed: Typed) -> None:
    (lost,) = Path("my results").glob("r_matrix/*.parquet")
    lost.unlink()
    merged = run("merge", "another store", "my results")
    assert "2 runs not copied: incomplete" in merged.output, said_by(merged)
    check = one_command(merged.output, "check")
    done = as_typed(check)
    assert lost.name in done.stdout + done.stderr


@pytest.mark.nightly
def test_download_of_generated_data_names_their_preparation(
    folder: Path, monkeypatch: pytest.MonkeyPatch, runs_as_typed: Runs
) -> None:
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(folder / "by default"))
    runs_as_typed(recommended(said_by(run("data", "download", "synthetic", "--data-root", "."))))


def test_new_names_the_launch_of_its_file(folder: Path, runs_as_typed: Runs) -> None:
    said = run("new", "my first.py")
    words = shlex.split(said.output.partition("run it with: ")[2])
    runs_as_typed([words[0], "plan", *words[1:]])


def test_the_options_line_names_the_preparation_with_all_defaults(folder: Path, runs_as_typed: Runs) -> None:
    root = small_mitbih(folder / "all data")
    words = ("--option", "frames_per_class=10", "--option", "frames_per_patient_and_class=2", "--json")
    of_mitbih = ("mitbih", "--data-root", str(root), *ROOT)
    assert run("data", "prepare", *of_mitbih, *words).exit_code == 0
    line = next(it for it in run("data", "counts", *of_mitbih).stdout.splitlines() if it.startswith("options: "))
    runs_as_typed(recommended(line))
    counted = run("data", "counts", *of_mitbih)
    assert line not in counted.stdout.splitlines(), "the recommended command gives the defaults back"


def test_a_launch_names_the_list_of_runs_which_names_a_run(folder: Path, runs_as_typed: Runs) -> None:
    launched = run("own.py", "--no-ray", "--no-report", *ROOT, "--results", "my results")
    (line,) = [it for it in launched.output.splitlines() if it.startswith("list runs with: ")]
    listing = shlex.split(line.partition(": ")[2])
    runs_as_typed(listing)
    lines = run(*listing[1:]).output.splitlines()
    shortened = lines[1].split()[0]
    runs_as_typed([shortened if it == "RUN_ID" else it for it in shlex.split(lines[-1].partition(": ")[2])])


@pytest.mark.nightly
def test_a_launch_that_keeps_predictions_names_the_update_report_with_all_its_parts(
    folder: Path, runs_as_typed: Runs
) -> None:
    words = "--no-ray", "--no-report", *ROOT, "--results", "my results"
    begin = "update report of a typical run of "
    assert begin not in run("own.py", *words).output
    Path("own_criteria.toml").write_text("max_flips = 1.0\n")
    launched = run("own.py", *words, "--keep", "predictions")
    (line,) = [line for line in launched.output.splitlines() if line.startswith(begin)]
    assert " --criteria own_criteria.toml" in line
    assert "no acceptance criteria were found" not in launched.output
    runs_as_typed(shlex.split(line.partition(": ")[2]))
    (page,) = Path("my results", "report").glob("update-*.html")
    assert "Tracings of changed decisions" in page.read_text() or "No decision changed" in page.read_text()
    assert "The acceptance criterion is met" in page.read_text()
    page.unlink()
    store = RunStore("my results")
    row = store.rows("runs")[0]
    for what, text in commands_for(store, row):  # as the page of a run does
        assert what == "this run"
        assert " --criteria own_criteria.toml" in text
        runs_as_typed(shlex.split(text))
    assert len(list(Path("my results", "report").glob("update-*.html"))) == 1


@pytest.mark.nightly
def test_a_dashboard_names_the_command_that_loads_the_recorded_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not served")

    def interrupted(server: Server) -> None:
        server.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve", interrupted)
    method = """
from clops_sweep import Strategy, strategy

@strategy("mine")
class Mine(Strategy):
    def loss(self, batch):
        return self.criterion(self.model(batch.x), batch.y)

BASE ="""
    text = FILE.partition("ER, FINETUNE")[0].replace("BASE =", method).replace('"er"', '"mine"')
    (folder / "own.py").write_text(text)
    assert run("own.py", "--no-ray", "--no-report", *ROOT, "--results", "my results").exit_code == 0
    forget("wearable")
    STRATEGIES.forget("mine")
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    shown = run("dashboard", "--results", "../my results", "--port", "0")
    (notice,) = [line for line in shown.stderr.splitlines() if "is not shown" in line]
    words = shlex.split(notice.partition("To show it: ")[2])
    file = folder / "own.py"
    assert words[1:3] == ["dashboard", str(file)], "all runs are of one search-space file"
    guard = 'if __name__ == "__main__":'
    file.write_text(f"{file.read_text()}\nfrom clops_sweep import sweep\nsweep(SPACE)\n")
    warned = run("dashboard", "--results", "../my results", "--port", "0")
    (notice,) = [line for line in warned.stderr.splitlines() if "is not shown" in line]
    line = len(file.read_text().splitlines())
    assert f"To show it, first put sweep() in line {line} of {file} under {guard} Then use " in notice
    assert shlex.split(notice.rpartition(" Then use ")[2]) == words
    assert "it calls sweep() while it is read" in str(run(*words[1:], "--port", "0").exception)
    STRATEGIES.forget("mine")
    file.write_text(file.read_text().replace("\nsweep(SPACE)", f"\n{guard}\n    sweep(SPACE)"))
    again = run(*words[1:], "--port", "0")
    assert again.exit_code == 0
    assert "is not shown" not in again.stderr
    STRATEGIES.forget("mine")
    forget("wearable")
    plain = file.read_text()
    file.write_text(plain.replace("SPACE =", "WHOLE =").replace("sweep(SPACE)", "sweep(WHOLE)"))
    of_plugins = run("dashboard", "--results", "../my results", "--port", "0")
    (notice,) = [line for line in of_plugins.stderr.splitlines() if "is not shown" in line]
    assert shlex.split(notice.partition("To show it: ")[2])[1:4] == ["dashboard", "--plugins", str(file)]


LIST = "a_launch_names_the_list_of_runs_which_names_a_run"
RUN, FAILED = (
    "a_run_names_its_repetition_and_its_output",
    "a_launch_names_the_status_and_that_the_output_of_failed_runs",
)
INTERRUPTED = "tests/execution/test_interrupted.py:an_interrupted_sweep_is_resumed_with_the_command_that_it_prints"
CHECKLIST = "a_checklist_names_the_launch_or_a_run"
CHANGED = "tests/cli/test_changed_since.py:every_command_says_that_data_and_code_changed_since_the_runs"
UPDATED = "a_launch_that_keeps_predictions_names_the_update_report_with_all_its_parts"
OFFERED = "tests/cli/test_update_report.py:without_an_id_the_newest_run_that_fits_is_offered"
COUNTED = "tests/cli/test_task_counts.py:tasks_have_frames_and_people_of_one_split"
COMPLETE = "tests/cli/test_update_report.py:a_page_without_the_plug_ins_keeps_the_fuller_one_and_names_the_command"
PAGES = "pages_name_the_repetition_and_the_output_of_runs"
EMPTY = "tests/analysis/dashboard/test_dashboard_pages.py:an_empty_store_says_how_to_begin"
FAILED = "a_launch_names_the_status_and_that_the_output_of_failed_runs"
REPEATED = "tests/cli/test_update_criteria.py:the_last_section_has_commands_that_repeat_the_report"
FOLDS = "tests/data/prepared/test_fixed_folds.py:people_keep_the_folds_of_an_earlier_edition_and_new_ones_are_dealt"
PLACES = {
    "clops_sweep/data/preparing/edition_changes.py:__str__": FOLDS,
    "clops_sweep/data/preparing/edition_changes.py:why_folds_differ": (
        "tests/data/prepared/test_fixed_folds.py:a_table_of_other_folds_than_those_of_the_runs_is_named"
    ),
    "clops_sweep/data/declared/fold_table.py:_rows": FOLDS,
    "clops_sweep/cli/show.py:_repetition": RUN,
    "clops_sweep/cli/launch.py:launch": FAILED,
    "clops_sweep/cli/launch.py:_say_best": LIST,
    "clops_sweep/cli/claims.py:_say_sealed_files": (
        "tests/cli/test_claims.py:a_seal_follows_a_file_that_is_moved_also_once_it_is_edited"
    ),
    "clops_sweep/cli/launch.py:_say_claims": "tests/cli/test_claims.py:a_launch_names_the_list_of_all_claims",
    "clops_sweep/cli/runs.py:_say": LIST,
    "clops_sweep/cli/runs.py:runs": (
        "tests/cli/test_scores.py:runs_on_data_that_were_prepared_anew_are_not_pooled_with_earlier_ones"
    ),
    "clops_sweep/cli/task_counts.py:unchecked": COUNTED,
    "clops_sweep/cli/commands.py:_say_status": FAILED,
    "clops_sweep/cli/data.py:_options_line": "the_options_line_names_the_preparation_with_all_defaults",
    "clops_sweep/cli/new.py:new": "new_names_the_launch_of_its_file",
    "clops_sweep/cli/new.py:_write_continued": (
        "tests/cli/test_continue.py:the_file_runs_with_the_settings_of_the_run_once_the_table_is_filled_in"
    ),
    "clops_sweep/data/published/download.py:download": "download_of_generated_data_names_their_preparation",
    "clops_sweep/data/prepared/manifest.py:remedy": "damaged_data",
    "clops_sweep/data/prepared/prepared_folder.py:required_set": "data_that_are_not_prepared",
    "clops_sweep/data/preparing/prepare.py:_of_kept_edition": (
        "tests/data/prepared/test_earlier_editions.py:the_command_that_removes_an_edition_works_as_typed"
    ),
    "clops_sweep/data/preparing/features.py:__init__": "features_that_are_not_computed",
    "analysis/update/report.py:_groups": "evict_names_the_folder",
    "analysis/report/page.py:render_page": PAGES,
    "analysis/report/page.py:rerun": PAGES,
    "analysis/dashboard/run_page.py:run_page": PAGES,
    "analysis/dashboard/app.py:_launch": EMPTY,
    "analysis/update/reproduce.py:commands_for": REPEATED,
    "clops_sweep/api.py:sweep": "a_launch_from_python_names_the_status",
    "clops_sweep/cli/launch.py:_say_outcome": INTERRUPTED,
    "clops_sweep/cli/data.py:verify": "vfdb_names_the_check_of_its_frames",
    "clops_sweep/cli/report.py:commands_for": "a_report_of_one_seed_names_the_launch_of_five",
    "clops_sweep/cli/checklist.py:checklist": CHECKLIST,
    "clops_sweep/store/upkeep.py:faults": "check_names_the_merge_that_mends_copies",
    "clops_sweep/cli/update_report.py:_offer": OFFERED,
    "clops_sweep/cli/update_report.py:update_report": COMPLETE,
    "clops_sweep/cli/launch.py:_say_update_report": UPDATED,
    "analysis/dashboard/update_reports.py:commands_for": UPDATED,
    "clops_sweep/cli/report.py:_retry": FAILED,
    "clops_sweep/planning/changes.py:check_computed_again": (
        "tests/search/test_changes.py:numbers_of_a_finished_run_are_not_replaced_by_those_of_other_code"
    ),
    "clops_sweep/cli/dashboard.py:_of_files": (
        "tests/cli/test_claims.py:a_dashboard_without_files_names_those_that_have_the_verdicts"
    ),
    "clops_sweep/cli/dashboard.py:_remedy": "a_dashboard_names_the_command_that_loads_the_recorded_files",
    "clops_sweep/planning/changes.py:changed_data": CHANGED,
    "clops_sweep/cli/plan.py:_again": CHANGED,
    "analysis/update/report.py:_frames": CHANGED,
    "clops_sweep/cli/rewrite.py:merge": "merge_names_the_check_of_the_store_with_incomplete_runs",
}
"""The functions that name commands, each with the test that runs one of them as typed."""

TEMPLATES = {
    "analysis/report/page.html.jinja": PAGES,
    "analysis/report/parts.html.jinja": PAGES,
    "analysis/report/checklist.md.jinja": CHECKLIST,
    "analysis/dashboard/templates/run.html.jinja": PAGES,
    "analysis/dashboard/templates/overview.html.jinja": EMPTY,
    "analysis/dashboard/templates/under_way.html.jinja": FAILED,
    "analysis/update/page.html.jinja": REPEATED,
}
"""The templates with commands, likewise; all of these come from functions."""

BUILDERS = {
    "data_command",
    "launch_command",
    "rerun_command",
    "store_command",
    "report_command",
    "resume_command",
    "update_report_command",
}
COMMANDS = "|".join(command.commands)


def names_a_command(node: ast.AST) -> bool:
    """Return whether code calls a function that builds commands, or spells one out."""
    if isinstance(node, ast.Constant):
        return re.search(rf"clops-sweep (({COMMANDS})\b|$)|^clops-sweep$", str(node.value)) is not None
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr == "command" and ast.unparse(node.func.value).endswith(("store", "source"))
    return isinstance(node.func, ast.Name) and node.func.id in BUILDERS


def functions_that_name_commands() -> set[str]:
    """Return them from the syntax trees, without the functions that build commands."""
    places = set()
    for file in [*(REPOSITORY / "clops_sweep").rglob("*.py"), *(REPOSITORY / "analysis").rglob("*.py")]:
        for function in ast.walk(ast.parse(file.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            body = function.body[ast.get_docstring(function) is not None :]
            if any(names_a_command(node) for statement in body for node in ast.walk(statement)):
                places.add(f"{file.relative_to(REPOSITORY).as_posix()}:{function.name}")
    return {place for place in places if place.rpartition(":")[2] not in BUILDERS | {"command"}}


PRODUCT = {
    "clops_sweep/store/rerun.py:repeat",
    *(
        "clops_sweep/cli/command.py:_exit_status",
        "clops_sweep/cli/rerun.py:rerun",
        "clops_sweep/store/run_store.py:log_folder",
    ),
    *("clops_sweep/data/prepared/commands.py:default_prepared_root", "clops_sweep/native/__init__.py:why_missing"),
    "clops_sweep/native/__init__.py:_installed_folders",
    *("clops_sweep/machine.py:_installed_commit", "clops_sweep/machine.py:software"),
    *("clops_sweep/execution/observers/mlflow.py:__init__", "clops_sweep/execution/observers/wandb.py:__init__"),
}
"""Functions that name the product or a title, not a command."""


def test_each_function_that_names_a_command_has_a_test_that_runs_it() -> None:
    assert functions_that_name_commands() - PRODUCT == PLACES.keys()
    for test in {*PLACES.values(), *TEMPLATES.values()}:
        file, _, name = test.rpartition(":")
        tests = (REPOSITORY / file).read_text() if file else Path(__file__).read_text()
        assert f"def test_{name}(" in tests


def test_each_template_with_commands_has_a_test_that_runs_them() -> None:
    """A command is spelled out, or is a value or macro whose name says so."""
    names = "|".join(["rerun", "logs", r"\w+[._]command", "command"])
    command = re.compile(rf"clops-sweep (({COMMANDS})\b|\{{\{{|\S+\.py)|\{{\{{[^}}]*\b({names})\b[^}}]*\}}\}}")
    templates = {
        path.relative_to(REPOSITORY).as_posix()
        for folder in ("analysis", "clops_sweep")
        for path in (REPOSITORY / folder).rglob("*.jinja")
        if command.search(path.read_text())
    }
    assert templates == TEMPLATES.keys()
