"""The cluster files are what Ray's own launcher accepts, and ask for a token everywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "cluster.md").read_text()
EXAMPLES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)]
LAUNCHER_FILES = [
    yaml.safe_load((ROOT / "cluster.yaml").read_text()),
    *(example for example in EXAMPLES if "provider" in example),
]


@pytest.mark.parametrize("config", LAUNCHER_FILES, ids=lambda config: config["cluster_name"])
def test_rays_own_schema_accepts_it(config: dict[str, Any]) -> None:
    validate_config(prepare_config(config))


@pytest.mark.parametrize("config", LAUNCHER_FILES, ids=lambda config: config["cluster_name"])
def test_every_ray_process_asks_for_a_token_and_the_dashboard_stays_on_loopback(config: dict[str, Any]) -> None:
    starts = [
        command
        for key in ("head_start_ray_commands", "worker_start_ray_commands")
        for command in config[key]
        if "ray start" in command
    ]
    assert len(starts) == 2
    assert all("RAY_AUTH_MODE=token" in command for command in starts)
    assert "--dashboard-host=127.0.0.1" in starts[0]


@pytest.mark.parametrize("config", LAUNCHER_FILES, ids=lambda config: config["cluster_name"])
def test_the_command_is_on_the_path_of_jobs_and_what_is_not_needed_stays_behind(config: dict[str, Any]) -> None:
    on_login = any("export PATH" in command and "env/bin" in command for command in config["setup_commands"])
    starts = [command for command in config["head_start_ray_commands"] if "ray start" in command]
    assert on_login or all("env/bin:$PATH" in command for command in starts)
    assert {".git", ".venv", "results"} <= set(config["rsync_exclude"])


def test_machines_of_the_aws_cluster_have_an_image_and_workers_the_rights_to_the_bucket() -> None:
    kinds = LAUNCHER_FILES[0]["available_node_types"]
    assert len({kind["node_config"]["ImageId"] for kind in kinds.values()}) == 1  # Ray's own default is of 2018
    assert kinds["gpu_spot"]["node_config"]["IamInstanceProfile"]["Name"]


def test_workers_of_the_aws_cluster_come_from_zero_and_are_spot_machines_with_a_gpu() -> None:
    (worker,) = (kind for name, kind in LAUNCHER_FILES[0]["available_node_types"].items() if name != "head")
    assert worker["min_workers"] == 0
    assert worker["resources"]["GPU"] >= 1
    assert worker["node_config"]["InstanceMarketOptions"]["MarketType"] == "spot"


def test_the_kubernetes_example_is_a_ray_job_of_a_ray_that_is_supported() -> None:
    (job,) = (example for example in EXAMPLES if example.get("kind") == "RayJob")
    cluster = job["spec"]["rayClusterSpec"]
    assert cluster["authOptions"]["mode"] == "token"
    major, minor, _ = (int(part) for part in cluster["rayVersion"].split("."))
    assert (2, 52) <= (major, minor) < (3, 0)
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        assert group["template"]["spec"]["containers"][0]["image"]
