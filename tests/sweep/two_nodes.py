"""A Ray cluster of two nodes on this machine, for the time that standard input is open. Prints what it is, as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ray.cluster_utils import Cluster

dashboard_port = int(sys.argv[1])
# Agents at ports of their own: both would ask for the same one, and jobs are taken by the head's alone.
worker = str(Path(__file__).with_name("forked_worker.py"))
each = {
    "object_store_memory": 300 * 2**20,
    "dashboard_agent_listen_port": 0,
    "worker_path": worker,
    "setup_worker_path": worker,
}
cluster = Cluster(
    initialize_head=True,
    head_node_args={"num_cpus": 2, "include_dashboard": True, "dashboard_port": dashboard_port, **each},
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
