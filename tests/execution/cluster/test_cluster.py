"""The cluster files are what Ray's own launcher accepts, and ask for a token everywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema
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


def _closed(required: str = "", **properties: Any) -> dict[str, Any]:
    """The schema of an object that has these properties and no others; the operator drops those that it lacks."""
    return {
        "type": "object", "properties": properties, "required": required.split(), "additionalProperties": False,
    }  # fmt: skip


TEXT, COUNT, FLAG = {"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
QUANTITY = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i)?$"}
LIMITS = {"type": "object", "additionalProperties": QUANTITY}
TEMPLATE = _closed(
    "spec",
    spec=_closed(
        "containers",
        containers={
            "type": "array",
            "minItems": 1,
            "items": _closed("name image", name=NAME, image=TEXT, resources=_closed(limits=LIMITS, requests=LIMITS)),
        },
    ),
)
START = {"rayStartParams": {"type": "object", "additionalProperties": {"type": "string"}}, "template": TEMPLATE}
REPLICAS = dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), COUNT)
RAY_CLUSTER = _closed(
    "headGroupSpec",
    rayVersion=TEXT,
    authOptions=_closed(mode={"enum": ["disabled", "token"]}),
    enableInTreeAutoscaling=FLAG,
    headGroupSpec=_closed("template", **START),
    workerGroupSpecs={"type": "array", "items": _closed("groupName template", groupName=NAME, **REPLICAS, **START)},
)
RAY_JOB = _closed(
    "apiVersion kind metadata spec",
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayJob"},
    metadata=_closed("name", name=NAME),
    spec=_closed(
        "entrypoint rayClusterSpec",
        entrypoint=TEXT,
        shutdownAfterJobFinishes=FLAG,
        backoffLimit=COUNT,
        rayClusterSpec=RAY_CLUSTER,
    ),
)
"""The part of KubeRay's RayJob (ray.io/v1) that the recipe uses, by its API reference and that of Kubernetes."""


def test_the_kubernetes_recipe_has_only_fields_of_a_ray_job_and_values_of_their_types() -> None:
    recipe = yaml.safe_load((ROOT / "clops_sweep" / "cli" / "recipes" / "kuberay.yaml").read_text())
    jsonschema.validate(recipe, RAY_JOB)
    cluster = recipe["spec"]["rayClusterSpec"]
    assert cluster["authOptions"]["mode"] == "token"
    major, minor, _ = (int(part) for part in cluster["rayVersion"].split("."))
    assert (2, 52) <= (major, minor) < (3, 0)
    cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] = 0  # a number, not text
    with pytest.raises(jsonschema.ValidationError, match="0 is not of type 'string'"):
        jsonschema.validate(recipe, RAY_JOB)
