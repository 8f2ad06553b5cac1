"""The gallery: docs/results/gallery.md and the numbers of docs/gallery.md follow from the store beside them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from clops_sweep.store.run_store import RunStore
from tests.helpers.documentation import examples

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).parents[2]
FINDINGS, PAGE = ROOT / "docs" / "gallery.md", ROOT / "docs" / "results" / "gallery.md"
FOLDER = ROOT / "docs" / "gallery"


@pytest.fixture(scope="module")
def module(loaded: Callable[[str, Path], ModuleType]) -> ModuleType:
    return loaded("gallery", FOLDER / "gallery.py")


@pytest.fixture(scope="module")
def gallery(module: ModuleType) -> Any:
    return module.Gallery(RunStore(module.STORE))


def test_the_page_has_the_numbers_that_follow_from_the_store(module: ModuleType, gallery: Any) -> None:
    text = PAGE.read_text("utf-8")
    for part in module.page(gallery, {}):
        assert part in text
    said = re.findall(r"\b0\.\d{3}", FINDINGS.read_text("utf-8"))
    assert said
    assert [number for number in said if number not in text] == []


def test_pictures_can_be_drawn_and_have_the_captions_of_the_page(module: ModuleType, gallery: Any) -> None:
    text = PAGE.read_text("utf-8")
    first, second = islice(module.sketches(gallery), 2)
    assert module.caption(first) in text
    assert module.caption(second) in text
    assert module.small(first.drawn().png).startswith(b"\x89PNG")


def test_what_the_page_asks_the_store_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = examples("gallery")
    names: dict[str, Any] = {}
    *before, last = ast.parse(block).body
    exec(compile(ast.Module(before, []), "gallery.md", "exec"), names)
    assert isinstance(last, ast.Expr)
    answer = eval(compile(ast.Expression(last.value), "gallery.md", "eval"), names)
    assert {"clops", "finetune", "gem", "mir", "multitask"} <= set(answer.index.get_level_values("strategy"))
    assert (answer["auc", "mean"].between(0.5, 1)).all()


def test_intervals_of_the_findings_are_those_of_the_generated_page() -> None:
    docs = Path(__file__).parents[2] / "docs"
    intervals = re.findall(r"interval\s+from\s+(\S+)\s+to\s+(-?\d\.\d+)", (docs / "gallery.md").read_text())
    generated = (docs / "results" / "gallery.md").read_text()
    assert intervals
    assert all(rf"\[{low}, {high}\]" in generated for low, high in intervals)
