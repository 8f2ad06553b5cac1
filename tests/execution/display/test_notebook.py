"""A sweep in a notebook shows one bar that is drawn in place, and writes its log to the file of the launch."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from clops_sweep.execution.display.notebook import NotebookBar

PRINTED = "the end of a task"
SWEEP = """
from clops_sweep import RunConfig, SearchSpace, Strategy, strategy, sweep


@strategy("talking")
class Talking(Strategy):
    def loss(self, batch):
        return self.criterion(self.model(batch.x), batch.y)

    def end_task(self, task):
        print("the end of a task")


space = SearchSpace("bar", RunConfig(epochs_per_task=1), {"strategy": ["finetune", "talking"]}, seeds=[0])
outcome = sweep(space, "results", ray=False)
"""


@pytest.mark.nightly
def test_a_cell_with_a_sweep_shows_a_bar(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ipykernel", reason="runs no notebooks: pip install ipykernel")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SWEEP)])
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}, timeout=250).execute()
    outputs = notebook.cells[0].outputs
    pages = [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    (bar,) = [page for page in pages if "<progress" in page]
    assert '<progress value="2" max="2"' in bar
    assert "2 finished, 0 running, 0 failed, 0 pending" in bar
    assert "best so far: " in bar
    texts = "".join(output.get("text", "") for output in outputs) + "".join(pages)
    assert "2 runs to do" in texts
    assert PRINTED not in texts
    (log,) = (tmp_path / "results" / ".work" / "logs").glob("*.log")
    assert log.read_text().count(PRINTED) > 1


def test_the_bar_is_updated_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "ps1", "", raising=False)  # a shell sets it for good, and `sweep` prints less beside it
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    capture = pytest.importorskip("IPython.utils.capture").capture_output
    try:
        with capture() as captured:
            bar = NotebookBar()
            bar.draw(0, 2, ["<none> yet"])
            bar.draw(1, 2, ["left out"], soon=True)
            bar.draw(2, 2, ["done"])
            bar.begin()
            bar.draw(0, 1, ["another"])
    finally:
        shell.clear_instance()
    first, second, other = captured.outputs
    assert first.data["text/plain"] == "0/2\n<none> yet"
    assert "&lt;none&gt; yet" in first.data["text/html"]
    assert second.data["text/plain"] == "2/2\ndone"
    ids = [output.transient["display_id"] for output in (first, second, other)]
    assert ids[0] == ids[1] != ids[2]
    assert second.update
