"""Run ids of some 300 random configs, which stored runs have.

``python tests/experiment/test_frozen_ids.py`` rewrites them. They change only with a semantics version.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from clops_sweep import RunConfig
from clops_sweep.experiment.plugins.registry import BUILT_IN, SCENARIOS, STRATEGIES

FROZEN = Path(__file__).with_name("frozen_ids.jsonl")
DATA_HASH = "ab" * 32


def frozen() -> list[dict[str, Any]]:
    return [json.loads(line) for line in FROZEN.read_text("utf-8").splitlines()]


def _with_its_id(given: dict[str, Any]) -> dict[str, Any]:
    settings = {name: value for name, value in given.items() if name != "run_id"}
    return {"run_id": RunConfig(**settings).run_id(DATA_HASH), **settings}


def test_ids_are_those_of_stored_runs() -> None:
    assert [given for given in frozen() if _with_its_id(given) != given] == []


def test_the_sample_has_every_field_and_option() -> None:
    given = frozen()
    assert {name for it in given for name in it} >= {*RunConfig.model_fields, *BUILT_IN}
    assert {it["strategy"] for it in given} == STRATEGIES.keys()
    assert {it["scenario"] for it in given} == SCENARIOS.keys()


if __name__ == "__main__":
    FROZEN.write_text("".join(f"{json.dumps(_with_its_id(given))}\n" for given in frozen()), "utf-8")
