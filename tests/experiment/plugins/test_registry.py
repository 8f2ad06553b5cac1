"""What can be registered beside the built-in members, and what is refused with a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clops_sweep import acquisition_function, storage_function, strategy
from clops_sweep.errors import UsageError
from clops_sweep.experiment.plugins.registry import (
    ACQUISITION_FUNCTIONS,
    REGISTRIES,
)
from clops_sweep.experiment.spaces.local_modules import importable
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.learning.strategies.finetune import FineTuning
from tests.helpers.registries import only_built_in


@pytest.fixture(autouse=True)
def _registered_for_a_test() -> Iterator[None]:
    with only_built_in(*REGISTRIES.values()):
        yield


class Halfway:
    """Some methods of a strategy."""

    joint = False

    def begin_task(self, task: int) -> None: ...

    def replay(self, task: int, epoch: int) -> None: ...


class WithoutJoint(FineTuning):
    joint = None  # type: ignore[assignment]


class WithState(FineTuning):
    """A method in the form of 0.3."""

    def state(self) -> dict[str, Any]:
        return {}


def _makes_one(training: Any) -> FineTuning:
    return FineTuning(training)


STRATEGY = "strategy 'mine': expected a subclass of clops_sweep.Strategy; "


@pytest.mark.parametrize(
    ("register", "member", "sentence"),
    [
        (storage_function, 3, "storage_function 'mine': expected a function, not something of type int"),
        (acquisition_function, "entropy", "acquisition 'mine': expected a function, not something of type str"),
        (strategy, None, "strategy 'mine': expected a subclass of Strategy, not something of type NoneType"),
        (strategy, object, STRATEGY + "class object has no method 'begin_task'"),
        (strategy, Halfway, STRATEGY + "class Halfway has no method 'train_epoch'"),
        (strategy, WithoutJoint, STRATEGY + "class WithoutJoint has no `joint` that is True or False"),
        (
            strategy,
            WithState,
            "strategy 'mine': state(), restore(): the attributes of a method are its state since 0.4; leave them out, "
            "as in docs/own_method.md",
        ),
        (strategy, _makes_one, STRATEGY + "_makes_one() has no `joint` that is True or False"),
    ],
)
def test_what_is_no_plug_in_is_refused_when_it_is_registered(
    register: Callable[[str], Callable[[Any], Any]], member: object, sentence: str
) -> None:
    with pytest.raises(UsageError) as refused:
        register("mine")(member)
    assert str(refused.value) == sentence
    assert not any(registry.added for registry in REGISTRIES.values())


SPACE = """
import helpers
from helpers import NUMBER
from parts.deep import WORD
from clops_sweep import RunConfig, SearchSpace, acquisition_function

@acquisition_function({name!r})
def score(context, rows):
    return NUMBER, WORD, helpers.number(), helpers.NUMBER

SPACE = SearchSpace("s{number}", RunConfig(acquisition={name!r}), seeds=range(NUMBER))
"""


def _folder(folder: Path, number: int) -> Path:
    """A search-space file and what it imports from beside it."""
    (folder / "parts").mkdir(parents=True)
    (folder / "helpers.py").write_text(f"NUMBER = {number}\ndef number():\n    return NUMBER\n")
    (folder / "parts" / "__init__.py").write_text("")
    (folder / "parts" / "deep.py").write_text(f"WORD = 'w' * {number}\n")
    (folder / "space.py").write_text(SPACE.format(name=f"n{number}", number=number))
    return folder / "space.py"


def test_each_file_imports_what_lies_beside_itself(tmp_path: Path) -> None:
    files = [_folder(tmp_path / name, number) for number, name in ((1, "a"), (2, "b"))]
    with importable(tmp_path):
        pass
    path, modules = sys.path[:-1], dict(sys.modules)
    for number, file in enumerate(files, start=1):
        (space,) = load_spaces(file)
        assert len(space.seeds) == number
    assert sys.path == [*path, str(tmp_path / "b")], "the last folder, for imports inside of functions"
    assert not {"helpers", "parts", "parts.deep"} & sys.modules.keys()
    assert {name: sys.modules[name] for name in modules} == modules
    assert ACQUISITION_FUNCTIONS["n1"](None, None) == (1, "w", 1, 1)
    assert ACQUISITION_FUNCTIONS["n2"](None, None) == (2, "ww", 2, 2)
    (tmp_path / "a" / "helpers.py").write_text("raise ValueError('changed')")
    with pytest.raises(UsageError, match="raises ValueError in line 2: changed"):
        load_spaces(files[0])
    assert sys.path == [*path, str(tmp_path / "a")]
