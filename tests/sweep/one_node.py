"""A Ray of two CPUs that only this machine reaches, while standard input is open. Says when it is there."""

from __future__ import annotations

import sys

from ray.cluster_utils import Cluster

# Agents at a port of their own: there may be such a Ray for every process of the tests.
node = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 300 * 2**20, "dashboard_agent_listen_port": 0}
cluster = Cluster(initialize_head=True, head_node_args=node)
print(cluster.address, flush=True)
sys.stdin.read()
