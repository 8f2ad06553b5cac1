"""A Ray of two CPUs that only this machine reaches, while standard input is open. Says when it is there."""

from __future__ import annotations

import sys

import forked_worker
from ray.cluster_utils import Cluster

node = {
    "num_cpus": 2,
    "include_dashboard": False,
    "object_store_memory": 300 * 2**20,
    "dashboard_agent_listen_port": 0,  # agents at a port of their own: each process of the tests may have such a Ray
    "setup_worker_path": forked_worker.__file__,
}
cluster = Cluster(initialize_head=True, head_node_args=node)
print(cluster.address, flush=True)
sys.stdin.read()
