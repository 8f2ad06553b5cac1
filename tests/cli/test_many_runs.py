"""Work of commands on a store with many finished runs: calls are counted, so that a busy machine changes nothing."""

from __future__ import annotations

import cProfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import clops_sweep
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.store.run_store import RunStore
from tests.helpers.stores import write_many_finished

FEW, MANY = 200, 1000
SEEDS = 5
SPACE = """
from clops_sweep import RunConfig, SearchSpace

VALUES = [number / 1000 for number in range(1, {values} + 1)]
SPACE = SearchSpace("many", RunConfig(), {{"storage_fraction": VALUES, "acquisition_fraction": [0.25, 0.5]}}, seeds=5)
"""
COMMANDS = {
    "launch": ["launch", "space.py", "--no-report"],
    "plan": ["plan", "space.py"],
    "status of the space": ["status", "space.py"],
    "status of all launches": ["status"],
}
PACKAGE = str(Path(clops_sweep.__file__).parent)

OF_FILES = ("store/", "search/", "data/prepared/", "data/preparing/", "<built-in method io.", "<built-in method posix.")
"""Where functions are that look something up in a store or prepared data, or use a file."""

VALIDATION = "experiment/config.py: RunConfig._fill"
MOST_CALLS = 10
"""Most calls of any other function for each run."""

NO_GROWTH = 0.01
"""Calls for each run at most, where no run needs one: printed numbers have more digits, files are closed."""

Calls = Counter[str]
Counted = Callable[[Sequence[str], int], Calls]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory, prepared_root: Path) -> dict[int, Path]:
    """For each number of runs, a folder with a search space of so many runs, all of them finished and launched."""
    content = data_hash("synthetic", prepared_root=prepared_root)
    assert content is not None
    found = {}
    for runs in (FEW, MANY):
        folder = tmp_path_factory.mktemp(f"runs-{runs}-")
        (folder / "space.py").write_text(SPACE.format(values=runs // SEEDS // 2))
        (space,) = load_spaces(folder / "space.py")
        configs = [request.config for request in space.requests()]
        assert len(configs) == runs
        write_many_finished(RunStore(folder / "results"), configs, content)
        found[runs] = folder
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
            CliRunner().invoke(command, COMMANDS["launch"], standalone_mode=False)
    return found


@pytest.fixture
def counted(folders: dict[int, Path], monkeypatch: pytest.MonkeyPatch, prepared_root: Path) -> Counted:
    """Counts the calls of each function of the package in a command, and of each built-in function."""
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))

    def run(words: Sequence[str], runs: int) -> Calls:
        monkeypatch.chdir(folders[runs])
        profile = cProfile.Profile()
        done = profile.runcall(CliRunner().invoke, command, words, standalone_mode=False)
        assert done.exception is None, done.exception
        assert f"{runs} finished" in done.output
        return calls_of(profile)

    return run


def calls_of(profile: cProfile.Profile) -> Calls:
    """Return the calls of each function of the package, by file and name, and of built-in functions, by name."""
    calls: Calls = Counter()
    for entry in profile.getstats():
        if isinstance(entry.code, str):
            calls[entry.code] += entry.callcount
        elif entry.code.co_filename.startswith(PACKAGE):
            file = entry.code.co_filename.removeprefix(f"{PACKAGE}/")
            calls[f"{file}: {entry.code.co_qualname}"] += entry.callcount
    return calls


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_look_ups_do_not_grow_with_the_runs_and_validations_with_the_cells_alone(
    words: Sequence[str], counted: Counted
) -> None:
    few, many = counted(words, FEW), counted(words, MANY)
    assert few[VALIDATION] > 0, "calls are counted"
    assert any(name.startswith("store/") for name in few)
    too_often = {}
    for name, calls in many.items():
        by_run = (calls - few[name]) / (MANY - FEW)
        most = NO_GROWTH if name.startswith(OF_FILES) else MOST_CALLS
        if by_run > most and (name.startswith(OF_FILES) or ".py: " in name):
            too_often[name] = by_run
    assert too_often == {}
    assert many[VALIDATION] - few[VALIDATION] <= (MANY - FEW) / SEEDS
