"""Facts about config fields stand on the fields: no module outside `experiment` lists fields by name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from clops_sweep import RunConfig
from tests.helpers.sources import nodes_of

ROOT = Path(__file__).parents[1]
SOURCES = [
    path
    for folder in ("clops_sweep", "analysis")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "experiment" not in path.relative_to(ROOT).parts
]

EXCEPTIONS = {
    (
        "clops_sweep/data/catalog.py",
        ("dataset", "encoder", "start_from"),
    ): "attributes of DataKey, below configs",
    ("clops_sweep/data/preparing/features.py", ("leads", "normalize")): "names of what is hashed for cached features",
    ("clops_sweep/learning/run.py", ("curves", "strategy")): "parts of the state of a run",
    ("clops_sweep/testing/augmentation_contract.py", ("augment", "strategy")): "settings of a test run",
    (
        "clops_sweep/testing/frames.py",
        ("batch_size", "dataset", "epochs_per_task", "learning_rate", "scenario"),
    ): "settings of a test run",
    ("clops_sweep/testing/scenario_contract.py", ("leads", "split")): "arrays of a FrameSet",
    ("clops_sweep/planning/task_tables.py", ("first_tasks", "task_order")): "settings of a curriculum, for its tasks",
    ("analysis/figures/task_titles.py", ("first_tasks", "task_order")): "settings of the config of all tasks in order",
    ("analysis/report/claims_section.py", ("dataset", "scenario")): "columns of a table of claims",
    ("analysis/tables/best.py", ("dataset", "scenario")): "axes that the name of a method leaves out",
    ("clops_sweep/data/scenarios/class_incremental.py", ("domain", "scenario")): "settings that a message proposes",
    (
        "analysis/dashboard/run_page.py",
        ("dataset", "network", "scenario", "strategy"),
    ): "settings that the page of a run never folds",
    ("analysis/dashboard/experiments.py", ("dataset", "scenario")): "the title of experiments that are compared",
    ("analysis/claims/history.py", ("dataset", "scenario")): "what the runs of a claim may decide",
    (
        "clops_sweep/cli/continued.py",
        ("dataset", "first_tasks", "seed", "split", "split_seed", "start_from", "stratify", "task_order", "validation"),
    ): "settings that the file of a continued run writes itself",
}
"""Literals that name fields and are no facts about them, by file and names, with their meaning."""


def lists_of_fields(path: Path) -> Iterator[tuple[str, ...]]:
    """Yield the names of each literal tuple, list, set or mapping in a file that names two fields or more."""
    fields = RunConfig.model_fields.keys()
    for node in nodes_of(path):
        elements: list[ast.expr | None] = []
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            elements = [*node.elts]
        elif isinstance(node, ast.Dict):
            elements = [*node.keys]
        texts = {it.value for it in elements if isinstance(it, ast.Constant) and isinstance(it.value, str)}
        if len(texts & fields) > 1:
            yield tuple(sorted(texts & fields))


def test_no_list_of_fields_is_left_outside_the_package_of_configs() -> None:
    assert len(SOURCES) > 200
    found = [(str(path.relative_to(ROOT)), names) for path in SOURCES for names in lists_of_fields(path)]
    assert [it for it in found if it not in EXCEPTIONS] == []


def test_every_kind_of_literal_is_seen(tmp_path: Path) -> None:
    source = 'A = ("seed", "split")\nB = ["norm", "x", "head"]\nC = {"leads", "encoder"}\nD = {"seed": 0, "norm": 1}\n'
    (tmp_path / "module.py").write_text(source + 'E = ("seed", "x")\nF = f(seed=0, split=1)\n')
    found = list(lists_of_fields(tmp_path / "module.py"))
    assert found == [("seed", "split"), ("head", "norm"), ("encoder", "leads"), ("norm", "seed")]
