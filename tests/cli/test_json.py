"""What `--json` prints is what the words say, and is JSON that any reader takes; and what a shell completes."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig
from clops_sweep.cli.commands import command
from clops_sweep.cli.data import data
from clops_sweep.cli.options import SCHEMA_VERSION
from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.store.run_store import RunStore
from tests.cli.documented import documented
from tests.conftest import Tables
from tests.helpers.stores import record_failure, write_finished

Told = Callable[..., Any]

SPACE = """
from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace

SPACE = [
    SearchSpace("grid", RunConfig(strategy="finetune", epochs_per_task=1), {"learning_rate": [1e-4, 1e-3]}, range(3)),
    SearchSpace("search", RunConfig(epochs_per_task=1), seeds=[0],
                search=OptunaSearch({"learning_rate": FloatDistribution(1e-4, 1e-2)}, n_trials=4)),
]
"""


@pytest.fixture
def ids(tmp_path: Path, prepared_root: Path, finished_tables: Tables) -> list[str]:
    """The ids of the grid's runs: two are finished, one has failed."""
    (tmp_path / "space.py").write_text(SPACE)
    content = data_hash("synthetic", prepared_root=prepared_root)
    store = RunStore(tmp_path / "results")
    configs = [
        RunConfig(strategy="finetune", epochs_per_task=1, learning_rate=rate, seed=seed)
        for rate in (1e-4, 1e-3)
        for seed in range(3)
    ]
    found = [config.run_id(content) for config in configs]
    for run_id, config in zip(found[:2], configs[:2], strict=True):
        write_finished(store, run_id, finished_tables(run_id, config, auc=math.nan if run_id == found[1] else 0.75))
    record_failure(store, {found[2]: configs[2]}, "Boom\nValueError: 7", lambda _: content, {})
    return found


@pytest.fixture
def told(tmp_path: Path, prepared_root: Path) -> Told:
    """The JSON that a command prints."""

    def invoke(*arguments: str) -> Any:
        of_store = [] if arguments[0] == "data" else ["--results", str(tmp_path / "results")]
        done = CliRunner(env={"CLOPS_PREPARED_ROOT": str(prepared_root)}).invoke(
            command, [*arguments, "--json", *of_store], standalone_mode=False
        )
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))

    return invoke


def test_plan(ids: list[str], told: Told, tmp_path: Path) -> None:
    plan = told("plan", str(tmp_path / "space.py"))
    assert {name: plan[name] for name in ("asked", "cells_and_seeds", "finished", "failed", "pending")} == {
        "asked": len(ids),
        "cells_and_seeds": len(ids),
        "finished": 2,
        "failed": 1,
        "pending": 3,
    }
    (search,) = plan["searches"]
    assert (search["name"], search["n_trials"], search["complete"], search["best"]) == ("search", 4, 0, [])
    assert plan["runs_estimated"] == 3  # fine-tuning has taken 2.5 seconds twice; of CLOPS nothing is known
    assert plan["runs_without_estimate"] == 4
    estimate = plan["estimate"]
    assert (estimate["hours"], estimate["longest"]) == pytest.approx((3 * 2.5 / 3600, 2.5 / 3600))
    assert estimate["devices"] == ["cpu"]
    assert plan["to_do"] == {"runs": 7, "of_trials": 4, "others": 3, "stored": 0}
    assert (search["pending"], search["runs_per_trial"]) == (4, 1)
    assert estimate["finished_runs"] == 2
    assert 2.5 / 3600 <= estimate["wall_clock_hours"] <= 3 * 2.5 / 3600
    assert plan["store_exists"] is True


def test_what_only_the_words_of_a_plan_said(tmp_path: Path, told: Told) -> None:
    (tmp_path / "space.py").write_text(
        "from clops_sweep import RunConfig, SearchSpace\n"
        'SPACE = SearchSpace("away", RunConfig(dataset="cardiology"), seeds=1)\n'
    )
    plan = told("plan", str(tmp_path / "space.py"))
    assert plan["store_exists"] is False
    assert [sentence.partition(":")[0] for sentence in plan["unprepared_because"]] == [
        "data set cardiology is not prepared on this machine"
    ]
    assert [sentence.partition(":")[0] for sentence in plan["unchecked"]] == [
        "not checked before the frames of cardiology are prepared"
    ]
    assert plan["doubts"] == plan["remarks"] == []


def test_what_only_the_words_of_counts_said(told: Told) -> None:
    counted = told("data", "counts", "synthetic", "--patients")
    assert (counted["counted_split"], counted["refused"], counted["warnings"]) == ("split_seed 0", None, [])
    assert counted["tasks_counted"]["class_il"] == "split_seed 0"
    people = counted["frames_by_patient"]
    assert counted["people"] == len(people)
    of_lead = sum(sum(person["frames"].values()) for person in people)
    assert of_lead == sum(counted["classes"][-1]["frames"].values())


def test_every_command_but_the_dashboard_prints_json() -> None:
    commands = {**command.commands, **{f"data {name}": it for name, it in data.commands.items()}}
    without = {name for name, it in commands.items() if "as_json" not in {parameter.name for parameter in it.params}}
    assert without == {"data", "dashboard"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "{space}"),
        ("status", "{space}"),
        ("launch", "{space}", "--seeds", "2", "--where", "strategy == 'finetune' and learning_rate == 0.0001"),
        ("claims",),
        ("check",),
        ("logs", "{failed}"),
        ("doctor",),
        ("delete", "{results}", "--where", "seed == 0", "--dry-run"),
        ("merge", "{results}", "{other}"),
        ("new", "{other}.py"),
        ("data list",),
        ("data counts", "synthetic"),
        ("data evict",),
        ("data folds", "synthetic", "--number", "3"),
        ("data verify", "synthetic"),
    ],
    ids=lambda arguments: str(arguments[0]),
)
def test_keys_are_those_of_the_documentation(
    ids: list[str], tmp_path: Path, prepared_root: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "grid.py").write_text(f"{SPACE}SPACE = SPACE[0]\n")
    (tmp_path / "other").mkdir()
    places = {"space": tmp_path / "grid.py", "results": tmp_path / "results", "other": tmp_path / "other"}
    name, *words = [it.format(failed=ids[2], **places) for it in arguments]
    verb = command.commands.get(name) or data.commands[name.removeprefix("data ")]
    named = [*words, "--json", *(["--no-report"] if name == "launch" else [])]
    if "results" in {option.lstrip("-") for it in verb.params for option in it.opts} and "{results}" not in arguments:
        named += ["--results", str(tmp_path / "results")]
    done = CliRunner(env={"CLOPS_PREPARED_ROOT": str(prepared_root)}).invoke(
        command, [*name.split(), *named], standalone_mode=False
    )
    assert done.exit_code == 0, (done.exception, done.output)
    printed = json.loads(done.stdout)
    assert printed["schema_version"] == SCHEMA_VERSION
    assert set(printed) == documented(name)


def test_check_prints_what_is_damaged_and_exits_with_1(ids: list[str], tmp_path: Path) -> None:
    part = sorted((tmp_path / "results" / "curves").iterdir())[0]
    part.write_bytes(b"PAR1")
    done = CliRunner().invoke(
        command, ["check", "--json", "--results", str(tmp_path / "results")], standalone_mode=False
    )
    assert isinstance(done.exception, SystemExit)
    printed = json.loads(done.stdout)
    assert (done.exit_code, printed["whole"], printed["runs"], len(printed["faults"])) == (1, False, None, 1)
    assert part.name in printed["faults"][0]
