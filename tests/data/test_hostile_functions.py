"""What a declared function returns, yields, raises or does to the process: one sentence, or no harm."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clops_sweep.data.prepare import prepare
from clops_sweep.data.prepared_folder import PreparedSet
from clops_sweep.errors import BadInput
from tests.data.declared_files import declare, forget

RETURNING = """
import builtins, os, sys
X = np.random.default_rng(0).normal(size=(12, 1, 8)).astype(np.float32)
Y, P = np.arange(12) % 2, np.arange(12)

def good(signals=X, sampling_rate=8, channels=("a",), units="g", labels=Y, classes=("p", "q"), patients=P, **more):
    return Recordings(signals, sampling_rate, channels, units, labels, classes, patients, **more)

calls = []

@dataset("own")
def own(data_root):
    calls.append(1)
    BODY
"""

YIELDING = """
import sys
X = np.random.default_rng(0).normal(size=(12, 1, 8)).astype(np.float32)

@dataset("own", classes=("p", "q"), channels=("a",), units="g", sampling_rate=8)
def own(data_root):
    for n in range(12):
        BODY
"""

Made = Callable[[str, str], PreparedSet]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """Declares and prepares a data set of a function with some body."""
    forget()
    (tmp_path / "data").mkdir()

    def make(template: str, body: str) -> PreparedSet:
        depth = " " * (4 if template is RETURNING else 8)
        declare(tmp_path / "own.py", template.replace("BODY", textwrap.indent(body, depth).lstrip()))
        return prepare("own", prepared_root=tmp_path / "prepared", data_root=tmp_path / "data")

    yield make
    forget()


def _refused(made: Made, template: str, body: str, says: str) -> None:
    with pytest.raises(BadInput, match=says) as caught:
        made(template, body)
    said = str(caught.value)
    assert "\n" not in said
    assert "own" in said
    assert len(said) < 400


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("sys.exit(0)", r"^dataset 'own': the function raises SystemExit in line 16: 0$"),
        ("sys.exit('enough')", "the function raises SystemExit in line 16: enough"),
        ("return good() if len(calls) == 1 else sys.exit(0)", "the function raises SystemExit"),
        ("raise GeneratorExit", "the function raises GeneratorExit"),
        ("raise type('Mine', (BaseException,), {})('x')", "the function raises Mine in line 16: x"),
    ],
)
def test_a_function_that_leaves(made: Made, body: str, says: str) -> None:
    _refused(made, RETURNING, body, says)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("yield Recording(X[n], n % 2, n) if n != 8 else None", r"recording 8: is None; expected Recording\(...\)"),
        ("yield Recording(X[n], n % 2, n) if n else None", r"yields None; expected Recording\(...\)"),
        ("yield Recording(X[n], n % 2, n) if n < 8 else sys.exit(0)", "the function raises SystemExit"),
        ("yield Recording(X[n], n % 2, n)\nif n == 8: raise GeneratorExit", "the function raises GeneratorExit"),
    ],
)
def test_a_generator_that_stops_midway(made: Made, body: str, says: str) -> None:
    _refused(made, YIELDING, body, says)


def test_an_interrupt_passes(made: Made) -> None:
    with pytest.raises(KeyboardInterrupt):
        made(RETURNING, "raise KeyboardInterrupt")
