"""A Ray cluster of two nodes on this machine, for the time that standard input is open. Prints what it is, as JSON."""

from __future__ import annotations

import json
import sys

from ray.cluster_utils import Cluster

dashboard_port = int(sys.argv[1])
sizes = {"object_store_memory": 300 * 2**20}
cluster = Cluster(
    initialize_head=True,
    head_node_args={"num_cpus": 2, "include_dashboard": True, "dashboard_port": dashboard_port, **sizes},
)
other = cluster.add_node(num_cpus=1, **sizes)
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
