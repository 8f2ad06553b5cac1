"""Figures that a report keeps from the one before, and those that it draws."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from clops_sweep.analysis import pictures
from clops_sweep.analysis.cost import CostFrontier, draw_cost_frontier
from clops_sweep.analysis.pictures import KEPT, KeptPictures, Picture, Sketch, sketch

RECORD = CostFrontier(
    "seconds",
    ("a = 0.1", "a = 0.5"),
    ("a = 0.1", "a = 0.5"),
    np.array([1.0, 2.0]),
    np.array([0.7, 0.8]),
    np.array([0, 0]),
    ("CLOPS",),
    np.array([True, True]),
)
DRAWN: list[str] = []


def draw_counted(record: CostFrontier) -> Figure:
    DRAWN.append(record.cost_name)
    return draw_cost_frontier(record)


def item(record: CostFrontier = RECORD, name: str = "x-cost") -> Sketch:
    return sketch(draw_counted, record, name, "Cost", "a caption", "in words")


def drawn(folder: Path, asked: Sketch) -> Picture:
    """A report of one figure: it is taken from the folder or drawn, and written there."""
    kept = KeptPictures(folder)
    found = kept.drawn(asked)
    (folder / f"{found.name}.png").write_bytes(found.png)
    (folder / f"{found.name}.svg").write_bytes(found.svg)
    (folder / KEPT).write_bytes(kept.as_json())
    return found


def test_what_shows_the_same_is_drawn_once(tmp_path: Path) -> None:
    DRAWN.clear()
    first = drawn(tmp_path, item())
    assert drawn(tmp_path, item(replace(RECORD, cost=RECORD.cost.copy()))) == first
    assert len(DRAWN) == 1
    assert "<title>a = 0.1: average AUC 0.700 at 1 seconds per run</title>" in first.drawing
    words = sketch(draw_counted, RECORD, "x-cost", "Cost", "another caption", "in words")
    assert drawn(tmp_path, words) == replace(first, caption="another caption"), "a caption is none of the figure's"
    assert len(DRAWN) == 1
    changed = drawn(tmp_path, item(replace(RECORD, auc=np.array([0.7, 0.8 + 1e-12]))))
    assert len(DRAWN) == 2
    assert "in words" in changed.drawing
    assert drawn(tmp_path, item()) == first
    assert len(DRAWN) == 3, "the report before this one showed something else"


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_file_that_is_not_as_it_was_written_is_drawn_again(tmp_path: Path, ending: str) -> None:
    first = drawn(tmp_path, item())
    DRAWN.clear()
    file = tmp_path / f"x-cost.{ending}"
    file.write_bytes(file.read_bytes() + b" ")
    assert drawn(tmp_path, item()) == first
    file.unlink()
    assert drawn(tmp_path, item()) == first
    assert len(DRAWN) == 2


@pytest.mark.parametrize("content", [b"", b"[]", b"7", b'{"x-cost": {"key": 1}}', b'{"x-cost": 1}', b"\xff"])
def test_what_cannot_be_understood_is_passed_over(tmp_path: Path, content: bytes) -> None:
    (tmp_path / KEPT).write_bytes(content)
    assert KeptPictures(tmp_path)._found(item(), item().key) is None


def test_a_part_of_the_page_that_was_changed_is_drawn_again(tmp_path: Path) -> None:
    first = drawn(tmp_path, item())
    entries = json.loads((tmp_path / KEPT).read_bytes())
    entries["x-cost"]["drawing"] += "<script></script>"
    (tmp_path / KEPT).write_text(json.dumps(entries))
    assert drawn(tmp_path, item()) == first


def test_other_code_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    before = item().key
    assert item().key == before
    assert sketch(draw_cost_frontier, RECORD, "x-cost", "Cost", "a caption", "in words").key != before
    assert item(name="y-cost").key != before
    monkeypatch.setattr(pictures, "_code", lambda: "another version")
    assert item().key != before


def test_keys_are_the_same_in_another_process(tmp_path: Path) -> None:
    program = (
        "import numpy as np\n"
        "from clops_sweep.analysis.cost import CostFrontier, draw_cost_frontier\n"
        "from clops_sweep.analysis.pictures import sketch\n"
        "names = ('a = 0.1', 'a = 0.5')\n"
        "record = CostFrontier('seconds', names, names, np.array([1.0, 2.0]), np.array([0.7, 0.8]), np.array([0, 0]),\n"
        "    ('CLOPS',), np.array([True, True]))\n"
        "key = sketch(draw_cost_frontier, record, 'x-cost', '', '', '').key\n"
    )
    here: dict[str, object] = {}
    exec(program, here)
    again = [sys.executable, "-c", program + "print(key)"]
    there = subprocess.run(again, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert there.stdout.strip() == here["key"]
