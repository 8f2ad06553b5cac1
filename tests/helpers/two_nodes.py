"""A Ray cluster of two nodes on this machine, for the time that standard input is open. Prints what it is, as JSON."""

from __future__ import annotations

import json
import sys

import forked_worker
from ray.cluster_utils import Cluster

dashboard_port = int(sys.argv[1])  # 0: no dashboard
# Agents at ports of their own: both would ask for the same one, and jobs are taken by the head's alone.
each = {
    "object_store_memory": 300 * 2**20,
    "dashboard_agent_listen_port": 0,
    "setup_worker_path": forked_worker.__file__,
}
cluster = Cluster(
    initialize_head=True,
    head_node_args={"num_cpus": 2, "include_dashboard": dashboard_port > 0, "dashboard_port": dashboard_port, **each},
)
other = cluster.add_node(num_cpus=1, **each)
print(
    json.dumps(
        {
            "address": cluster.address,
            "head": cluster.head_node.node_id,
            "other": other.node_id,
            "other_raylet": other.all_processes["raylet"][0].process.pid,
        }
    ),
    flush=True,
)
sys.stdin.read()
