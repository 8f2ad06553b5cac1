"""Whether every node of a cluster sees the folder of results."""

from __future__ import annotations

import os

import clops_sweep.execution.ray_environment  # noqa: F401  # what it sets is read when Ray is imported

# isort: split

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from clops_sweep.errors import UsageError, listed

_SECONDS = 60.0


def check_shared(witness: str, results: str) -> None:
    """See that the other nodes of the cluster find a file of the driver. A node that does not answer is passed over.

    Args:
        witness: a file below the results.
        results: their folder, as it is printed.

    Raises:
        UsageError: a node does not find it.
    """
    here = ray.get_runtime_context().get_node_id()
    nodes = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU") and node["NodeID"] != here:
            nodes[node["NodeID"]] = node
    if not nodes:
        return

    @ray.remote(num_cpus=0, max_retries=0)
    def sees(path: str) -> bool:
        return os.path.exists(path)

    asked = {}
    for node_id in nodes:
        on_node = NodeAffinitySchedulingStrategy(node_id, soft=False)
        asked[sees.options(scheduling_strategy=on_node).remote(witness)] = node_id
    answers, _ = ray.wait(list(asked), num_returns=len(asked), timeout=_SECONDS)
    blind = []
    for answer in answers:
        try:
            if not ray.get(answer):
                blind.append(nodes[asked[answer]]["NodeManagerHostname"])
        except RayError:
            continue
    if blind:
        raise UsageError(
            f"results {results}: not seen by {listed(sorted(set(blind)))}; expected a folder that all nodes of the "
            "cluster share, or s3://bucket/prefix"
        )
