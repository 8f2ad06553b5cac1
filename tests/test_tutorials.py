"""The tutorials run from their first cell to their last, as in a notebook, and are kept without what they print."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from tests.helpers.preloaded import Preloaded

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "tutorials").glob("*.ipynb"))
ON_THE_RAY_AT_HAND = """
import ray
ray.init('auto', log_to_driver=False, logging_level='ERROR')
%matplotlib inline
"""
"""The first cell. Matplotlib is imported before the kernel starts, which else chooses this backend."""
SMALLER = {
    r"epochs_per_task=\d+": "epochs_per_task=1",
    r"seeds=range\(2\)": "seeds=range(1)",
    r"n_trials=8\b": "n_trials=2",
    r"n_trials=10\b": "n_trials=3",
    r'\bsweep\((\w+), "results"\)': r'sweep(\1, "results", cpus_per_trial=2)',
}
"""What the cells say, and what is run: a second worker takes as long to start as all runs of a sweep."""


class RunningKernel(AsyncKernelManager):
    """A kernel that another process has started, at the ports of the connection file."""

    has_kernel = True


KERNEL = "from ipykernel.kernelapp import launch_new_instance as start; start()"


@pytest.mark.nightly
def test_every_cell_runs(tmp_path: Path, ray_at_hand: dict[str, str], drivers: Preloaded) -> None:
    """One kernel runs all notebooks and forgets every name in between: a kernel takes long to start."""
    pytest.importorskip("ipykernel", reason="runs no notebooks: pip install ipykernel")
    cells = [nbformat.v4.new_code_cell(ON_THE_RAY_AT_HAND)]
    for path in NOTEBOOKS:
        (tmp_path / path.stem).mkdir()
        cells.append(nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {tmp_path / path.stem}"))
        cells += nbformat.read(path, as_version=4).cells
    for said, run in SMALLER.items():
        assert any(re.search(said, cell.source) for cell in cells), said
        for cell in cells:
            cell.source = re.sub(said, run, cell.source)
    manager = RunningKernel(connection_file=str(tmp_path / "kernel.json"), owns_kernel=False)
    manager.write_connection_file()
    kernel = drivers.start(tmp_path, ray_at_hand, "-f", manager.connection_file, program=KERNEL)
    try:
        NotebookClient(nbformat.v4.new_notebook(cells=cells), manager, timeout=250).execute(cleanup_kc=True)
    finally:
        kernel.kill()
        kernel.communicate()
    for path in NOTEBOOKS:
        assert (tmp_path / path.stem / "results" / "runs").is_dir()
    shown = [kind for cell in cells for output in cell.get("outputs", []) for kind in output.get("data", {})]
    assert shown.count("image/png") == 5
    assert shown.count("text/html") >= 5  # tables


def test_there_are_four_and_they_hold_no_output() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["encoders", "first_sweep", "own_parts", "search"]
    for path in NOTEBOOKS:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
