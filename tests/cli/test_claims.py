"""`clops-sweep claims`: what it says of a store."""

from __future__ import annotations

import html
import json
import re
import shlex
import threading
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from scipy import stats

import clops_sweep
from clops_sweep import OptunaSearch, scores
from clops_sweep.analysis.dashboard.server import Server
from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.errors import UsageError
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.spaces.claims import sha256
from clops_sweep.experiment.spaces.selection import Selection, all_requests
from clops_sweep.experiment.spaces.space_files import load_file, load_spaces
from clops_sweep.planning.launched import remember
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.helpers.stores import write_finished
from tests.helpers.unpainted import unpainted

Score = Callable[[RunConfig], float]

SPACE = """
from clops_sweep import RunConfig, SearchSpace

METHODS = {"CLOPS": {}, "Fine-tuning": {"strategy": "finetune"}}
SPACE = SearchSpace("methods", RunConfig(epochs_per_task=2), {"method": METHODS}, seeds=range(4))
"""


WITHOUT_CLAIMS = (
    'defines no CLAIMS ("Claims and statistics" in the documentation): these are the claims of the CLOPS paper'
)
OWN_DATA = """
import numpy as np
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset


@dataset("wards", scenarios=["class_il_union"])
def wards(data_root):
    label = np.arange(240) % 4
    signals = np.random.default_rng(0).normal(size=(240, 1, 50)) + label[:, None, None]
    return Recordings(signals, 50, ["az"], "g", label, ["lie", "sit", "stand", "walk"], np.arange(240) // 8)


BASE = RunConfig(dataset="wards", scenario="class_il_union", network="linear", epochs_per_task=1)
SPACE = SearchSpace("wards", BASE, {"strategy": ["finetune", "er"]}, seeds=range(2))
"""
HOLDS = (
    "Claim: CLOPS is above fine-tuning: holds (AUC of CLOPS minus fine-tuning: +0.202, at least 0.200, n = 4 seeds)."
)


def told(*arguments: str, prepared_root: Path) -> Result:
    return CliRunner().invoke(command, ["claims", *arguments, "--prepared-root", str(prepared_root)])


def auc(config: RunConfig) -> float:
    return 0.6 + 0.01 * config.seed + (0.2 + 0.001 * config.seed) * (config.strategy == "clops")


