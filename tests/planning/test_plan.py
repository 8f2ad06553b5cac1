from __future__ import annotations

from pathlib import Path

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.cli.plan import counts
from clops_sweep.data.preparing.prepare import data_hash, prepare
from clops_sweep.experiment.spaces.selection import all_requests
from clops_sweep.planning.plan import Plan, make_plan
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.data.published_formats import small_mitbih
from tests.helpers.stores import record_failure, write_finished


def _hash(config: RunConfig) -> str:
    return f"hash of {config.dataset}"


def _id(config: RunConfig) -> str:
    return config.run_id(_hash(config))


def _plan(store: RunStore, *spaces: SearchSpace) -> Plan:
    return make_plan(all_requests(spaces), store, _hash)


SMALL = SearchSpace(name="small", base=RunConfig(), axes={"storage_fraction": [0.1, 0.5]}, seeds=range(2))


def test_pending_is_what_is_asked_for_minus_what_is_finished(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    asked = [request.config for request in SMALL.requests()]
    write_finished(store, _id(asked[1]), finished_tables(_id(asked[1]), asked[1]))
    record_failure(store, {_id(asked[2]): asked[2]}, "ValueError: no", _hash, {})
    plan = _plan(store, SMALL)
    assert [run.state for run in plan.asked] == ["pending", "finished", "failed", "pending"]
    assert [run.config for run in plan.of("pending")] == [asked[0], asked[3]]
    assert [run.run_id for run in plan.asked] == [_id(config) for config in asked]


def test_two_spaces_share_the_runs_that_both_ask_for(tmp_path: Path) -> None:
    wider = SearchSpace(name="wider", base=RunConfig(), axes={"storage_fraction": [0.1, 0.25, 0.5]}, seeds=range(2))
    plan = _plan(RunStore(tmp_path), SMALL, wider)
    values = [(run.config.seed, run.config.storage_fraction) for run in plan.asked]
    assert values == [(0, 0.1), (0, 0.5), (0, 0.25), (1, 0.1), (1, 0.5), (1, 0.25)]


SHARED = SearchSpace(
    "shared",
    RunConfig(),
    {"acquisition_fraction": [0.5, 1.0], "acquisition": ["bald_mcd", "random"], "strategy": ["clops", "finetune"]},
    seeds=range(2),
)


def test_configs_that_must_give_the_same_numbers_are_one_run(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    plan = _plan(store, SHARED)
    assert plan.cells_and_seeds == 16
    assert len(plan.asked) == 2 * (3 + 1)  # with a = 1 nothing is scored, and fine-tuning has no buffer at all
    assert counts(plan).startswith("8 runs asked for (for 16 cells and seeds), 0 finished, 8 pending")
    assert len({run.run_id for run in plan.asked}) == 8
    for run in plan.asked:
        write_finished(store, str(run.run_id), finished_tables(str(run.run_id), run.config))
    assert len(_plan(store, SHARED).of("finished")) == 8
    last = SHARED.base.replace(strategy="finetune", acquisition="random", acquisition_fraction=1, seed=1)
    assert store.statuses()[_id(last)] == "finished"


def test_other_data_are_other_runs(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    for request in SMALL.requests():
        write_finished(store, _id(request.config), finished_tables(_id(request.config), request.config))
    assert _plan(store, SMALL).of("pending") == []
    assert len(make_plan(SMALL.requests(), store, lambda config: "prepared anew").of("pending")) == 4


def test_a_run_on_data_that_are_not_prepared_waits_and_has_no_id(tmp_path: Path) -> None:
    plan = make_plan(SMALL.requests(), RunStore(tmp_path), lambda config: None)
    assert {(run.run_id, run.state) for run in plan.asked} == {(None, "waiting")}
    assert all(run.has_no_id_yet and not run.is_to_come for run in plan.asked)
    assert plan.unprepared == ("synthetic",)


def test_runs_for_task_orders_are_in_the_plan_and_not_among_those_asked_for(tmp_path: Path) -> None:
    space = SearchSpace("orders", RunConfig(task_order="curriculum"), {"storage_fraction": [0.1, 0.5]}, seeds=range(2))
    plan = _plan(RunStore(tmp_path), space)
    assert [run.state for run in plan.asked] == ["waiting"] * 4
    assert len(plan.first) > 0
    assert plan.of("pending") == list(plan.first)
    assert not any(run.has_no_id_yet for run in plan.first)
    assert (plan.count_asked("pending"), plan.count_asked("waiting")) == (0, 4)


def test_a_run_whose_split_takes_a_solver_waits_until_it_is_prepared(tmp_path: Path) -> None:
    roots = {"prepared_root": tmp_path / "prepared", "data_root": small_mitbih(tmp_path / "data")}
    prepare("mitbih", **roots, workers=1)
    space = SearchSpace("splits", RunConfig(dataset="mitbih"), {"split_seed": [0, 40]}, seeds=[0])

    def content(config: RunConfig) -> str | None:
        return data_hash(config.dataset, prepared_root=roots["prepared_root"], split_seed=config.split_seed)

    plan = make_plan(space.requests(), RunStore(tmp_path), content)
    assert [run.state for run in plan.asked] == ["pending", "waiting"]
    assert plan.unprepared == ("mitbih",)
    prepare("mitbih", **roots, split_seeds={40})
    plan = make_plan(space.requests(), RunStore(tmp_path), content)
    assert [run.state for run in plan.asked] == ["pending", "pending"]
    assert plan.unprepared == ()
