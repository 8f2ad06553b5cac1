"""The state of a request: what its parts agree on."""

from __future__ import annotations

from pathlib import Path

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.data.catalog import DataKey
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.launched import launched_spaces, remember
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore


class AnyData(PreparedData):
    """Data that are the same under every split."""

    def data_hash(self, key: DataKey) -> str | None:
        return "generated0001"


def state_of(space: SearchSpace, store: RunStore) -> State:
    return State.of(Request(Selection.of(space), AnyData(Path("nowhere"), None), store))


def test_reports_and_claims_have_the_task_orders_of_the_plan(tmp_path: Path) -> None:
    space = SearchSpace("s", RunConfig(), seeds=1, resolve=lambda config: config.replace(task_order=(5, 4, 3, 2, 1, 0)))
    state = state_of(space, RunStore(tmp_path))
    planned = [run.config for run in state.plan.asked]
    assert planned[0].task_order == (5, 4, 3, 2, 1, 0)
    assert [request.config for it in state.spaces for request in it.requests()] == planned


def test_the_encoders_of_each_file_are_remembered(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    for name, strategy in (("one", "finetune"), ("two", "er"), ("again", "er")):
        encoder = RunConfig(strategy=strategy, network="small_cnn")
        before = state_of(SearchSpace(name, RunConfig(encoder=encoder, network="linear"), seeds=1), store).of_encoders
        assert before is not None
        remember(before.resolved.selection, store)
    assert sorted(space.base.strategy for space in launched_spaces(store, str)) == ["er", "finetune"]
