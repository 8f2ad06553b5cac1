"""Models in a store: complete or absent, verified, and deleted or merged with their runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from clops_sweep import RunConfig, delete, load_model, merge
from clops_sweep.cli.commands import command
from clops_sweep.errors import DamagedStore
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.helpers.stores import write_finished

IDS = ["a" * 24, "b" * 24]


def written(root: Path, tables: Tables, keep: Any = ("models",), models: Any = None) -> RunStore:
    store = RunStore(root, keep=keep)
    store.open_for_writing()
    for run_id in IDS:
        write_finished(store, run_id, tables(run_id, RunConfig()), {3: b"weights"} if models is None else models)
    return store


def test_a_run_is_finished_without_models_unless_they_are_asked_for(tmp_path: Path, finished_tables: Tables) -> None:
    written(tmp_path, finished_tables, keep=())
    assert RunStore(tmp_path).statuses() == dict.fromkeys(IDS, "finished")
    keeping = RunStore(tmp_path, keep=["models"])
    assert (keeping.statuses(), keeping.without_kept()) == ({}, set(IDS))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    write_finished(keeping, IDS[0], finished_tables(IDS[0], RunConfig(), auc=0.1), {3: b"weights"})
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before
    assert set(keeping.statuses()) == {IDS[0]}
    assert keeping.models.read(IDS[0]) == b"weights"


@pytest.mark.parametrize("what", ["changed", "missing", "list", "deep", "long", "those of another run"])
def test_damage_is_seen(tmp_path: Path, finished_tables: Tables, what: str) -> None:
    written(tmp_path, finished_tables)
    folder = tmp_path / "models" / IDS[0]
    if what == "changed":
        (folder / "task_3.safetensors").write_bytes(b"Weights")
    elif what == "missing":
        (folder / "task_3.safetensors").unlink()
    elif what == "list":
        (folder / "last.json").write_text("[]")
    elif what == "deep":
        (folder / "last.json").write_text("[" * 100_000)
    elif what == "long":
        (folder / "last.json").write_text(f'{{"task_1{"0" * 5000}.safetensors": "hash"}}')
    else:
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "models" / IDS[1], folder)
    with pytest.raises(DamagedStore, match=str(folder)):
        load_model(tmp_path, IDS[0])
    done = CliRunner().invoke(command, ["check", "--results", str(tmp_path)])
    assert (done.exit_code, str(folder) in done.output) == (1, True)


def test_models_go_and_come_with_their_runs(tmp_path: Path, finished_tables: Tables) -> None:
    written(tmp_path / "one", finished_tables)
    (tmp_path / "two").mkdir()
    merge(tmp_path / "two", tmp_path / "one")
    merged = RunStore(tmp_path / "two", keep=["models"])
    assert set(merged.statuses()) == set(IDS)
    delete(tmp_path / "two", f"run_id == '{IDS[0]}'")
    assert merged.models.runs("last") == {IDS[1]}
    assert not (tmp_path / "two" / "models" / IDS[0]).exists()
    assert RunStore(tmp_path / "one", keep=["models"]).models.runs("last") == set(IDS)
