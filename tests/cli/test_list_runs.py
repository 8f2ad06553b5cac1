"""`clops-sweep runs`: which runs are listed, in which order, and with which settings."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from clops_sweep import RunConfig
from clops_sweep.cli.commands import command
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.helpers.stores import record_failure, write_finished

Listed = Callable[..., Any]

AUC = {("er", 0.25): 0.7, ("er", 0.5): 0.9, ("finetune", None): 0.6}


@pytest.fixture
def store(tmp_path: Path, finished_tables: Tables) -> RunStore:
    """Two runs of er that differ in an option, one of finetune, and a failed one."""
    found = RunStore(tmp_path / "results")
    for number, ((strategy, fraction), auc) in enumerate(AUC.items()):
        options: dict[str, Any] = {} if fraction is None else {"memory_fraction": fraction}
        run_id = f"{number:08}{'a' * 16}"
        write_finished(found, run_id, finished_tables(run_id, RunConfig(strategy=strategy, **options), auc=auc))
    record_failure(found, {"f" * 24: RunConfig(strategy="finetune", seed=1)}, "ValueError: 7", lambda _: "0" * 64, {})
    return found


def invoked(store: RunStore, words: Sequence[str]) -> Result:
    return CliRunner().invoke(command, ["runs", "--results", str(store.files.root), *words])


@pytest.fixture
def listed(store: RunStore) -> Listed:
    """The runs that the command lists as JSON."""

    def invoke(*words: str) -> Any:
        done = invoked(store, [*words, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.output)["runs"]

    return invoke


def test_the_best_run_comes_first_and_failed_ones_last(listed: Listed) -> None:
    assert [run["scores"]["auc"] for run in listed()] == [0.9, 0.7, 0.6, None]
    assert [run["status"] for run in listed()] == ["finished"] * 3 + ["failed"]
    assert [run["scores"]["auc"] for run in listed("--sort", "-auc")] == [0.6, 0.7, 0.9, None]
    assert [run["settings"]["strategy"] for run in listed("--sort", "strategy")] == ["er", "er", "finetune", "finetune"]


def test_settings_are_those_of_which_some_runs_have_different_values(listed: Listed) -> None:
    """The other options of er are equal in all runs that use them, and not listed."""
    assert list(listed()[0]["settings"]) == ["strategy", "memory_fraction", "seed"]
    assert list(listed("--where", "strategy == 'er'")[0]["settings"]) == ["memory_fraction"]


def test_a_condition_and_a_limit_leave_runs_out(store: RunStore, listed: Listed) -> None:
    assert [run["scores"]["auc"] for run in listed("--where", "auc > 0.65")] == [0.9, 0.7]
    assert len(listed("--limit", "1")) == 1
    said = invoked(store, ["--limit", "1"]).output
    assert "4 runs, 1 failed" in said
    assert ", sorted by auc of validation people; --limit 4 prints all" in said
    assert ", sorted by strategy, reversed\n" in invoked(store, ["--sort", "-strategy"]).output


def test_ids_are_as_short_as_show_takes_them(store: RunStore) -> None:
    lines = invoked(store, []).output.splitlines()
    ids = [line.split()[0] for line in lines[1:5]]
    assert ids == ["00000001", "00000000", "00000002", "f" * 8]
    for run_id in ids:
        assert store.find(run_id).startswith(run_id)
    assert "failed" in lines[4]
    assert lines[-1].startswith("print a run with: clops-sweep show RUN_ID")


def test_scores_of_test_people_are_beside_those_that_sort_the_runs(store: RunStore, listed: Listed) -> None:
    best = listed()[0]
    (row,) = store.read("runs", best["run_id"]).to_dict("records")
    assert best["scores"] == {name: row[name] for name in ("auc", "test_auc", "test_bwt")}
    header = invoked(store, []).output.splitlines()[0].split()
    assert header[-4:] == ["auc", "test_auc", "test_bwt", "seconds"]


def test_runs_without_a_validation_set_have_test_scores(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    tables = finished_tables("a" * 24, RunConfig())
    row = tables["runs"].to_pylist()[0]
    row |= {"auc": math.nan, "bwt": math.nan}
    tables["runs"] = type(tables["runs"]).from_pylist([row], schema=tables["runs"].schema)
    write_finished(store, "a" * 24, tables)
    (run,) = json.loads(invoked(store, ["--json"]).output)["runs"]
    assert run["scores"] == {"test_auc": 0.75, "test_bwt": 0.75}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sort", "aux"], "--sort 'aux': there is no such column in runs (did you mean 'auc'?)"),
        (["--where", "aux > 0"], "there is no column 'aux' (did you mean 'auc'?)"),
    ],
)
def test_unknown_columns_are_refused(store: RunStore, words: list[str], sentence: str) -> None:
    from clops_sweep.errors import UsageError

    done = invoked(store, words)
    assert isinstance(done.exception, UsageError)
    assert sentence in str(done.exception)


def test_an_empty_store_has_no_runs(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    assert "0 runs" in invoked(store, []).output


def test_runs_with_equal_settings_differ_by_version_or_data(
    store: RunStore, listed: Listed, finished_tables: Tables
) -> None:
    """Runs of an older semantics version, or of other data, were rows with equal settings and other scores."""
    row = store.rows("runs", run_ids=["0" * 8 + "a" * 16])[0]
    for number, edition in enumerate(({"semantics_version": 1}, {"data_hash": "b" * 64})):
        run_id = f"{number:08}{'c' * 16}"
        tables = dict(finished_tables(run_id, RunConfig(strategy="er", memory_fraction=0.25), auc=0.1))
        changed = row | {"run_id": run_id, "auc": 0.1} | edition
        tables["runs"] = pa.Table.from_pylist([changed], schema=tables["runs"].schema)
        write_finished(store, run_id, tables)
    settings = list(listed()[0]["settings"])
    assert settings == ["strategy", "memory_fraction", "seed", "semantics_version", "data_hash"]
    assert [run["settings"]["semantics_version"] for run in listed("--where", "auc < 0.2")] == [
        1,
        row["semantics_version"],
    ]
    output = invoked(store, []).output
    assert "b" * 12 in output
    assert "b" * 13 not in output


def test_tasks_are_named_if_runs_differ_in_them(tmp_path: Path, finished_tables: Tables) -> None:
    """Positions in an order say nothing without the data; runs of three tasks were listed among runs of four."""
    store = RunStore(tmp_path / "results")
    for letter, names, order in (
        ("a", ["north", "south", "west"], "sequential"),
        ("b", ["west", "north", "south"], (2, 0, 1)),
        ("c", ["north", "south", "west", "east"], "sequential"),
    ):
        tables = dict(finished_tables(letter * 24, RunConfig(task_order=order)))
        rows = [row for row in tables["r_matrix"].to_pylist() if row["evaluated_on"] <= len(names)]
        rows = [row | {"task": names[row["evaluated_on"] - 1]} for row in rows]
        tables["r_matrix"] = pa.Table.from_pylist(rows, schema=tables["r_matrix"].schema)
        write_finished(store, letter * 24, tables)
    record_failure(store, {"f" * 24: RunConfig(task_order=(1, 0, 2))}, "ValueError: 7", lambda _: "0" * 64, {})
    lines = [line.split("  ") for line in invoked(store, []).output.splitlines()[:5]]
    shown = [[text.strip() for text in line if text.strip()] for line in lines]
    assert [line[1] for line in shown] == [
        "tasks",
        "north > south > west",
        "west > north > south",
        "north > south > west > east",
        "[1, 0, 2]",
    ]
    assert shown[0] == ["run_id", "tasks", "auc", "test_auc", "test_bwt", "seconds"]
    runs = json.loads(invoked(store, ["--json"]).output)["runs"]
    assert runs[1]["tasks"] == ["west", "north", "south"]
    assert runs[-1]["tasks"] is None
    alone = invoked(store, ["--limit", "1"]).output.splitlines()[0]
    assert alone.split() == ["run_id", "task_order", "auc", "test_auc", "test_bwt", "seconds"], (
        "one run differs from none, and has no tasks in words"
    )
