"""The table of single runs with intervals over test patients."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pyarrow as pa

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.collect import Experiment, collect
from clops_sweep.analysis.formats import DASH
from clops_sweep.analysis.tables.patients import patients_text
from clops_sweep.experiment.columns import config_row
from clops_sweep.experiment.config import SEMANTICS_VERSION
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import EVERY_RUN, SCHEMAS
from tests.helpers.stores import write_finished

SPACE = SearchSpace("methods", RunConfig(), {"strategy": ["finetune", "clops"]}, seeds=range(2))


def collected(store: RunStore, generated: ModuleType, people: int, *, keep: bool = True) -> Experiment:
    """Runs of a task with two instances a person; CLOPS ranks them right, fine-tuning with errors."""
    for config in (request.config for request in SPACE.requests()):
        run_id = config.run_id("generated0001")
        row = config_row(config) | {"run_id": run_id, "status": "finished"}
        tables = {name: SCHEMAS[name].empty_table() for name in EVERY_RUN}
        row |= generated.provenance("generated0001", SEMANTICS_VERSION, generated.START)
        tables["runs"] = pa.Table.from_pylist([row], schema=SCHEMAS["runs"])
        if keep:
            wrong = 0.5 * (config.strategy == "finetune")
            predictions = [
                {"run_id": run_id, "trained_on": 1, "evaluated_on": 1, "task": "t", "instance": 2 * n + k}
                | {"patient": f"p{n}", "target_0": n % 2}
                | {"probability_0": 0.3 + 0.4 * (n % 2) + wrong * (n % 3 == 0) * (1 - 2 * (n % 2)) + 0.01 * k}
                for n in range(people)
                for k in range(2)
            ]
            tables["predictions"] = pa.Table.from_pylist(predictions)
        write_finished(store, run_id, tables)
    return collect([SPACE], store.read("runs"))[0]


def test_one_run_of_each_configuration_with_its_difference_from_the_first(
    tmp_path: Path, generated: ModuleType
) -> None:
    store = RunStore(tmp_path, keep=["predictions"])
    table = patients_text(collected(store, generated, 30), store, "patients", "Patients")
    assert table is not None
    rows = {(row[0].text, row[2].text): row for row in table.rows}
    assert {name for name, _ in rows} == {"finetune", "clops"}
    assert rows["clops", "test_auc"][4].text == "1.000"
    assert "[" in rows["finetune", "test_auc"][4].text
    assert rows["clops", "test_auc"][5].text.startswith("+")
    assert rows["finetune", "test_auc"][5].text == DASH
    first = SPACE.base.replace(strategy="finetune").run_id("generated0001")
    assert rows["finetune", "test_auc"][1].text == first, "seed 0"


def test_without_predictions_there_is_no_table(tmp_path: Path, generated: ModuleType) -> None:
    store = RunStore(tmp_path)
    assert patients_text(collected(store, generated, 4, keep=False), store, "patients", "Patients") is None
