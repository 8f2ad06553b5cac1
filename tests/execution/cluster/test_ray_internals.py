"""Changes to Ray are restored, and a sweep works on a Ray that lacks the names they need."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

import pandas as pd
import pytest
import ray
from launching import ONE_WORKER, Sweep
from preloaded import Preloaded
from ray._private import node, parameter, ray_constants, services, utils, worker
from ray._private.ray_constants import ENABLE_RAY_CLUSTERS_ENV_VAR
from ray.air.execution._internal.actor_manager import RayActorManager

from clops_sweep.execution.cluster import forked_worker
from clops_sweep.execution.cluster import start as cluster
from clops_sweep.execution.ray_internals import (
    dead_processes,
    loopback,
    without_dashboard,
    worker_deaths,
    worker_setup,
)

Launch = Callable[..., Sweep]

CHANGED = {
    "loopback": ((ray_constants, "ENABLE_RAY_CLUSTER"),),
    "without_dashboard": (
        (node.Node, "start_monitor"),
        (node.Node, "start_api_server"),
        (services, "get_node"),
        (utils, "get_dashboard_dependency_error"),
    ),
    "worker_setup": ((parameter.RayParams, "update_if_absent"),),
    "worker_deaths": ((RayActorManager, "_actor_task_failed"),),
}
USED = (
    ("without_dashboard", node.Node, "dead_processes"),
    ("without_dashboard", node.Node, "get_gcs_client"),
    ("without_dashboard", ray_constants, "DASHBOARD_ADDRESS"),
    ("without_dashboard", ray_constants, "KV_NAMESPACE_DASHBOARD"),
)
MISSING = [*((change, *place) for change, places in CHANGED.items() for place in places), *USED]
LOSS = {
    "loopback": "Ray may listen on all network interfaces",
    "without_dashboard": "Ray also starts its dashboard",
    "worker_setup": "workers start more slowly",
    "worker_deaths": "if memory runs out and Ray ends a worker, the whole sweep may end",
}

WITHOUT_INTERNALS = """
import pkgutil
import types
from clops_sweep.cli.command import main
from clops_sweep.execution import ray_internals

ray_internals.pkgutil = types.SimpleNamespace(resolve_name=lambda name: pkgutil.resolve_name(f"ray._renamed.{name}"))
main()
"""
"""The command, on a Ray that has none of the private names."""


def _entered(change: str) -> AbstractContextManager[bool]:
    changes = {
        "loopback": loopback,
        "without_dashboard": without_dashboard,
        "worker_setup": lambda: worker_setup(forked_worker.__file__),
        "worker_deaths": worker_deaths,
    }
    return changes[change]()


def _objects() -> dict[tuple[str, str], object]:
    """Every object that a change replaces; None where it is missing."""
    return {(change, name): vars(place).get(name) for change, places in CHANGED.items() for place, name in places}


@pytest.mark.parametrize("change", CHANGED)
def test_a_change_is_complete_and_restored(change: str) -> None:
    before = _objects()
    with _entered(change) as complete:
        inside = _objects()
    assert complete
    assert {key for key in before if inside[key] is not before[key]} == {key for key in before if key[0] == change}
    assert _objects() == before


@pytest.mark.parametrize(("change", "place", "name"), MISSING, ids=lambda value: value if type(value) is str else "")
def test_a_missing_name_leaves_out_its_change_alone(
    change: str, place: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(place, name)
    _assert_left_out(change, name)


def test_without_rays_own_setup_script_no_worker_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray._private.workers.setup_worker", None)
    monkeypatch.delattr("ray._private.workers.setup_worker", raising=False)
    _assert_left_out("worker_setup", "workers.setup_worker")


def _assert_left_out(left_out: str, missing: str) -> None:
    before = _objects()
    with ExitStack() as entered:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            complete = {change: entered.enter_context(_entered(change)) for change in CHANGED}
        inside = _objects()
    (warning,) = caught
    said = str(warning.message)
    assert said.startswith(f"Ray {ray.__version__} has no ray.")
    assert f"{missing}: {LOSS[left_out]}" in said
    assert complete == {change: change != left_out for change in CHANGED}
    assert {change for change, name in before if inside[change, name] is not before[change, name]} == set(CHANGED) - {
        left_out
    }
    assert _objects() == before


@pytest.mark.parametrize("missing", [True, False])
def test_without_a_node_no_process_is_watched(missing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing:
        monkeypatch.delattr(worker, "_global_node")
    with pytest.warns(UserWarning, match="this command may end without a message") as caught:
        assert dead_processes()() == []
    assert len(caught) == 1


@pytest.mark.parametrize(("address", "warned"), [("10.0.0.5", 1), ("127.0.0.1", 0)])
def test_an_address_that_other_machines_reach_is_reported(
    address: str, warned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release of Ray that has the name, but no longer uses it."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(ray, "init", lambda **_: None)
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: address)
    warnings: list[str] = []
    cluster._start_here(cluster.Resources(), {}, "/tmp/ray", warnings.append)
    assert [address in warning for warning in warnings] == [True] * warned


def test_a_sweep_finishes_without_any_internals(launch: Launch, forked: Preloaded, tmp_path: Path) -> None:
    options = ("--no-report", "--set", "epochs_per_task=1", "--seeds", "1", *ONE_WORKER)
    # By this variable Ray stays on the loopback interface, so that no other machine reaches the test.
    changes = {ENABLE_RAY_CLUSTERS_ENV_VAR: "0"}
    sweep = launch("space.py", *options, script=forked, program=WITHOUT_INTERNALS, changes=changes)
    assert sweep.wait() == 0, sweep.errors
    for said in (*LOSS.values(), "this command may end without a message"):
        assert sweep.output.count(said) == 1
    assert sweep.output.count(" has no ray.") == 5
    runs = pd.read_parquet(tmp_path / "results" / "runs")
    assert set(runs["status"]) == {"finished"}
    sweep.wait_until_gone()
