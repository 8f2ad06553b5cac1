"""Which runs a shard has."""

from __future__ import annotations

from pathlib import Path

import pytest

from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace, sweep
from clops_sweep.errors import UsageError
from clops_sweep.planning.plan import Plan, make_plan
from clops_sweep.planning.shard import Shard
from clops_sweep.store.run_store import RunStore

RATES = [1e-5 * step for step in range(1, 41)]


def plan(folder: Path, rates: list[float], shard: Shard | None = None) -> Plan:
    space = SearchSpace("rates", RunConfig(), {"learning_rate": rates}, seeds=range(5))
    return make_plan(space.requests(), RunStore(folder), lambda config: "data", shard)


def ids(found: Plan) -> set[str]:
    return {str(run.run_id) for run in found.asked}


@pytest.mark.parametrize("count", [1, 3, 16])
def test_every_run_is_in_one_shard_of_about_equal_size(tmp_path: Path, count: int) -> None:
    every = ids(plan(tmp_path, RATES))
    shards = [ids(plan(tmp_path, RATES, Shard(index, count))) for index in range(1, count + 1)]
    assert set().union(*shards) == every
    assert sum(map(len, shards)) == len(every) == 200
    expected = len(every) / count
    assert all(abs(len(shard) - expected) < 5 * expected**0.5 for shard in shards)


def test_shards_that_need_one_run_for_their_task_orders_are_refused(tmp_path: Path, prepared_root: Path) -> None:
    base = RunConfig(scenario="class_il", epochs_per_task=1, mc_samples=2)
    space = SearchSpace("orders", base, {"task_order": ["curriculum", "anti_curriculum"]}, seeds=2)
    results = tmp_path / "results"
    sentence = (
        "^shard='1/2': task orders by difficulty depend on 1 unfinished run, which other shards need, too; "
        "expected a launch with seeds=1 before the shards$"
    )
    for shard in ("1/2", "2/2"):
        with pytest.raises(UsageError, match=sentence.replace("1/2", shard)):
            sweep(space, results, prepared_root=prepared_root, ray=False, shard=shard)
    assert sweep(space, results, prepared_root=prepared_root, ray=False, seeds=1).complete
    assert sweep(space, results, prepared_root=prepared_root, ray=False, shard="1/2").complete
    assert sweep(space, results, prepared_root=prepared_root, ray=False, shard="2/2").complete
    assert sweep(space, results, prepared_root=prepared_root, ray=False).ran is False


@pytest.mark.parametrize("text", ["17/16", "0/4", "3", "3/", "-1/4", "1/0", "a/b", "1/2/3", "", None, 3, "٣/٤"])
def test_what_is_no_shard_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"^expected i/n with i from 1 to n, such as 3/16$"):
        Shard.parsed(text)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"shard": "17/16"}, "^shard = '17/16': expected i/n"),
        ({"shard": "1/2"}, "^shard='1/2': 'search' is an Optuna search"),
        ({"stop_after": "soon"}, "^stop_after = 'soon': expected a duration"),
        ({"no_ray": True}, "^sweep: no argument 'no_ray'; since 0.4, write ray=False to compute in this process"),
        ({"ray": 1}, "^ray = 1: expected True, False, or None"),
        ({"ray": "yes"}, "^ray = 'yes': expected True, False, or None"),
        ({"ray": False, "address": "auto"}, "ray=False and address are both given"),
        ({"ray": False, "epoch_timeout": 3}, "epoch_timeout ends a worker of Ray, and ray=False has none"),
        ({"device": "cpu", "gpus_per_trial": 0.5}, "device='cpu' and gpus_per_trial=0.5 are both given"),
        ({"cpus_per_trial": 1e6}, "cpus_per_trial=1e[+]06: this machine has .* or a cluster with address$"),
        ({"observe": ["tensorbord"]}, "^observe 'tensorbord': no such observer"),
        ({"where": "seed =="}, "^where keeps some of a list of runs"),
        ({"settings": {"seed": 1}}, "by seeds, not by settings$"),
    ],
)
def test_sweep_refuses_what_does_not_go_together(tmp_path: Path, options: dict[str, object], sentence: str) -> None:
    search = OptunaSearch({"learning_rate": FloatDistribution(1e-4, 1e-2)}, n_trials=2)
    space = SearchSpace("search", RunConfig(), search=search, seeds=[0])
    with pytest.raises(UsageError, match=sentence):
        sweep(space, tmp_path / "results", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "results").exists()
