"""Each public function of the API and its main classes have examples, and the examples run."""

from __future__ import annotations

import ast
import doctest
import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clops_sweep
from clops_sweep import Claim, Recordings, RunConfig, SearchSpace, Strategy, api, read
from clops_sweep.experiment.plugins.registry import ENCODERS, STRATEGIES
from tests.data.declared_files import declare

MODULE = ast.parse(inspect.getsource(api))
FUNCTIONS = [node for node in MODULE.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
CLASSES = (Claim, Recordings, RunConfig, SearchSpace, Strategy)
RUN_ID = "3f2a"
ENCODER = """
from torch import nn
from clops_sweep import encoder

@encoder("my_encoder", channels=1, sampling_rate=500, samples=2500)
def my_encoder(weights):
    return nn.Sequential(nn.Conv1d(1, 4, 25, stride=10), nn.ReLU(), nn.Flatten())
"""


CLAIMED = """
from clops_sweep import Claim, Contrast, RunConfig, SearchSpace, Side

SPACE = SearchSpace("claimed", RunConfig(epochs_per_task=1), {"strategy": ["finetune", "er"]}, seeds=[0])
ER, FINETUNE = Side("ER", {"strategy": "er"}), Side("fine-tuning", {"strategy": "finetune"})
CLAIMS = [Claim("er_helps", "ER is above fine-tuning", Contrast(ER, FINETUNE, "test_auc"))]
"""


@pytest.fixture
def encoder(tmp_path: Path) -> Iterator[None]:
    """The encoder that an example names."""
    declare(tmp_path / "encoders.py", ENCODER)
    yield
    ENCODERS.forget("my_encoder")


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.name)
def test_each_public_function_has_an_example(function: ast.FunctionDef) -> None:
    assert _examples(function)


@pytest.mark.parametrize("public", CLASSES, ids=lambda public: public.__name__)
def test_the_example_of_each_class_runs(public: type) -> None:
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(public) or "")
    assert examples
    names: dict[str, Any] = {"np": np, **{name: getattr(clops_sweep, name) for name in clops_sweep.__all__}}
    try:
        for example in examples:
            if example.want:
                assert repr(eval(example.source, names)) == example.want.strip(), example.source
            else:
                exec(example.source, names)
    finally:
        if "my_er" in STRATEGIES.added:
            STRATEGIES.forget("my_er")


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:Not learned:UserWarning", "ignore:In the last half of the epochs:UserWarning")
@pytest.mark.usefixtures("encoder")
def test_every_example_of_the_api_runs(tmp_path: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    (tmp_path / "my_space.py").write_text(CLAIMED)
    (tmp_path / "criteria.toml").write_text("max_flips = 0.9\n")
    names: dict[str, Any] = {"np": np, **{name: getattr(clops_sweep, name) for name in clops_sweep.__all__}}
    names["sweep"] = partial(clops_sweep.sweep, ray=False)  # whose start takes longer than the runs
    for function in FUNCTIONS:
        for example in _examples(function):
            source = example.source
            if RUN_ID in source:
                runs = read("results", "runs").query("strategy == 'er'")
                source = source.replace(RUN_ID, runs["run_id"].item())
            if example.want:
                assert repr(eval(source, names)) == example.want.strip(), source
            else:
                exec(source, names)


def _examples(function: ast.FunctionDef) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(ast.get_docstring(function) or "")
