"""What the tests share: one thread, prepared data in a temporary folder, real data where they are at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def prepared_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this session's prepared data sets live; `synthetic` is prepared once."""
    from clops_sweep.data.prepare import prepare

    root = tmp_path_factory.mktemp("prepared")
    prepare("synthetic", prepared_root=root, data_root=None)
    return root


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Real data as their publishers ship them; the test is skipped where there are none."""
    named = os.environ.get("CLOPS_DATA_ROOT")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real data here: set CLOPS_DATA_ROOT to the folder that holds them")
    return folder


@pytest.fixture(scope="session")
def console_script() -> str:
    """The installed command `clops-sweep`."""
    beside = Path(sys.executable).with_name("clops-sweep")
    found = str(beside) if beside.exists() else shutil.which("clops-sweep")
    assert found, "clops-sweep is not installed: pip install -e '.[test]'"
    return found


@pytest.fixture(scope="session")
def environment(prepared_root: Path) -> dict[str, str]:
    """The environment of every command that a test starts."""
    return {
        **{name: value for name, value in os.environ.items() if name != "CLOPS_DATA_ROOT"},
        "CLOPS_PREPARED_ROOT": str(prepared_root),
        "COLUMNS": "200",
    }


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def clops_sweep(console_script: str, environment: dict[str, str], tmp_path: Path) -> Command:
    """Runs the command in the test's folder, as a user would, and waits for it."""

    def run(*arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [console_script, *map(str, arguments)],
            cwd=tmp_path,
            env=environment | changes,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )

    return run
