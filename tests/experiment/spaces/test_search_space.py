from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import OptunaSearch, RunConfig, SearchSpace
from clops_sweep.errors import UsageError
from clops_sweep.experiment.spaces.space_files import load_spaces

ROOT = Path(__file__).parents[3]


def _values(space: SearchSpace, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(request.config, name) for name in names) for request in space.requests()]


# --- expansion --------------------------------------------------------------------------------------------------------


def test_seeds_vary_slowest_and_the_last_axis_fastest() -> None:
    space = SearchSpace(
        name="order",
        base=RunConfig(),
        axes={"storage_fraction": [0.5, 0.1], "acquisition_fraction": [0.25, 1.0]},
        seeds=[7, 2],
    )
    assert _values(space, "seed", "storage_fraction", "acquisition_fraction") == [
        (7, 0.5, 0.25),
        (7, 0.5, 1.0),
        (7, 0.1, 0.25),
        (7, 0.1, 1.0),
        (2, 0.5, 0.25),
        (2, 0.5, 1.0),
        (2, 0.1, 0.25),
        (2, 0.1, 1.0),
    ]


def test_a_named_variant_sets_several_keys() -> None:
    space = SearchSpace(
        name="variants",
        base=RunConfig(storage_order="bottom"),
        axes={"variant": {"CLOPS": {}, "Random": {"storage_order": "random", "acquisition": "random"}}},
        seeds=[0],
    )
    assert _values(space, "storage_order", "acquisition") == [("bottom", "bald_mcd"), ("random", "random")]
    assert [request.labels for request in space.requests()] == [{"variant": "CLOPS"}, {"variant": "Random"}]