@pytest.fixture
def folder(tmp_path: Path, prepared_root: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search space, and a store in which CLOPS is far above fine-tuning."""
    (tmp_path / "space.py").write_text(SPACE)
    write_store(tmp_path, prepared_root, finished_tables, auc)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_store(folder: Path, prepared_root: Path, finished_tables: Tables, score: Score) -> None:
    """Write finished runs of space.py with given scores into the store `results`."""
    content = data_hash("synthetic", prepared_root=prepared_root)
    store = RunStore(folder / "results")
    store.open_for_writing()
    for request in all_requests(load_spaces(folder / "space.py")):
        run_id = request.config.run_id(content)
        tables = finished_tables(run_id, request.config, score(request.config))
        runs = tables["runs"]
        runs = runs.set_column(runs.schema.get_field_index("data_hash"), "data_hash", pa.array([content]))
        version = pa.array([2], pa.int64())
        tables["runs"] = runs.set_column(runs.schema.get_field_index("semantics_version"), "semantics_version", version)
        store.add(run_id, tables)
    store.flush()


@pytest.mark.nightly
def test_splits_of_older_data_are_left_aside_and_counted(
    tmp_path: Path, prepared_root: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "space.py").write_text(SPACE.replace('{"method"', '{"split_seed": [0, 1], "method"'))
    monkeypatch.chdir(tmp_path)
    store = RunStore("results")

    def written(split: int, content: str, day: int) -> None:
        for request in all_requests(load_spaces(Path("space.py"))):
            if request.config.split_seed != split:
                continue
            run_id = request.config.run_id(content)
            tables = finished_tables(run_id, request.config, auc(request.config))
            runs = tables["runs"]
            values = {
                "data_hash": content,
                "prepared_hash": content[:4],
                "started_at": datetime(2026, 1, day, tzinfo=UTC),
            }
            for name, value in values.items():
                column = pa.array([value], runs.schema.field(name).type)
                runs = runs.set_column(runs.schema.get_field_index(name), name, column)
            tables["runs"] = runs
            write_finished(store, run_id, tables)

    written(0, "aaaa0", 1)
    written(1, "aaaa1", 1)
    said = "runs are of another edition of the data and left aside"
    assert said not in told("space.py", prepared_root=prepared_root).stderr
    written(0, "bbbb0", 2)
    assert f"methods: 8 {said}" in told("space.py", prepared_root=prepared_root).stderr
    with (
        pytest.warns(UserWarning, match="data set synthetic was prepared anew since its 24"),
        pytest.warns(UserWarning, match=f"search space 'methods': 8 {said}"),
    ):
        scores("space.py", "results")


def in_one_line(said: Sequence[str]) -> str:
    return " ".join(" ".join(said).split())


@pytest.mark.parametrize("files", [["space.py"], []])
def test_it_says_what_holds_and_what_is_missing(folder: Path, prepared_root: Path, files: list[str]) -> None:
    done = told(*files, "--results", str(folder / "results"), prepared_root=prepared_root)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    if files:
        first = lines.pop(0)
        assert first == f"space.py {WITHOUT_CLAIMS}"
    assert lines[0].startswith("class_il, synthetic: ")
    assert all(len(line) <= 100 for line in lines), "it fits without a terminal"
    assert (
        "holds +0.202, at least 0.199 98.33 % 0.02 4 seeds CLOPS is above fine-tuning in average AUC "
        "(6.1; τ = 2; seeds of patient split 0)"
    ) in in_one_line(lines)
    assert "undecided, no finished run of GEM: class_il_clops_above_gem" in in_one_line(lines)
    assert lines[-1].endswith('"Claims and statistics" in the documentation (docs/claims.md)')


def test_claims_of_the_paper_are_not_taken_for_those_of_a_file_on_its_own_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wards.py").write_text(OWN_DATA)
    prepared = tmp_path / "prepared"
    launch = ["wards.py", "--no-ray", "--no-report", "--prepared-root", str(prepared)]
    launched = CliRunner().invoke(command, launch)
    assert launched.exit_code == 0, launched.output
    done = told("wards.py", prepared_root=prepared)
    assert done.exit_code == 0, done.output
    first, *others = done.stdout.splitlines()
    assert first == f"wards.py {WITHOUT_CLAIMS}"
    assert others == [f"no other run is finished in {tmp_path / 'results'}: no claim can be decided"]
    left_out = "left out: claims on your own data sets (wards); include them with --own-data"
    assert done.stderr.splitlines() == [left_out]
    as_json = told("wards.py", "--json", prepared_root=prepared)
    assert json.loads(as_json.stdout)["claims"] == []
    assert as_json.stderr.splitlines() == [f"wards.py {WITHOUT_CLAIMS}", left_out]
    asked = told("wards.py", "--own-data", prepared_root=prepared)
    assert asked.exit_code == 0, asked.output
    assert asked.stdout.splitlines()[0] == f"wards.py {WITHOUT_CLAIMS}"
    assert "no run of a scenario of the paper is finished" in asked.stdout


CLAIMS = """
from clops_sweep import Claim, Contrast, Side

CLAIMS = [
    Claim("above", "CLOPS is above fine-tuning",
          Contrast(Side("CLOPS", {"strategy": "clops"}), Side("fine-tuning", {"strategy": "finetune"}))),
]
"""


def test_a_report_begins_with_the_claims_of_the_file(
    folder: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    (folder / "space.py").write_text(SPACE + CLAIMS)
    done = CliRunner().invoke(command, ["report", "space.py", "--prepared-root", str(prepared_root)])
    assert done.exit_code == 0, done.output
    page = Path(done.stdout.splitlines()[-1].removeprefix("report: ")).read_text()
    lead = page.partition('<div class="lead">')[2].partition("</div>")[0]
    first, best, *_ = re.findall("<p>(.*?)</p>", lead)
    assert first == HOLDS
    assert best.startswith("Best: CLOPS, ")
    assert "fine-tuning" not in best, "the claim says what is compared"


def test_claims_without_a_pair_are_in_the_report_and_name_the_fields_that_differ(
    tmp_path: Path, prepared_root: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    monkeypatch.chdir(tmp_path)
    unlike = SPACE.replace('"finetune"}', '"finetune", "learning_rate": 0.002}')
    (tmp_path / "space.py").write_text(unlike + CLAIMS)
    write_store(tmp_path, prepared_root, finished_tables, auc)
    fields = "CLOPS has learning_rate 0.001, fine-tuning 0.002"
    why = f"the runs of the two sides differ in fields that neither names: {fields}"
    lines = told("space.py", prepared_root=prepared_root).stdout.splitlines()
    assert lines == [f"no claim is decided: {why} (1 claim)", "claims of this file, not sealed"]
    condition = told("space.py", "--runs", prepared_root=prepared_root).stdout
    assert "above: no run is counted; runs of this claim meet: scenario == " in condition
    done = CliRunner().invoke(command, ["report", "space.py", "--prepared-root", str(prepared_root)])
    assert done.exit_code == 0, done.output
    page = Path(done.stdout.splitlines()[-1].removeprefix("report: ")).read_text()
    lead = page.partition('<div class="lead">')[2].partition("</div>")[0]
    first, *_ = re.findall("<p>(.*?)</p>", lead)
    assert first == f"Claim: CLOPS is above fine-tuning: undecided ({why})."
    section = page.partition('<section id="claims">')[2].partition("</section>")[0]
    assert f"Not compared: CLOPS is above fine-tuning: {why}." in section


def test_what_a_launch_would_refuse_is_not_sealed(folder: Path, prepared_root: Path) -> None:
    refused = SPACE.replace("epochs_per_task=2", "first_tasks=6")  # all tasks there are
    (folder / "new.py").write_text(refused + CLAIMS)
    done = told("new.py", "--seal", prepared_root=prepared_root)
    assert isinstance(done.exception, UsageError)
    assert not (folder / "results" / "claims").exists()


def test_declared_claims_are_decided_and_the_seal_is_told(folder: Path, prepared_root: Path) -> None:
    (folder / "space.py").write_text(SPACE + CLAIMS)
    done = told("space.py", prepared_root=prepared_root)
    assert done.stdout.splitlines()[0] == "claims of this file, not sealed"
    assert "holds +0.202, at least 0.200 95 % 0.02 4 seeds CLOPS is above fine-tuning" in in_one_line(
        done.stdout.splitlines()
    )
    late = told("space.py", "--seal", prepared_root=prepared_root)
    assert "8 runs of this file ended already" in str(late.exception)
    (folder / "new.py").write_text((SPACE + CLAIMS).replace("epochs_per_task=2", "epochs_per_task=3"))
    sealed = told("new.py", "--seal", prepared_root=prepared_root)
    assert sealed.stdout.startswith("1 claim sealed: ")
    assert "never replaced" in str(told("new.py", "--seal", prepared_root=prepared_root).exception)
    (folder / "new.py").write_text((folder / "new.py").read_text().replace('"above"', '"higher"').replace("(4)", "(5)"))
    data = json.loads(told("new.py", "--json", prepared_root=prepared_root).stdout)
    assert data["seal"].endswith(
        "changed since: claim higher was added, claim above was removed, the search space requests other runs "
        "(10 instead of 8): seeds [0, 1, 2, 3, 4] instead of [0, 1, 2, 3]"
    )
    (seal,) = (folder / "results" / "claims").iterdir()
    seal.write_text(seal.read_text().replace("sealed_at", "sealed_on"))
    assert "was edited after it was sealed" in str(told("new.py", prepared_root=prepared_root).exception)
    assert "defines CLAIMS" in str(told("--seal", prepared_root=prepared_root).exception)


@pytest.mark.nightly
def test_a_verdict_that_changed_is_beside_the_earlier_one_in_command_python_and_report(
    folder: Path, prepared_root: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    (folder / "space.py").write_text(SPACE + CLAIMS)
    assert told("space.py", "--seeds", "4", prepared_root=prepared_root).exit_code == 0
    (folder / "space.py").write_text((SPACE + CLAIMS).replace("range(4)", "range(8)"))

    def reversed_later(config: RunConfig) -> float:
        return auc(config) if config.seed < 4 else 0.9 - 0.4 * (config.strategy == "clops")

    write_store(folder, prepared_root, finished_tables, reversed_later)
    said = "; now undecided with 8 pairs"
    done = told("space.py", prepared_root=prepared_root)
    assert said in in_one_line(done.stdout.splitlines())
    data = json.loads(told("space.py", "--json", prepared_root=prepared_root).stdout)
    assert [row["outcome"] for row in data["history"]] == ["holds", "undecided"]
    table = clops_sweep.claims("space.py", "results", prepared_root=prepared_root)
    assert table["changed"][0].startswith("decided as 'holds' on ")
    assert table["changed"][0].endswith(said)
    assert table.attrs["history"] == data["history"]
    for _ in range(2):
        done = CliRunner().invoke(command, ["report", "space.py", "--prepared-root", str(prepared_root)])
        page = Path(done.stdout.splitlines()[-1].removeprefix("report: "))
        assert said in page.read_text()
        kept = pd.read_csv(page.parent / "tables" / "claims-history.csv")
        assert kept["pairs"].tolist() == [4, 8]
        text = (page.parent / "tables" / "claims-history.tex").read_text()
        lines = [line for line in text.splitlines() if line.endswith(r"\\") and "CLOPS is above" in line]
        assert len(lines) == 2
        for line, row in zip(lines, kept.to_dict("records"), strict=True):
            outcome, difference, _, _, n, pairs, *_ = re.sub(r"\\textbf{(.*?)}", r"\1", line).split(" & ")[3:]
            assert (outcome, int(n), int(pairs)) == (row["outcome"], row["n"], row["pairs"])
            assert float(difference.replace("$", "")) == pytest.approx(row["difference"], abs=6e-4)


def test_a_seal_has_the_name_of_the_study_and_survives_a_new_one(folder: Path, prepared_root: Path) -> None:
    (folder / "space.py").write_text((SPACE + CLAIMS).replace("epochs_per_task=2", "epochs_per_task=3"))
    written = (folder / "space.py").read_text()
    assert told("space.py", "--seal", prepared_root=prepared_root).exit_code == 0
    (seal,) = (folder / "results" / "claims").iterdir()
    assert seal.name.startswith("methods-")
    (folder / "space.py").write_text(written.replace('"methods"', '"another name"'))
    assert "never replaced" in str(told("space.py", "--seal", prepared_root=prepared_root).exception)


def interval_of(differences: Sequence[float]) -> tuple[str, str]:
    """Return the bounds of the 90 % t interval of a mean, that of one-sided tests, with three decimals."""
    half = stats.t.ppf(0.95, len(differences) - 1) * np.std(differences, ddof=1) / len(differences) ** 0.5
    return f"{np.mean(differences) - half:.3f}", f"{np.mean(differences) + half:.3f}"


def test_a_claim_that_does_not_hold_is_read_beside_its_smallest_relevant_difference(
    folder: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    claims = CLAIMS.replace('{"strategy": "finetune"}))', '{"strategy": "finetune"})), matters=0.3')
    (folder / "space.py").write_text(SPACE + claims)
    lines = told("space.py", prepared_root=prepared_root).stdout.splitlines()
    heads = next(line for line in lines if line.startswith("verdict"))
    assert heads.split() == ["verdict", "difference", "level", "matters", "n", "claim"]
    row = next(line for line in lines if line.startswith("does not hold"))
    assert re.match(r"does not hold +\+0\.202, at most 0\.203 +95 % +0\.3 +4 seeds ", row)
    assert "matters: the smallest relevant difference of a claim" in lines
    done = CliRunner().invoke(command, ["report", "space.py", "--prepared-root", str(prepared_root)])
    page = Path(done.stdout.splitlines()[-1].removeprefix("report: ")).read_text()
    assert "at most 0.203, n = 4 seeds; smallest relevant difference: 0.3)." in page
    (claim,) = json.loads(told("space.py", "--json", prepared_root=prepared_root).stdout)["claims"]
    assert (claim["verdict"], claim["matters"]) == ("does not hold", 0.3)


def test_a_launch_names_the_list_of_all_claims(folder: Path, prepared_root: Path) -> None:
    several = "CLAIMS = [replace(CLAIMS[0], key=f'above_{number}') for number in range(5)]\n"
    (folder / "space.py").write_text(f"{SPACE}{CLAIMS}from dataclasses import replace\n\n{several}")
    launch = CliRunner().invoke(command, ["space.py", "--no-report", "--prepared-root", str(prepared_root)])
    assert launch.exit_code == 0, launch.output
    (named,) = [line for line in launch.output.splitlines() if line.startswith("list all claims with: ")]
    words = shlex.split(named.removeprefix("list all claims with: clops-sweep "))
    listed = CliRunner().invoke(command, words)
    assert listed.exit_code == 0, listed.output
    assert listed.output.count("CLOPS is above fine-tuning") == 5


def test_undecided_claims_have_differences_and_intervals(
    tmp_path: Path, prepared_root: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.py").write_text(SPACE + CLAIMS)
    noise = {0: 0.05, 1: -0.02, 2: 0.01, 3: -0.01}
    write_store(tmp_path, prepared_root, finished_tables, lambda it: 0.6 + noise[it.seed] * (it.strategy == "clops"))
    lines = told("space.py", prepared_root=prepared_root).stdout.splitlines()
    assert lines[0] == "no claim is decided: no difference is clear yet"
    assert lines[1] == "claims of this file, not sealed"
    row = next(line for line in lines if line.startswith("undecided"))
    mean, low, high = re.search(r"([+-]0\.\d+) \[(-0\.\d+), (0\.\d+)\]", row).groups()
    assert (mean, low, high) == ("+0.008", *interval_of(list(noise.values())))
    assert max(map(len, lines)) <= 100
    few = told("space.py", "--seeds", "2", prepared_root=prepared_root).stdout
    row = next(line for line in few.splitlines() if line.startswith("undecided"))
    assert row.split()[:2] == ["undecided", "+0.015"]


@pytest.fixture
def unsealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.py").write_text(SPACE + CLAIMS)
    return tmp_path


def standing(file: str, prepared_root: Path) -> str:
    Path("results/runs").mkdir(parents=True, exist_ok=True)
    return str(json.loads(told(file, "--json", prepared_root=prepared_root).stdout)["seal"])


def test_a_seal_follows_a_file_that_is_moved_also_once_it_is_edited(unsealed: Path, prepared_root: Path) -> None:
    assert told("space.py", "--seal", prepared_root=prepared_root).exit_code == 0
    assert standing("space.py", prepared_root).endswith(" UTC, before the first run")
    first, *_ = told(prepared_root=prepared_root).output.splitlines()
    named = re.search(r"results: space\.py; 'clops-sweep claims (.*)' decides those of it$", first)
    assert named is not None
    decided = told(*shlex.split(named[1]), prepared_root=prepared_root)
    assert decided.exit_code == 0
    assert "sealed on" in decided.output
    (unsealed / "folder").mkdir()
    moved = (unsealed / "space.py").rename(unsealed / "folder" / "renamed.py")
    assert standing("folder/renamed.py", prepared_root).endswith(" UTC, before the first run, as space.py")
    assert "never replaced" in str(told("folder/renamed.py", "--seal", prepared_root=prepared_root).exception)
    moved.write_text(moved.read_text().replace("range(4)", "range(5)"))
    said = standing("folder/renamed.py", prepared_root)
    assert said.endswith(
        "as space.py; changed since: the search space requests other runs (10 instead of 8): "
        "seeds [0, 1, 2, 3, 4] instead of [0, 1, 2, 3]"
    )


def test_another_file_with_the_same_name_of_study_has_no_seal_of_the_first(unsealed: Path, prepared_root: Path) -> None:
    assert told("space.py", "--seal", prepared_root=prepared_root).exit_code == 0
    other = (unsealed / "space.py").read_text().replace("range(4)", "range(5)")
    (unsealed / "other.py").write_text(other)
    assert standing("other.py", prepared_root) == "not sealed"
    assert told("other.py", "--seal", prepared_root=prepared_root).exit_code == 0
    assert len(list((unsealed / "results" / "claims").iterdir())) == 2
    assert standing("space.py", prepared_root).endswith("before the first run")


def test_a_seal_without_places_is_found_by_its_content(unsealed: Path, prepared_root: Path) -> None:
    """Seals of earlier versions have neither studies nor files."""
    assert told("space.py", "--seal", prepared_root=prepared_root).exit_code == 0
    (seal,) = (unsealed / "results" / "claims").iterdir()
    content = json.loads(seal.read_text())
    for name in ("studies", "files", "sha256"):
        del content[name]
    seal.write_text(json.dumps({**content, "sha256": sha256(content)}))
    assert standing("space.py", prepared_root).endswith("before the first run")
    moved = (unsealed / "space.py").rename(unsealed / "moved.py")
    assert standing("moved.py", prepared_root).endswith("before the first run")
    moved.write_text(moved.read_text().replace("range(4)", "range(5)"))
    assert standing("moved.py", prepared_root) == "not sealed"


def tampered(seal: Path) -> str:
    """Edit the claims in a seal, and return its original text."""
    text = seal.read_text()
    assert "is above" in text
    seal.write_text(text.replace("is above", "is far above"))
    return text


@pytest.mark.parametrize("cut", [False, True])
def test_a_damaged_seal_of_a_moved_file_is_named_and_no_second_seal_is_written(
    unsealed: Path, prepared_root: Path, cut: bool
) -> None:
    assert told("space.py", "--seal", prepared_root=prepared_root).exit_code == 0
    (seal,) = (unsealed / "results" / "claims").iterdir()
    text = tampered(seal)
    if cut:
        seal.write_text(text[:100])
    (unsealed / "space.py").rename(unsealed / "moved.py")
    Path("results/runs").mkdir()
    for words in (["moved.py"], ["moved.py", "--seal"]):
        refused = told(*words, prepared_root=prepared_root)
        assert refused.exit_code != 0
        assert str(refused.exception).endswith(
            f"{seal.name}: was edited after it was sealed; restore the original file"
        )
    seal.write_text(text)
    assert standing("moved.py", prepared_root).endswith("before the first run, as space.py")


def test_a_damaged_seal_of_a_study_that_was_renamed_too_is_known_by_its_runs(
    unsealed: Path, prepared_root: Path
) -> None:
    assert told("space.py", "--seal", prepared_root=prepared_root).exit_code == 0
    (seal,) = (unsealed / "results" / "claims").iterdir()
    tampered(seal)
    (unsealed / "space.py").unlink()
    (unsealed / "new.py").write_text((SPACE + CLAIMS).replace('"methods"', '"new name"'))
    assert "was edited after it was sealed" in str(told("new.py", "--seal", prepared_root=prepared_root).exception)


def test_a_damaged_seal_of_another_file_is_no_matter_of_this_one(unsealed: Path, prepared_root: Path) -> None:
    assert told("space.py", "--seal", prepared_root=prepared_root).exit_code == 0
    (seal,) = (unsealed / "results" / "claims").iterdir()
    tampered(seal)
    (unsealed / "other.py").write_text((unsealed / "space.py").read_text().replace("range(4)", "range(5)"))
    assert standing("other.py", prepared_root) == "not sealed"
    assert told("other.py", "--seal", prepared_root=prepared_root).exit_code == 0
    assert "was edited after it was sealed" in str(told("space.py", prepared_root=prepared_root).exception)


CLAIMED = """
from clops_sweep import Claim, Contrast, Side

CLOPS, FINETUNE = Side("CLOPS", {"strategy": "clops"}), Side("fine-tuning", {"strategy": "finetune"})
CLAIMS = [
    Claim("helps", "CLOPS is above fine-tuning", Contrast(CLOPS, FINETUNE, "auc")),
    Claim("hurts", "Fine-tuning is above CLOPS", Contrast(FINETUNE, CLOPS, "auc")),
]
"""


def overview(monkeypatch: pytest.MonkeyPatch, prepared_root: Path, *files: str) -> str:
    """The HTML of the overview of a dashboard, as a browser gets it."""
    pytest.importorskip("flask", reason="Flask is not installed: the dashboard is not served")
    pages = []
    serve = Server.serve

    def asked_once(server: Server) -> None:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        with urllib.request.urlopen(server.address, timeout=60) as page:
            pages.append(page.read().decode())
        server.stop()
        thread.join()

    with monkeypatch.context() as patched:
        patched.setattr(Server, "serve", asked_once)
        words = ["dashboard", *files, "--port", "0", "--prepared-root", str(prepared_root)]
        done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.exception
    (page,) = pages
    return html.unescape(page)


def claims_in(page: str) -> list[str]:
    said = page.partition('<ul aria-label="Claims">')[2].partition("</ul>")[0]
    return re.findall("<li>(.*)</li>", said)


def test_the_overview_of_a_dashboard_has_the_verdicts(
    folder: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("space.py").write_text(SPACE + CLAIMED)
    lines = claims_in(overview(monkeypatch, prepared_root, "space.py"))
    assert lines[0] == "Claims of this file: 1 holds, 1 does not hold, 0 undecided."
    assert lines[1].startswith("CLOPS is above fine-tuning: holds (AUC of CLOPS minus fine-tuning: +0.20")
    assert lines[2].startswith("Fine-tuning is above CLOPS: does not hold (AUC of fine-tuning minus CLOPS: -0.20")


@pytest.mark.nightly
def test_a_dashboard_of_several_files_decides_the_claims_of_each_on_its_own_runs(
    folder: Path, prepared_root: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were decided on the runs of all files, so the verdict changed with the files that were named."""
    other = SPACE.replace('"methods"', '"others"').replace("epochs_per_task=2", "epochs_per_task=3")
    Path("space.py").write_text(other)
    write_store(folder, prepared_root, finished_tables, lambda config: 0.9 - auc(config))
    Path("space.py").rename("others.py")
    Path("space.py").write_text(SPACE + CLAIMED)
    alone = claims_in(overview(monkeypatch, prepared_root, "space.py"))
    assert alone[1].startswith("CLOPS is above fine-tuning: holds (AUC of CLOPS minus fine-tuning: +0.20")
    assert claims_in(overview(monkeypatch, prepared_root, "others.py", "space.py")) == alone


@pytest.mark.nightly
def test_several_files_decide_the_claims_of_each_on_its_own_runs(
    folder: Path, prepared_root: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command and the report took the runs of all files, so the verdict changed with the files that were named."""
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    other = SPACE.replace('"methods"', '"others"').replace("epochs_per_task=2", "epochs_per_task=3")
    Path("space.py").write_text(other)
    write_store(folder, prepared_root, finished_tables, lambda config: 0.9 - auc(config))
    Path("space.py").rename("others.py")
    Path("space.py").write_text(SPACE + CLAIMED)

    def decided(*files: str) -> list[dict[str, object]]:
        rows = json.loads(told(*files, "--json", prepared_root=prepared_root).stdout)["claims"]
        return [{name: value for name, value in row.items() if name != "where"} for row in rows]

    assert [row["verdict"] for row in decided("space.py")] == ["holds", "does not hold"]
    assert decided("others.py", "space.py") == decided("space.py")
    report = ["report", "others.py", "space.py", "--prepared-root", str(prepared_root)]
    done = CliRunner().invoke(command, report)
    assert done.exit_code == 0, done.output
    page = Path(done.stdout.splitlines()[-1].removeprefix("report: ")).read_text()
    assert re.search("CLOPS is above fine-tuning</?[^:]*: holds|CLOPS is above fine-tuning: holds", page)
    Path("others.py").write_text(other + CLAIMED)
    both = [row["verdict"] for row in decided("others.py", "space.py")]
    assert sorted(both) == ["does not hold", "does not hold", "holds", "holds"]
    assert both[:2] == ["does not hold", "holds"], "those of the first file first"


@pytest.mark.nightly
def test_a_dashboard_without_files_names_those_that_have_the_verdicts(
    folder: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = overview(monkeypatch, prepared_root)
    without_files = "These runs are shown without their search-space files"
    assert without_files not in page, "no launch has recorded a file"
    Path("space.py").write_text(SPACE + CLAIMED)
    remember(Selection.of_files([Path("space.py")]), RunStore(folder / "results"))
    page = overview(monkeypatch, prepared_root)
    assert claims_in(page) == []
    assert without_files in page
    sentence = "The verdicts on 2 claims, and whether data, code or libraries have changed since: "
    named = re.sub("<[^>]+>", "", page.partition(sentence)[2].partition("</p>")[0])
    assert shlex.split(named) == ["clops-sweep", "dashboard", "space.py", "--prepared-root", str(prepared_root)]
    assert claims_in(overview(monkeypatch, prepared_root, *shlex.split(named)[2:]))
    Path("space.py").write_text(SPACE)
    remember(Selection.of_files([Path("space.py")]), RunStore(folder / "results"))
    page = re.sub("<[^>]+>", "", overview(monkeypatch, prepared_root))
    assert "Whether their data, code or libraries have changed since: clops-sweep dashboard space.py" in page
    Path("space.py").unlink()
    assert without_files not in overview(monkeypatch, prepared_root)


def test_claims_are_decided_from_python_as_the_command_decides_them(folder: Path, prepared_root: Path) -> None:
    Path("space.py").write_text(SPACE + CLAIMED)
    root = {"prepared_root": prepared_root}
    table = clops_sweep.claims("space.py", "results", **root)
    assert table.set_index("claim")["verdict"].to_dict() == {"helps": "holds", "hurts": "does not hold"}
    assert table.attrs["seal"] == "not sealed"
    said = json.loads(told("space.py", "--json", prepared_root=prepared_root).output)["claims"]
    for name in ("claim", "difference", "n", "missing", "where"):
        assert table[name].tolist() == [row[name] for row in said]
    (space,), declared = load_file(Path("space.py"))
    assert clops_sweep.claims(space, "results", declared[:1], **root)["verdict"].tolist() == ["holds"]
    with pytest.raises(UsageError, match=r"^claims: expected claims=\[Claim\(...\), ...\], or the path of a file"):
        clops_sweep.claims(space, "results", **root)
    with pytest.raises(UsageError, match=r"^seal_claims: 8 runs of this file ended already"):
        clops_sweep.seal_claims("space.py", "results", **root)
    Path("empty").mkdir()
    tuned = replace(
        space,
        search=OptunaSearch(
            sampler="grid", methods={"CLOPS": {"strategy": "clops"}, "fine-tuning": {"strategy": "finetune"}}
        ),
        axes={},
    )
    for untrained in (space, tuned):  # what a tuned space reports is not known before its search
        without_runs = clops_sweep.claims(untrained, "empty", declared[:1], **root)
        assert without_runs.columns.tolist() == table.columns.tolist()
        assert without_runs[["claim", "verdict", "n"]].to_numpy().tolist() == [["helps", "undecided", 0]]
        assert without_runs["missing"].tolist() == ["no finished run of CLOPS and fine-tuning"]
    sealed = clops_sweep.seal_claims("space.py", "others", **root)
    assert Path(sealed).parent == Path("others").resolve() / "claims"
    again = told("space.py", "--results", "others", "--seal", prepared_root=prepared_root)
    assert "a seal is never replaced" in str(again.exception)


def test_a_launch_ends_with_the_verdicts_of_its_report(
    folder: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    (folder / "space.py").write_text(SPACE + CLAIMS)
    options = ["--prepared-root", str(prepared_root), "--no-ray"]
    done = CliRunner().invoke(command, ["space.py", *options])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    (verdict,) = [line for line in lines if line.startswith("Claim")]
    assert verdict == HOLDS
    assert verdict in re.sub(r"<[^>]*>", "", (folder / "results/report/methods/index.html").read_text())
    assert lines[-2:] == [f"results: {folder / 'results'}", lines[-1]]
    (row,) = json.loads(CliRunner().invoke(command, ["space.py", *options, "--json"]).stdout)["claims"]
    assert (row["claim"], row["verdict"]) == ("above", "holds")
    part = CliRunner().invoke(command, ["space.py", *options, "--limit", "4", "--no-report"])
    of_part = [line for line in part.stdout.splitlines() if line.startswith("Claim")]
    assert of_part == [], "claims apply to whole search spaces"


def test_the_planned_verdict_is_beside_that_on_all_runs(
    unsealed: Path, prepared_root: Path, finished_tables: Tables
) -> None:
    """With seeds added, it had to be found in the history."""
    assert told("space.py", "--seal", prepared_root=prepared_root).exit_code == 0
    write_store(unsealed, prepared_root, finished_tables, auc)
    before = json.loads(told("space.py", "--json", prepared_root=prepared_root).stdout)
    assert before["planned"] == []
    (unsealed / "space.py").write_text((unsealed / "space.py").read_text().replace("range(4)", "range(8)"))

    def reversed_later(config: RunConfig) -> float:
        return auc(config) if config.seed < 4 else 0.9 - 0.4 * (config.strategy == "clops")

    write_store(unsealed, prepared_root, finished_tables, reversed_later)
    said = in_one_line(told("space.py", prepared_root=prepared_root).stdout.splitlines())
    assert "undecided" in said
    planned = "the planned verdict, on the 8 runs that were sealed: holds (AUC of CLOPS minus fine-tuning: +0.202, at"
    assert planned in said
    after = json.loads(told("space.py", "--json", prepared_root=prepared_root).stdout)
    numbers = ("verdict", "difference", "low", "high", "n")
    assert [row["verdict"] for row in after["claims"]] == ["undecided"]
    assert [[row[name] for name in numbers] for row in after["planned"]] == [
        [row[name] for name in numbers] for row in before["claims"]
    ]
    edited = (unsealed / "space.py").read_text().replace("epochs_per_task=2", "epochs_per_task=3")
    (unsealed / "space.py").write_text(edited)
    assert json.loads(told("space.py", "--json", prepared_root=prepared_root).stdout)["planned"] == []


@pytest.mark.parametrize("has_claims", [True, False])
def test_a_seal_is_told_beside_a_second_file_that_is_not_sealed(
    unsealed: Path, prepared_root: Path, finished_tables: Tables, has_claims: bool
) -> None:
    """As for a reviewer: the sealed file stays, and another one asks for more."""
    assert told("space.py", "--seal", prepared_root=prepared_root).exit_code == 0
    write_store(unsealed, prepared_root, finished_tables, auc)
    alone = standing("space.py", prepared_root)
    assert alone.endswith(" UTC, before the first run")
    second = (SPACE + CLAIMS * has_claims).replace('"methods"', '"revision"').replace('"above"', '"later"')
    second = second.replace("epochs_per_task=2", "epochs_per_task=3")
    (unsealed / "revision.py").write_text(second)
    for files in (("space.py", "revision.py"), ("revision.py", "space.py")):
        told_of_both = told(*files, "--json", prepared_root=prepared_root)
        expected = f"{alone} (space.py)" + "; revision.py: not sealed" * has_claims
        assert json.loads(told_of_both.stdout)["seal"] == expected
        (claim,) = told(*files, prepared_root=prepared_root).stdout.splitlines()[:1]
        assert claim == f"claims of {'these files' if has_claims else 'this file'}, {expected}"
    changed = (unsealed / "space.py").read_text().replace("range(4)", "range(3)")
    (unsealed / "space.py").write_text(changed)
    words = json.loads(told("space.py", "revision.py", "--json", prepared_root=prepared_root).stdout)["seal"]
    assert "changed since: the search space requests other runs (6 instead of 8): seeds [0, 1, 2]" in words
