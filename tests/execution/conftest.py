"""Fixtures of the tests of whole sweeps: real Ray, real processes, real files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clops_sweep.experiment.spaces.selection import all_requests
from clops_sweep.experiment.spaces.space_files import load_spaces
from tests.helpers.launching import ATTACHED, ONE_WORKER, Sweep, Tables, runs_alone
from tests.helpers.preloaded import Preloaded

SPACE = """
from clops_sweep import RunConfig, SearchSpace

BASE = RunConfig(epochs_per_task=2, mc_samples=3)
SPACE = [
    SearchSpace(name="replay", base=BASE, axes={"storage_fraction": [0.1, 0.5]}, seeds=range(2)),
    SearchSpace(name="fine-tuning", base=BASE.replace(strategy="finetune"), seeds=range(2)),
]
"""

Launch = Callable[..., Sweep]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))  # a busy machine may take a minute to start Ray


@pytest.fixture(scope="session")
def space() -> str:
    """A search-space file of six runs, each of half a second."""
    return SPACE


@pytest.fixture(scope="session")
def alone(prepared_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """What every run of the space gives alone."""
    path = tmp_path_factory.mktemp("alone") / "space.py"
    path.write_text(SPACE)
    return runs_alone((request.config for request in all_requests(load_spaces(path))), prepared_root)


@pytest.fixture
def launch(console_script: str, environment: dict[str, str], tmp_path: Path) -> Iterator[Launch]:
    """Starts sweeps, over the space of this file unless told otherwise; kills what is left of them at the end."""
    (tmp_path / "space.py").write_text(SPACE)
    started: list[Sweep] = []

    def start(
        *arguments: str,
        folder: Path = tmp_path,
        changes: dict[str, str] | None = None,
        script: str | Preloaded = console_script,
        program: str | None = None,
    ) -> Sweep:
        environ = environment | (changes or {})
        started.append(Sweep(script, folder, environ, *(arguments or ("space.py",)), program=program))
        return started[-1]

    yield start
    for sweep in started:
        sweep.close()


@pytest.fixture
def attach(launch: Launch, ray_at_hand: dict[str, str], drivers: Preloaded) -> Launch:
    """Like `launch`, but on a Ray that is there: for tests about other things than its start and its end."""

    def start(*arguments: str, workers: int = 1, changes: dict[str, str] | None = None, **options: Any) -> Sweep:
        where = ATTACHED if workers == 2 else (*ATTACHED, *ONE_WORKER)
        changes = ray_at_hand | (changes or {})
        return launch(*(arguments or ("space.py",)), *where, changes=changes, script=drivers, **options)

    return start
