"""The tutorials run from their first cell to their last, as in a notebook, and are kept without what they print."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.ipynb"))
ON_THE_RAY_AT_HAND = "import ray; ray.init('auto', log_to_driver=False, logging_level='ERROR')"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(
    path: Path, tmp_path: Path, ray_at_hand: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ray_at_hand.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(ON_THE_RAY_AT_HAND))
    NotebookClient(notebook, timeout=250, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {kind for cell in notebook.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert {"image/png", "text/html"} <= shown  # a figure and a table
    assert (tmp_path / "results" / "runs").is_dir()


def test_there_are_three_and_they_hold_no_output() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_sweep", "own_parts", "search"]
    for path in NOTEBOOKS:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
