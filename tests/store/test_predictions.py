"""The fifth table contains only runs that keep predictions, and is required of no other run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from clops_sweep import RunConfig, SearchSpace, read, sweep
from clops_sweep.cli.check import check
from clops_sweep.errors import UsageError
from clops_sweep.planning.plan import make_plan
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import PREDICTIONS
from clops_sweep.store.upkeep.verification import damages, without_damage

Tables = Callable[..., dict[str, pa.Table]]
HASH = "abc"
CONFIGS = [RunConfig(seed=seed) for seed in range(3)]
IDS = [config.run_id(HASH) for config in CONFIGS]


def predictions(run_id: str, probability: float = 0.25) -> pa.Table:
    rows = [{"run_id": run_id, "instance": 7, "trained_on": i, "evaluated_on": j} for i in (1, 2) for j in (1, 2)]
    table = pa.Table.from_pylist([{name: row.get(name) for name in PREDICTIONS.names} for row in rows], PREDICTIONS)
    table = table.append_column("target_0", pa.array([1] * len(rows), pa.int8()))
    return table.append_column("probability_0", pa.array([probability] * len(rows), pa.float32()))


@pytest.fixture
def root(tmp_path: Path, finished_tables: Tables) -> Path:
    """Three finished runs; only the first has predictions."""
    store = RunStore(tmp_path, keep=["predictions"])
    store.open_for_writing()
    for run_id, config in zip(IDS, CONFIGS, strict=True):
        kept = {"predictions": predictions(run_id)} if run_id == IDS[0] else {}
        store.write_finished(run_id, finished_tables(run_id, config) | kept)
    return tmp_path


def test_a_run_is_finished_without_unless_they_are_asked_for(root: Path) -> None:
    plain, keeping = RunStore(root), RunStore(root, keep=["predictions"])
    assert plain.statuses() == dict.fromkeys(IDS, "finished")
    assert plain.finished(IDS) == set(IDS)
    assert plain.without_kept() == set()
    assert keeping.statuses() == {IDS[0]: "finished"}
    assert keeping.finished(IDS) == {IDS[0]}
    assert keeping.without_kept() == set(IDS[1:])
    assert plain.incomplete() == keeping.incomplete() == {}
    assert read(root, "predictions")["run_id"].unique().tolist() == [IDS[0]]


def test_a_store_that_keeps_none_has_no_folder_for_them(tmp_path: Path) -> None:
    RunStore(tmp_path).open_for_writing()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curves", "instances", "r_matrix", "runs"]
    assert read(tmp_path, "predictions").columns.tolist() == PREDICTIONS.names


def test_they_are_added_to_a_finished_run_and_nothing_else_is_touched(root: Path, finished_tables: Tables) -> None:
    store = RunStore(root, keep=["predictions"])
    before = {path: path.read_bytes() for path in root.rglob("*.parquet")}
    for run_id, config in zip(IDS, CONFIGS, strict=True):
        again = finished_tables(run_id, config, auc=0.1) | {"predictions": predictions(run_id, 0.5)}
        store.write_finished(run_id, again)
    assert {path: path.read_bytes() for path in before} == before
    assert store.statuses() == dict.fromkeys(IDS, "finished")
    probabilities = store.read("predictions").groupby("run_id")["probability_0"].first()
    assert [probabilities[run_id] for run_id in IDS] == [0.25, 0.5, 0.5]


def test_a_repetition_that_fails_leaves_the_run_finished(root: Path, finished_tables: Tables) -> None:
    RunStore(root, keep=["predictions"]).write_failed(IDS[1], finished_tables(IDS[1], CONFIGS[1])["runs"])
    assert RunStore(root).statuses()[IDS[1]] == "finished"
    assert not list((root / "runs").glob("failed-*"))


@pytest.mark.parametrize("keep", [False, True])
def test_compacted_they_are_the_same(root: Path, keep: bool) -> None:
    store = RunStore(root, keep=["predictions"] if keep else [])
    store.write_finished(IDS[2], {"predictions": predictions(IDS[2], 0.75)})
    before = store.read("predictions")
    statuses = store.statuses()
    store.compact()
    assert [len(list((root / table).iterdir())) for table in ("runs", "r_matrix", "predictions")] == [1, 1, 2]
    again = RunStore(root, keep=["predictions"] if keep else [])
    assert again.read("predictions").equals(before)
    assert again.statuses() == statuses


def test_damage_to_them_is_seen_and_costs_the_run_nothing_else(root: Path) -> None:
    part = root / "predictions" / f"finished-{IDS[0]}.parquet"
    part.write_bytes(part.read_bytes()[:-9] + b"!" + part.read_bytes()[-8:])
    assert [damage.table for damage in damages(RunStore(root))] == ["predictions"]
    with pytest.raises(SystemExit) as ended:
        check.main(["--results", str(root)], standalone_mode=True)
    assert ended.value.code == 1
    said: list[str] = []
    assert without_damage(RunStore(root), IDS, said.append)
    assert len(said) == 1
    assert RunStore(root).statuses() == dict.fromkeys(IDS, "finished")
    assert RunStore(root, keep=["predictions"]).without_kept() == set(IDS)


def test_a_plan_counts_the_runs_that_are_computed_again_for_them(root: Path) -> None:
    space = SearchSpace("three and another", CONFIGS[0].replace(seed=0), seeds=range(4))
    plain = make_plan(space.requests(), RunStore(root), lambda config: HASH)
    assert (plain.count("finished"), plain.count("pending"), plain.without_kept) == (3, 1, 0)
    plan = make_plan(space.requests(), RunStore(root, keep=["predictions"]), lambda config: HASH)
    assert (plan.count("finished"), plan.count("pending"), plan.without_kept) == (1, 3, 2)


def test_what_else_is_to_be_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"keep = \['gradients'\]: expected some of"):
        sweep(SearchSpace("x", RunConfig(), seeds=[0]), tmp_path, keep=["gradients"])  # type: ignore[list-item]
