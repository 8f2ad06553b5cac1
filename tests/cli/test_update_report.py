"""`clops-sweep update-report` on two small runs of a data set with columns for subgroups."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner, Result

from clops_sweep import ContinualRun, RunConfig, UsageError, open_frames, update_report
from clops_sweep.analysis.update.criteria import read_criteria
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import prepare
from clops_sweep.store.run_store import RunStore
from tests.cli.documented import documented
from tests.data.declared_files import declare, forget
from tests.helpers.documentation import examples
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
    assert found["holds"] is True
    assert found["instances"] == sum(it["instances"] for it in found["flips"] if it["column"] == "sex")
    page = Path(found["report"])
    assert page == folder.resolve() / "results" / "report" / f"update-{run_id}.html"
    text = page.read_text()
    assert "All 3 acceptance criteria are met." in text
    assert "sex f" in text
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


def test_a_criterion_that_fails_gives_exit_status_1(made: tuple[Path, list[str]], ask: Ask, tmp_path: Path) -> None:
    limits, page = tmp_path / "limits.toml", tmp_path / "page.html"
    limits.write_text("max_flips = 1\nmin_accuracy = 1.0\n")
    done = ask(made[1][3], "--criteria", limits, "--output", page)
    assert done.exit_code == 1
    assert "FAILS  min_accuracy" in done.output
    assert "not met" in page.read_text()


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
    with pytest.raises(UsageError, match="different data"):
        update_report(store.uri, other, against=one)


def test_a_key_of_thousands_of_names_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    file = tmp_path / "criteria.toml"
    file.write_text(".".join(["a"] * 9000) + " = 1\n")
    with pytest.raises(UsageError, match=r"criteria.toml: has 18,004 bytes; expected at most 16,384"):
        read_criteria(file)
