"""The shipped search spaces ask for what the paper's experiments need, and run on the open stand-ins."""

from __future__ import annotations

from pathlib import Path

import pytest

from clops_sweep.experiment.spaces.selection import all_requests
from clops_sweep.experiment.spaces.space_files import defines_space, load_spaces

FOLDER = Path(__file__).parents[3] / "search_spaces"
RUNS = {  # cells times five seeds
    "class_il_grid": 4 * 4 * 4 * 5,
    "storage_order": 4 * 4 * 2 * 5,
    "storage_function": 4 * 4 * 2 * 5,
    "mc_samples": 4 * 5,
    "acquisition_functions": 3 * 5,
    "baselines_class_il": 5 * 5,
    "baselines_time_il": 5 * 5,
    "baselines_domain_il": 5 * 5,
    "task_order": 3 * 2 * 5,
    "weighted_replay": 3 * 2 * 5,
    "mir_grid": (4 + 4) * 5,
}
STAND_INS = {
    "class_il": ("mitbih", "synthetic", "synthetic_paper"),
    "time_il": ("ptbxl", "synthetic"),
    "domain_il": ("ptbxl", "synthetic"),
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_every_file_loads_and_says_what_it_is(path: Path) -> None:
    spaces = load_spaces(path)
    assert all_requests(spaces) or all(space.search for space in spaces)
    assert path.read_text().startswith('"""')


@pytest.mark.parametrize("name", RUNS)
def test_an_experiment_asks_for_its_runs_and_for_fine_tuning_and_takes_a_stand_in(name: str) -> None:
    spaces = load_spaces(FOLDER / f"{name}.py")
    asked = [all_requests([it for it in spaces if it.name.endswith("fine_tuning") == end]) for end in (False, True)]
    assert (len(asked[0]), "finetune" in {it.config.strategy for of in asked for it in of}) == (RUNS[name], True)
    for space in spaces:
        for dataset in STAND_INS[space.base.scenario]:
            assert {it.config.dataset for it in space.overridden({"dataset": dataset}).requests()} == {dataset}


def test_the_paper_at_once_is_the_union_and_shares_runs() -> None:
    everything = all_requests(load_spaces(FOLDER / "paper.py"))
    assert len(everything) == sum(RUNS.values())
    apart = {request.config for name in RUNS for request in all_requests(load_spaces(FOLDER / f"{name}.py"))}
    assert {request.config for request in everything} == apart
    assert len(apart) < len(everything)


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("SPACE = SearchSpace('own', RunConfig())\n", True),
        ("SPACE: object = [1]\n", True),
        ("OTHER = SPACE\n", False),
        ("def make():\n    SPACE = 1\n", False),
        ("SPACE = (\n", False),
    ],
)
def test_a_search_space_file_is_told_without_executing_it(text: str, defines: bool, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(f"{text}raise SystemExit\n" if defines else text)
    assert defines_space(file) is defines
    assert not defines_space(tmp_path / "nothing.py")