def test_the_filter_keeps_what_it_returns_true_for() -> None:
    space = SearchSpace(
        name="filter",
        base=RunConfig(),
        axes={"storage_fraction": [0.1, 0.5]},
        seeds=range(2),
        where=lambda config: config.storage_fraction < 0.5 or config.seed == 0,
    )
    assert _values(space, "seed", "storage_fraction") == [(0, 0.1), (0, 0.5), (1, 0.1)]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"axes": {"storage_fraction": []}}, "search space 'it', axis 'storage_fraction' has no values"),
        ({"axes": {"variant": {}}}, "search space 'it', axis 'variant' has no values"),
        ({"axes": {"mc_samples": [5, 10, 5]}}, "search space 'it', axis 'mc_samples' holds a value twice"),
        ({"axes": {"storage_fraction": [1, 1.0]}}, "search space 'it', axis 'storage_fraction' holds a value twice"),
        ({"axes": {"storage_fracton": [1]}}, "unknown key 'storage_fracton' (did you mean 'storage_fraction'?)"),
        ({"axes": {"variant": {"A": {"sed": 1}}}}, "unknown key 'sed' (did you mean 'seed'?)"),
        ({"axes": {"strategy": "clops"}}, "search space 'it', axis 'strategy': expected a list of values"),
        ({"axes": {"strategy": {"a": {}}}}, "search space 'it', axis 'strategy': named variants need a name"),
        ({"axes": {"seed": [0, 1]}}, "search space 'it', axis 'seed': give seeds as seeds=..., not as an axis"),
        (
            {"axes": {"mc_samples": [5], "variant": {"A": {"mc_samples": 7}}}},
            "search space 'it': two axes set 'mc_samples'",
        ),
        ({"axes": {"variant": {"A": {"seed": 1}}}}, "search space 'it', axis 'variant': give seeds as seeds=..."),
        (
            {"axes": {"storage_fraction": [0.5, 1.5]}},
            "search space 'it', cell storage_fraction 1.5: storage_fraction = 1.",
        ),
        ({"seeds": []}, "search space 'it': seeds has no values"),
        (
            {"seeds": 0},
            "search space 'it': seeds has no values; a number n means the seeds 0 .. n - 1, such as seeds=5",
        ),
        ({"seeds": [1, 1]}, "search space 'it': seeds holds a value twice"),
        ({"seeds": [-1]}, "search space 'it': seed = -1: "),
        ({"name": ""}, "search space name ''"),
        ({"name": "x" * 101}, "search space name 'xxxxxxxxxxxxxxxxxxxx'...: expected 100 bytes at most"),
        ({"name": 5}, "search space name 5: expected text"),
        ({"seeds": 2.5}, "search space 'it': seeds: expected a list of values, not float"),
        ({"base": {"dataset": "synthetic"}}, "search space 'it': base: expected a RunConfig, not dict"),
        ({"axes": [0.1, 0.5]}, "search space 'it': axes: expected a mapping from axes to their values, not list"),
        ({"axes": {"variant": {"A": 1}}}, "search space 'it', axis 'variant': variant 'A': expected a mapping"),
        ({"name": "../it"}, "search space name '../it'"),
        ({"where": lambda config: config.nothing}, "search space 'it': where raises AttributeError: "),
    ],
)
def test_wrong_spaces_are_refused_when_they_are_written(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        SearchSpace(**{"name": "it", "base": RunConfig(), "seeds": [0], **arguments})
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


# --- changes from the command line ------------------------------------------------------------------------------------


def test_an_axis_of_a_tuned_space_is_changed_in_its_file() -> None:
    """It named --where, which a search does not take."""
    search = OptunaSearch(sampler="grid", methods={"er": {"replay_ratio": [0.5, 1.0]}})
    space = SearchSpace("tuned", RunConfig(), {"split_seed": [1, 2]}, search=search)
    with pytest.raises(UsageError, match="varies 'split_seed' itself; write the values to keep in its axes") as raised:
        space.overridden({"split_seed": 1})
    other_advice = "keep some of its values with --where instead"
    assert other_advice not in str(raised.value)
    with pytest.raises(UsageError, match=f"varies 'split_seed' itself; {other_advice}"):
        SearchSpace("grid", RunConfig(), {"split_seed": [1, 2]}).overridden({"split_seed": 1})


def test_overriding_changes_the_base_of_every_run() -> None:
    space = SearchSpace(name="it", base=RunConfig(), axes={"storage_fraction": [0.1, 0.5]}, seeds=[0])
    changed = space.overridden({"dataset": "mitbih", "mc_samples": 5})
    assert _values(changed, "dataset", "storage_fraction", "mc_samples", "epochs_per_task") == [
        ("mitbih", 0.1, 5, 40),
        ("mitbih", 0.5, 5, 40),
    ]


# --- files ------------------------------------------------------------------------------------------------------------

HEAD = "from clops_sweep import RunConfig, SearchSpace\n"


def test_a_file_may_define_one_space_or_several(tmp_path: Path) -> None:
    one, several = tmp_path / "one.py", tmp_path / "several.py"
    one.write_text(HEAD + "SPACE = SearchSpace(name='a', base=RunConfig())")
    several.write_text(HEAD + "SPACE = [SearchSpace(name=n, base=RunConfig()) for n in 'ab']")
    assert [space.name for space in load_spaces(one)] == ["a"]
    assert [space.name for space in load_spaces(several)] == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("x = 1\n1 / 0\n", "{path} raises ZeroDivisionError in line 2: division by zero"),
        ("def f(:\n", "{path} raises SyntaxError in line 1: "),
        ("import nothing_of_that_name\n", "{path} raises ModuleNotFoundError in line 1: "),
        ("import sys\nsys.exit(0)\n", "{path} raises SystemExit in line 2: 0"),
        ("x = 1\n", "{path} defines no SPACE; expected SPACE = SearchSpace(...) or a list of them"),
        ("SPACE = []\n", "{path} defines no SPACE"),
        ("SPACE = 'grid'\n", "{path} defines no SPACE"),
        (HEAD + "SPACE = [SearchSpace(name='a', base=RunConfig()), 3]\n", "{path} defines no SPACE"),
        (HEAD + "SPACE = [SearchSpace(name='a', base=RunConfig())] * 2\n", "{path} has two search spaces of the name"),
        (HEAD + "RunConfig(storage_fraction=1.5)\n", "{path}: storage_fraction = 1.5: "),
        (HEAD + "RunConfig(mc_sample=1)\n", "{path}: unknown key 'mc_sample' (did you mean 'mc_samples'?)"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / "space.py"
    path.write_text(content)
    with pytest.raises(UsageError) as raised:
        load_spaces(path)
    assert str(raised.value).startswith(sentence.format(path=path))
    assert "\n" not in str(raised.value)


SHIPPED = sorted(ROOT.glob("search_spaces/[!_]*.py"))
HEAVY = {"torch", "ray", "pandas", "matplotlib", "scipy"}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, list[str]]]:
    """Of each file the runs and trials that it asks for, and what is imported once it has been loaded, in one process.

    From elsewhere: in a checkout, what is not installed would come first.
    """
    code = """
import json, sys
from pathlib import Path
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.experiment.spaces.selection import Selection
found = {}
for path in map(Path, sys.argv[1:]):
    asked = len(Selection.of(load_spaces(path)).configs)
    found[path.stem] = asked, list(sys.modules)
print(json.dumps(found))
"""
    command, folder = [sys.executable, "-c", code, *map(str, SHIPPED)], tmp_path_factory.mktemp("elsewhere")
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    found: dict[str, tuple[int, list[str]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_shipped_spaces_need_neither_torch_nor_ray(path: Path, loaded: dict[str, tuple[int, list[str]]]) -> None:
    runs, modules = loaded[path.stem]
    assert runs > 0
    assert HEAVY & set(modules) == set()


def test_the_grid_is_the_paper_s() -> None:
    grid, _ = load_spaces(ROOT / "search_spaces" / "class_il_grid.py")
    configs = [request.config for request in grid.requests()]
    assert len(configs) == len(set(configs)) == 4 * 4 * 4 * 5
    assert {config.dataset for config in configs} == {"cardiology"}
    assert {config.storage_fraction for config in configs} == {0.1, 0.25, 0.5, 1.0}
    assert {config.acquisition_fraction for config in configs} == {0.1, 0.25, 0.5, 1.0}
    assert {(config.storage_order, config.acquisition) for config in configs} == {
        ("top", "bald_mcd"),
        ("random", "bald_mcd"),
        ("top", "random"),
        ("random", "random"),
    }


def test_the_size_counts_equal_configurations_once() -> None:
    axes = {"acquisition_fraction": [0.5, 1.0], "acquisition": ["random", "bald_mcd"]}
    space = SearchSpace("it", RunConfig(strategy="clops"), axes, seeds=2)
    assert len(list(space.requests())) == 8
    assert space.size == "6 runs"
