"""Deleting and merging runs is atomic, in folders and object stores, with kills at any moment."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from stepping import Worker

from clops_sweep import RunConfig, delete, merge
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import TableName
from clops_sweep.store.upkeep.changes import delete_runs, matching, merge_runs
from clops_sweep.store.upkeep.rewriting import same_rows
from clops_sweep.store.upkeep.verification import damages
from tests.store.upkeep.test_migration import TABLES, predictions, row

Tables = Callable[..., dict[str, pa.Table]]
Content = dict[TableName, pa.Table]


def _id(number: int) -> str:
    return f"{number:024x}"


def write(
    store: RunStore, numbers: range, tables: Tables, *, predicted: bool = False, auc: float | None = None
) -> None:
    for number in numbers:
        value = number / 100 if auc is None else auc
        found = dict(tables(_id(number), RunConfig(seed=number), auc=value))
        if predicted:
            found["predictions"] = predictions(_id(number))
        store.write_finished(_id(number), found)  # type: ignore[arg-type]


def fail(store: RunStore, number: int) -> None:
    store.write_failed(_id(number), row(RunConfig(seed=number), _id(number), status="failed", error="ValueError: no"))


@pytest.fixture
def store(tmp_path: Path, finished_tables: Tables) -> RunStore:
    """Runs 0 to 5, two of them in single parts, and run 6, which failed."""
    found = RunStore(tmp_path / "store")
    write(found, range(4), finished_tables, predicted=True)
    found.compact()
    write(found, range(4, 6), finished_tables)
    fail(found, 6)
    return found


@pytest.fixture
def other(tmp_path: Path, finished_tables: Tables) -> RunStore:
    """Runs 4 to 9, some in single parts, and run 10, which failed."""
    found = RunStore(tmp_path / "other")
    write(found, range(4, 7), finished_tables, predicted=True)
    found.compact()
    write(found, range(7, 10), finished_tables)
    fail(found, 10)
    fail(found, 11)
    return found


def content(store: RunStore, numbers: set[int] | None = None) -> Content:
    """Return the content of a store, or that of some runs."""
    tables = {table: RunStore(store.uri).table(table) for table in TABLES}
    if numbers is None:
        return tables
    wanted = pa.array(sorted(map(_id, numbers)), pa.string())
    return {table: rows.filter(pc.is_in(rows["run_id"], wanted)) for table, rows in tables.items()}


def check(store: RunStore, expected: Content) -> None:
    found = content(store)
    for table, rows in expected.items():
        assert same_rows(found[table], rows), table
    assert damages(RunStore(store.uri)) == []
    assert RunStore(store.uri).incomplete() == {}


# --- delete -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("seed in [1, 5]", {0, 2, 3, 4, 6}),
        ("seed < 4", {4, 5, 6}),
        ("status == 'failed'", {0, 1, 2, 3, 4, 5}),
        ("auc >= 0.03 or status == 'failed'", {0, 1, 2}),
        ("strategy == 'clops'", set()),
    ],
)
def test_deleted_runs_are_gone_and_the_others_are_the_same(store: RunStore, where: str, kept: set[int]) -> None:
    expected = content(store, kept)
    assert delete(store.uri, where) == 7 - len(kept)
    check(store, expected)
    assert {int(run_id, 16) for run_id in RunStore(store.uri).statuses()} == kept
    for table in TABLES:
        rest = [path.name for path in (Path(store.uri) / table).iterdir()]
        assert all(int(name.split("-")[1].split(".")[0], 16) in kept for name in rest if name.startswith("finished"))


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("seed == 99", "matches no run in "),
        ("sed == 1", "there is no column 'sed' (did you mean 'seed'?)"),
        ("seed = 1", "a condition compares with == and not with ="),
        ("__import__('os')", "it takes comparisons"),
        (" ", "expected a condition such as"),
        (3, "expected a condition such as"),
    ],
)
def test_a_wrong_condition_deletes_nothing(store: RunStore, where: str, why: str) -> None:
    before = sorted(Path(store.uri).rglob("*.parquet"))
    with pytest.raises(UsageError) as raised:
        delete(store.uri, where)
    assert why in str(raised.value)
    assert len(str(raised.value)) < 300
    assert sorted(Path(store.uri).rglob("*.parquet")) == before


EVERY_KILL = pytest.mark.parametrize("kills", [4, pytest.param(30, marks=pytest.mark.slow)])


def kill_and_repeat(
    store: RunStore, work: Callable[[RunStore], object], tmp_path: Path, expected: Content, kills: int
) -> None:
    """Kill `work` before some of its file operations, each time on a copy of the store, and repeat it."""
    before = content(store)
    shutil.copytree(store.uri, tmp_path / "whole")
    whole, operations = Worker(str(tmp_path / "whole"), work), 0
    while not whole.done:
        whole.step()
        operations += 1
    check(RunStore(tmp_path / "whole"), expected)
    assert operations > 30
    for deaths in random.Random(2).sample(range(operations), kills):
        root = tmp_path / "killed"
        shutil.copytree(store.uri, root)
        worker = Worker(str(root), work)
        worker.step(deaths)
        worker.kill()
        if not (root / ".work" / "rewriting.json").exists() and RunStore(root).table("runs").equals(before["runs"]):
            check(RunStore(root), before)  # nothing was committed
        work(RunStore(root))
        check(RunStore(root), expected)
        shutil.rmtree(root)


@EVERY_KILL
def test_a_killed_deletion_can_be_repeated(store: RunStore, tmp_path: Path, kills: int) -> None:
    gone = [_id(number) for number in (1, 4, 6)]
    expected = content(store, {0, 2, 3, 5})
    kill_and_repeat(store, lambda it: delete_runs(it, lambda: gone), tmp_path, expected, kills)


def test_what_matches_is_found_after_the_lock_is_taken(store: RunStore) -> None:
    with store.rewriting(shared=True), pytest.raises(UsageError, match="a sweep, a compaction or the like is at work"):
        delete_runs(RunStore(store.uri), lambda: pytest.fail("the store is locked"))
    assert matching(store, "seed > 4") == [_id(5), _id(6)]


# --- merge ------------------------------------------------------------------------------------------------------------


def merged(store: RunStore, other: RunStore) -> Content:
    """The expected result: run 6 finished in the other store, and runs 4 and 5 have predictions there."""
    one, two = content(store, set(range(6))), content(other, set(range(6, 12)))
    found: Content = {table: pa.concat_tables([one[table], two[table]]) for table in TABLES}
    found["predictions"] = pa.concat_tables([one["predictions"], content(other)["predictions"]])
    return found


def test_a_merged_store_has_the_runs_of_both(store: RunStore, other: RunStore) -> None:
    expected, before = merged(store, other), content(other)
    assert merge(store.uri, other.uri) == 6
    check(store, expected)
    check(other, before)
    assert list(RunStore(store.uri).statuses().values()).count("failed") == 2
    assert merge(store.uri, other.uri) == 0
    RunStore(store.uri).compact()
    check(store, expected)


def test_merging_into_a_new_store_copies_it(other: RunStore, tmp_path: Path) -> None:
    assert merge(tmp_path / "new", other.uri) == 8
    check(RunStore(tmp_path / "new"), content(other))


@EVERY_KILL
def test_a_killed_merge_can_be_repeated(store: RunStore, other: RunStore, tmp_path: Path, kills: int) -> None:
    kill_and_repeat(store, lambda it: merge_runs(it, RunStore(other.uri)), tmp_path, merged(store, other), kills)


@pytest.mark.parametrize("table", ["runs", "r_matrix", "predictions"])
def test_equal_ids_with_other_numbers_are_refused(
    store: RunStore, tmp_path: Path, finished_tables: Tables, table: str
) -> None:
    different = RunStore(tmp_path / "different")
    write(different, range(7, 9), finished_tables)
    found = dict(finished_tables(_id(2), RunConfig(seed=2), auc=0.02), predictions=predictions(_id(2)))
    changed = predictions(_id(2)).drop_columns("probability_0")
    changed = changed.append_column("probability_0", pa.array([0.25, 0.5, 0.5], pa.float32()))
    other_numbers = finished_tables(_id(2), RunConfig(seed=2), auc=0.5)
    found[table] = changed if table == "predictions" else other_numbers[table]
    different.write_finished(_id(2), found)  # type: ignore[arg-type]
    before = content(store)
    with pytest.raises(UsageError, match=f"run {_id(2)}: its numbers in table {table} differ between "):
        merge(store.uri, different.uri)
    check(store, before)


def test_timings_may_differ(store: RunStore, tmp_path: Path, finished_tables: Tables) -> None:
    slower = RunStore(tmp_path / "slower")
    tables = dict(finished_tables(_id(2), RunConfig(seed=2), auc=0.02))
    at = tables["runs"].column_names.index("seconds")
    tables["runs"] = tables["runs"].set_column(at, "seconds", pa.array([99.0]))
    slower.write_finished(_id(2), tables)  # type: ignore[arg-type]
    assert merge(store.uri, slower.uri) == 0


def test_columns_of_own_strategies_come_along(store: RunStore, tmp_path: Path, finished_tables: Tables) -> None:
    own = RunStore(tmp_path / "own")
    for number, kind in ((20, pa.int64()), (21, pa.float64())):
        tables = dict(finished_tables(_id(number), RunConfig(seed=number)))
        tables["runs"] = tables["runs"].append_column("my_count", pa.array([number], kind))
        (own if number == 20 else store).write_finished(_id(number), tables)  # type: ignore[arg-type]
    assert merge(store.uri, own.uri) == 1
    assert RunStore(store.uri).read("runs", [_id(20), _id(21)])["my_count"].tolist() == [20, 21]


def test_what_cannot_be_merged_is_one_sentence(store: RunStore, tmp_path: Path) -> None:
    for pair, why in (
        ((store.uri, store.uri), "they are one store; give two"),
        ((store.uri, tmp_path / "absent"), "there is no such folder"),
        ((store.uri, ""), "expected a path"),
    ):
        with pytest.raises(UsageError, match=why):
            merge(*pair)
    assert not (tmp_path / "absent").exists()
