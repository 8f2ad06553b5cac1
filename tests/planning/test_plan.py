from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.cli.plan import counts
from clops_sweep.data.preparing.prepare import data_hash, prepare
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.spaces.search_space import all_requests
from clops_sweep.planning.plan import Plan, make_plan
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS
from clops_sweep.store.writing import merge_parts
from tests.conftest import MEMORY
from tests.data.published_formats import small_mitbih
from tests.helpers.contents import Killed, faults
from tests.helpers.stores import write_failed, write_finished

Tables = Callable[..., dict[str, pa.Table]]


def _hash(config: RunConfig) -> str:
    return f"hash of {config.dataset}"


def _id(config: RunConfig) -> str:
    return config.run_id(_hash(config))


def _plan(store: RunStore, *spaces: SearchSpace) -> Plan:
    return make_plan(all_requests(spaces), store, _hash)


def _failed_row(config: RunConfig) -> pa.Table:
    row = {"run_id": _id(config), **config_row(config), "status": "failed", "error": "ValueError: no"}
    return pa.Table.from_pylist([{name: row.get(name) for name in SCHEMAS["runs"].names}], schema=SCHEMAS["runs"])


SMALL = SearchSpace(name="small", base=RunConfig(), axes={"storage_fraction": [0.1, 0.5]}, seeds=range(2))


def test_pending_is_what_is_asked_for_minus_what_is_finished(tmp_path: Path, finished_tables: Tables) -> None:
    store = RunStore(tmp_path)
    asked = [request.config for request in SMALL.requests()]
    write_finished(store, _id(asked[1]), finished_tables(_id(asked[1]), asked[1]))
    write_failed(store, _id(asked[2]), _failed_row(asked[2]))
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
    assert plan.places == 16
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
    assert plan.unprepared == ("synthetic",)


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


class SweepMachine(RuleBasedStateMachine):
    """Any order of launching, dying, failing, retrying, extending and compacting, against a model: a dictionary.

    What several processes do to a store at the same moment is in test_compaction.py.
    """

    def __init__(self, finished_tables: Tables) -> None:
        super().__init__()
        self.tables = finished_tables
        self.folder = Path(tempfile.mkdtemp(prefix="clops-sweep-test-", dir=MEMORY))
        self.fractions, self.samples, self.seeds, self.finetune = [0.5], [20], 1, False
        self.states: dict[RunConfig, str] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @property
    def store(self) -> RunStore:
        """A new object every time, as in a new process: nothing but the folder is remembered."""
        return RunStore(self.folder)

    def spaces(self) -> list[SearchSpace]:
        grid = SearchSpace(
            name="grid",
            base=RunConfig(),
            axes={"storage_fraction": self.fractions, "mc_samples": self.samples},
            seeds=range(self.seeds),
        )
        shared = SearchSpace(
            name="shared", base=RunConfig(mc_samples=20, storage_fraction=0.5), seeds=range(self.seeds)
        )
        other = SearchSpace(name="other", base=RunConfig(strategy="finetune"), seeds=range(self.seeds))
        return [grid, shared, *([other] if self.finetune else [])]

    def pending(self) -> list[RunConfig]:
        return [run.config for run in _plan(self.store, *self.spaces()).of("pending")]

    @rule(value=st.sampled_from([0.1, 0.25, 1.0]), position=st.integers(0, 3))
    def extend_an_axis(self, value: float, position: int) -> None:
        if value not in self.fractions:
            self.fractions.insert(position, value)

    @rule(value=st.sampled_from([5, 10]))
    def extend_another_axis(self, value: int) -> None:
        if value not in self.samples:
            self.samples.append(value)

    @rule(seeds=st.integers(1, 3))
    def change_the_seeds(self, seeds: int) -> None:
        self.seeds = seeds

    @rule()
    def add_a_space(self) -> None:
        self.finetune = True

    @rule(count=st.integers(1, 4))
    def launch(self, count: int) -> None:
        for config in self.pending()[:count]:
            self._finish(config)

    @rule(operations=st.integers(0, 8))
    def launch_and_die(self, operations: int) -> None:
        """Before some file operation of recording a run; perhaps it has just been recorded."""
        for config in self.pending()[:1]:
            with faults(operations), suppress(Killed):
                write_finished(RunStore(self.folder), _id(config), self.tables(_id(config), config))
            if self.store.statuses().get(_id(config)) == "finished":
                self.states[config] = "finished"

    @rule(name=st.sampled_from(list(SCHEMAS)), content=st.sampled_from([b"", b"PAR1", b"PAR1 PAR1"]))
    def a_killed_writer_leaves_half_a_file(self, name: str, content: bytes) -> None:
        (self.folder / name).mkdir(exist_ok=True)
        for config in self.pending()[:1]:
            (self.folder / name / f".{_id(config)}.parquet.partial").write_bytes(content)

    @rule()
    def merge(self) -> None:
        merge_parts(self.store)

    @rule(operations=st.integers(0, 20))
    def merge_and_die(self, operations: int) -> None:
        with faults(operations), suppress(Killed):
            merge_parts(RunStore(self.folder))

    @rule(count=st.integers(1, 3))
    def launch_and_fail(self, count: int) -> None:
        for config in self.pending()[:count]:
            write_failed(self.store, _id(config), _failed_row(config))
            self.states[config] = "failed"

    @rule()
    def retry_what_failed(self) -> None:
        for run in _plan(self.store, *self.spaces()).of("failed"):
            self._finish(run.config)

    @rule()
    def two_drivers_do_the_same_run(self) -> None:
        for config in self.pending()[:1]:
            self._finish(config)
            self._finish(config)
            write_failed(self.store, _id(config), _failed_row(config))

    def _finish(self, config: RunConfig) -> None:
        write_finished(self.store, _id(config), self.tables(_id(config), config))
        self.states[config] = "finished"

    @invariant()
    def pending_is_asked_minus_finished(self) -> None:
        asked = list(dict.fromkeys(request.config for request in all_requests(self.spaces())))
        plan = _plan(self.store, *self.spaces())
        assert [(run.config, run.state) for run in plan.asked] == [
            (config, self.states.get(config, "pending")) for config in asked
        ]

    @invariant()
    def the_table_has_every_run_once(self) -> None:
        runs = self.store.read("runs")
        assert dict(zip(runs["run_id"], runs["status"], strict=True)) == {
            _id(config): state for config, state in self.states.items()
        }
        assert len(runs) == len(self.states)
        finished = sorted(_id(config) for config, state in self.states.items() if state == "finished")
        curves = self.store.read("curves", finished, ["run_id"])["run_id"].tolist()
        assert curves == [run_id for run_id in finished for _ in range(6)]


@pytest.mark.parametrize("histories", [8, pytest.param(40, marks=pytest.mark.nightly)])
def test_any_history_of_a_sweep(finished_tables: Tables, histories: int) -> None:
    run_state_machine_as_test(
        lambda: SweepMachine(finished_tables),
        settings=settings(max_examples=histories, stateful_step_count=15, suppress_health_check=[HealthCheck.too_slow]),
    )
