"""A folder of results that one node of a cluster does not see."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.launching import kill_all
from tests.helpers.preloaded import new_tag

ONE_NODE = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
print(cluster.address, flush=True)
sys.stdin.read()
"""
RAY = "'from ray.scripts.scripts import main; main()'"
JOIN = "mount -t tmpfs none {folder} && exec {python} -c {ray} start --address={address} --num-cpus=1 --block"


@pytest.fixture
def blind(environment: dict[str, str], tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a cluster of two nodes, the second of which has another disk at the folder of the test."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("needs mount namespaces")
    tag = new_tag()
    temporary = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # Ray's sockets need a short path
    changed = environment | {
        "CLOPS_TEST_TAG": tag,
        "RAY_TMPDIR": temporary,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": uuid.uuid4().hex * 2,
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    head = subprocess.Popen(
        [sys.executable, "-c", ONE_NODE],
        env=changed, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    other = None
    try:
        assert head.stdout is not None
        address = head.stdout.readline().strip()
        join = JOIN.format(folder=tmp_path, python=sys.executable, ray=RAY, address=address)
        other = subprocess.Popen(["unshare", "-m", "sh", "-c", join], env=changed, stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert any("Ray runtime started" in line for line in other.stdout)
        yield address, changed
    finally:
        kill_all(tag)
        for process in filter(None, (head, other)):
            process.communicate()
        shutil.rmtree(temporary, ignore_errors=True)


@pytest.mark.nightly
def test_a_folder_that_a_node_does_not_see_is_refused(
    blind: tuple[str, dict[str, str]], console_script: str, tmp_path: Path
) -> None:
    address, environment = blind
    (tmp_path / "space.py").write_text(
        "from clops_sweep import RunConfig, SearchSpace\nSPACE = SearchSpace(name='one', base=RunConfig())\n"
    )
    done = subprocess.run(
        [console_script, "space.py", "--address", address, "--no-report"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert done.stderr == (
        f"clops-sweep: results {tmp_path}/results: not seen by {os.uname().nodename}; expected a folder that all "
        "nodes of the cluster share, or s3://bucket/prefix\n"
    )
