"""Task orders by the names of tasks: the same runs as by positions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clops_sweep import Claim, Contrast, OptunaSearch, Recordings, RunConfig, SearchSpace, Side, dataset
from clops_sweep.data.preparing.prepared_data import PreparedData
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.selection import Selection
from clops_sweep.planning.claim_seal import seal, seal_in_words
from clops_sweep.planning.request import Request
from clops_sweep.planning.state import State
from clops_sweep.store.run_store import RunStore
from tests.data.declared_files import forget

PERSON = np.arange(72) // 2


@pytest.fixture(autouse=True)
def _wards() -> Iterator[None]:
    @dataset("named_wards", scenarios=("domain_il", "class_il_union"))
    def named_wards(data_root: Path | None) -> Recordings:
        labels = np.arange(72) % 2 + 2 * (np.arange(72) // 36)
        signals = np.random.default_rng(0).normal(size=(72, 2, 50)) + labels[:, None, None]
        site = {"ward": np.array(list("ABC"))[PERSON % 3], "room": np.array(list("CBA"))[PERSON % 3]}
        part = np.array(["train", "test"])[PERSON // 3 % 2]
        names = ["rest", "walk", "run", "sit"]
        return Recordings(signals, 50, ["I", "II"], "mV", labels, names, PERSON, domains=site, split=part)

    yield
    forget("named_wards")


def _state(
    tmp_path: Path, space: SearchSpace | None = None, settings: dict[str, Any] | None = None, **fields: Any
) -> State:
    base = {"dataset": "named_wards", "scenario": "domain_il", "domain": "ward", "network": "linear"}
    if fields.get("scenario"):
        del base["domain"]
    space = space or SearchSpace("orders", RunConfig(**base | fields), seeds=[0])
    data = PreparedData(tmp_path / "prepared")
    return State.of(Request(Selection((space,), settings=settings or {}), data, RunStore(tmp_path / "results")))


def _prepared(tmp_path: Path) -> None:
    PreparedData(tmp_path / "prepared").prepare(
        config.data_key for config in _state(tmp_path).resolved.selection.configs
    )


@pytest.mark.parametrize(
    ("names", "positions"),
    [
        (["C", "A", "B"], [2, 0, 1]),
        (("ward C", "A", "ward B"), [2, 0, 1]),
        (np.array(["B", "A", "C"]), [1, 0, 2]),
        (["A", "B", "C"], "sequential"),
    ],
)
def test_the_same_order_by_name_and_by_position_is_one_run(names: Any, positions: Any, tmp_path: Path) -> None:
    by_name = _state(tmp_path, task_order=names)
    assert [run.run_id for run in by_name.plan.asked] == [None], "its data are not prepared"
    _prepared(tmp_path)
    run_id = _state(tmp_path, task_order=positions).plan.asked[0].run_id
    assert run_id is not None
    assert by_name.again().plan.asked[0].run_id == run_id
    (config,) = by_name.again().resolved.selection.configs
    assert config.identity == RunConfig(**config.explicit | {"task_order": positions}).identity
    overridden = _state(tmp_path, settings={"task_order": list(names)})
    assert overridden.plan.asked[0].run_id == run_id
    (space,) = overridden.spaces
    assert [request.config.orders_by_name for request in space.requests()] == [False], "as reports match runs"


def test_classes_and_leads_name_their_tasks(tmp_path: Path) -> None:
    _prepared(tmp_path)
    titles = ["run / sit", "rest / walk"]
    by_class = _state(tmp_path, scenario="class_il_union", task_order=titles)
    assert by_class.resolved.selection.configs[0].task_order == (1, 0)
    by_lead = _state(tmp_path, domain="lead", task_order=["II", "Lead I"])
    assert by_lead.resolved.selection.configs[0].task_order == (1, 0)


def test_axes_and_searches_take_names(tmp_path: Path) -> None:
    _prepared(tmp_path)
    base = RunConfig(dataset="named_wards", scenario="domain_il", domain="ward", network="linear")
    orders = [["C", "A", "B"], "sequential"]
    axes = {"task_order": orders, "way": {"one": {}, "other": {"epochs_per_task": 7}}}
    grid = _state(tmp_path, SearchSpace("grid", base, axes, seeds=[0]))
    found = [config.task_order for config in grid.resolved.selection.configs]
    assert sorted(map(str, found)) == ["(2, 0, 1)", "(2, 0, 1)", "sequential", "sequential"]
    named = base.replace(task_order=["C", "A", "B"])
    search = SearchSpace("search", named, search=OptunaSearch({"learning_rate": (1e-4, 1e-2)}, n_trials=2))
    assert {config.task_order for config in _state(tmp_path, search).resolved.selection.configs} == {(2, 0, 1)}
    with pytest.raises(UsageError, match="names of tasks cannot be searched over; expected permutations of their pos"):
        SearchSpace("over", base, search=OptunaSearch({"task_order": [["C", "A", "B"], "sequential"]}, n_trials=2))


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        (["C", "A", "D"], r"task_order \['C', 'A', 'D'\]: no task is called 'D'; the tasks are A, B, C"),
        (["C", "A"], r"task_order \['C', 'A'\]: expected each of the 3 tasks once, which are A, B, C"),
        (["A", "ward A", "B"], "expected each of the 3 tasks once, which are A, B, C"),
    ],
)
def test_names_that_do_not_fit_are_refused_with_those_that_exist(
    order: list[str], sentence: str, tmp_path: Path
) -> None:
    _prepared(tmp_path)
    with pytest.raises(UsageError, match=sentence):
        _state(tmp_path, task_order=order)


def test_names_that_mean_several_orders_are_refused(tmp_path: Path) -> None:
    """Ward A is room C."""
    _prepared(tmp_path)
    base = RunConfig(dataset="named_wards", scenario="domain_il", network="linear", task_order=["C", "A", "B"])
    axes = {"domain": ["ward", "room"]}
    assert _state(tmp_path, SearchSpace("two", base, axes, seeds=[0])).resolved.selection.configs[1].task_order == (
        2,
        0,
        1,
    )
    axes = {"domain": ["ward", "lead"]}
    with pytest.raises(UsageError, match="no task is called 'C'; the tasks are I, II"):
        _state(tmp_path, SearchSpace("two", base, axes, seeds=[0]))


@pytest.mark.parametrize("order", [["A", "A"], ["A", 1], ["A", ""], []])
def test_an_order_is_of_names_or_of_positions(order: list[Any]) -> None:
    with pytest.raises(UsageError, match="a permutation of the task positions, or one of their names"):
        RunConfig(task_order=order)


def test_a_seal_that_prepares_the_data_holds_the_positions(tmp_path: Path) -> None:
    config = RunConfig(dataset="named_wards", scenario="domain_il", domain="ward", task_order=("C", "A", "B"))
    space = SearchSpace("orders", config.replace(network="linear"), {"strategy": ["er", "finetune"]}, seeds=[0])
    claim = Claim("above", "ER is above", Contrast(*(Side(name, {"strategy": name}) for name in ("er", "finetune"))))
    selection = Selection((space,), files=(tmp_path / "space.py",), titles=("orders",), claims=(claim,))
    request = Request(selection, PreparedData(tmp_path / "prepared"), RunStore(tmp_path / "results"))
    seal(request)
    assert seal_in_words(State.of(request)).endswith("before the first run")
