"""The code of a declared function: changes that count, and changes that do not."""

from __future__ import annotations

import linecache
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clops_sweep.data.source_code import code_hash, code_hashes
from clops_sweep.experiment.spaces.local_modules import importable

TEXT = """
import math
from os.path import *
from beside import scale as by
import package.inner

A = [1]
A.append(2)
B: int = 3
UNUSED = 4
if B:
    C = 5
else:
    C = 6

class Helper:
    value = A

def helper(x):
    return Helper.value, C

def declared(data_root, other=B):
    # a comment
    return helper(data_root), by(math.pi), package.inner.Z

def unused():
    return UNUSED
"""

FILES = {
    "file.py": TEXT.replace("from os.path import *\n", ""),
    "beside.py": "from deeper import f\ndef scale(x): return f(x)\n",
    "deeper.py": "def f(x): return x\n",
    "package/__init__.py": "",
    "package/inner.py": "Z = 1\n",
    "alone.py": "Y = 1\n",
}


def _hash(folder: Path, **changes: tuple[str, str]) -> str:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        old, new = changes.get(name, ("", ""))
        assert old in text
        path.write_text(text.replace(old, new) if old else text)
    with importable(folder):
        return code_hash(runpy.run_path(str(folder / "file.py"))["declared"])


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("file.py", "A = [1]", "A = [0]"),
        ("file.py", "A.append(2)", "A.append(3)"),
        ("file.py", "B: int = 3", "B: int = 0"),
        ("file.py", "C = 6", "C = 7"),
        ("file.py", "value = A", "value = 3"),
        ("file.py", "return Helper.value, C", "return Helper.value"),
        ("file.py", "# a comment", "# another"),
        ("file.py", "import math", "import cmath as math"),
        ("beside.py", "return f(x)", "return 2 * f(x)"),
        ("deeper.py", "return x", "return 2 * x"),
        ("package/inner.py", "Z = 1", "Z = 2"),
    ],
)
def test_what_the_function_uses_is_a_change(file: str, old: str, new: str, tmp_path: Path) -> None:
    assert _hash(tmp_path, **{file: (old, new)}) != _hash(tmp_path)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("file.py", "UNUSED = 4", "UNUSED = 5"),
        ("file.py", "return UNUSED", "return None"),
        ("file.py", "\nimport math", "\n\n# the begin\nimport math"),
        ("alone.py", "Y = 1", "Y = 2"),
    ],
)
def test_what_it_does_not_use_is_none(file: str, old: str, new: str, tmp_path: Path) -> None:
    assert _hash(tmp_path, **{file: (old, new)}) == _hash(tmp_path)


def test_it_does_not_depend_on_where_the_file_is(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    assert _hash(tmp_path / "one") == _hash(tmp_path / "other")


def test_a_function_without_a_file_has_one_too() -> None:
    names: dict[str, object] = {}
    exec("def f(x):\n    return x + 1\ndef g(x):\n    return x + 2", names)
    assert code_hash(names["f"]) != code_hash(names["g"])


SOMEWHERE = """
import sys
sys.path.insert(0, {folder!r})
import importlib
from layers_elsewhere import body
from package_elsewhere.blocks import block

def declared(x):
    from lazy_elsewhere import late
    other = importlib.import_module("named_elsewhere")
    return body(x), block(x), late(x), other.Z

def alone(x):
    return x
"""
ELSEWHERE = {
    "layers_elsewhere.py": "import deeper_elsewhere\ndef body(x): return deeper_elsewhere.f(x)\n",
    "deeper_elsewhere.py": "def f(x): return x\n",
    "package_elsewhere/__init__.py": "",
    "package_elsewhere/blocks.py": "from .inner.parts import part\nfrom . import sizes\ndef block(x): return part(x)\n",
    "package_elsewhere/inner/__init__.py": "",
    "package_elsewhere/inner/parts.py": "from .. import more\ndef part(x): return 1\n",
    "package_elsewhere/sizes.py": "SIZE = 1\n",
    "package_elsewhere/more.py": "MORE = 1\n",
    "lazy_elsewhere.py": "def late(x): return 1\n",
    "named_elsewhere.py": "Z = 1\n",
}


@pytest.fixture
def new_modules() -> Iterator[None]:
    """Forget the modules of `ELSEWHERE`, and the folders that were added to the path."""

    def forget() -> None:
        for name in [name for name in sys.modules if "_elsewhere" in name]:
            del sys.modules[name]

    path = list(sys.path)
    yield forget  # type: ignore[misc]
    forget()
    sys.path[:] = path


def _somewhere(folder: Path, name: str = "declared", **changes: tuple[str, str]) -> str:
    """Return the hash of a function whose file imports modules of another folder."""
    for name_of, text in ELSEWHERE.items():
        path = folder / "src" / name_of
        path.parent.mkdir(parents=True, exist_ok=True)
        old, new = changes.get(name_of, ("", ""))
        assert old in text
        path.write_text(text.replace(old, new) if old else text)
    (folder / "exp").mkdir(exist_ok=True)
    (folder / "exp" / "file.py").write_text(SOMEWHERE.format(folder=str(folder / "src")))
    with importable(folder / "exp"):
        return code_hash(runpy.run_path(str(folder / "exp" / "file.py"))[name])


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("layers_elsewhere.py", "return deeper", "return 2 * deeper"),
        ("deeper_elsewhere.py", "return x", "return 2 * x"),
        ("package_elsewhere/blocks.py", "return part(x)", "return 2 * part(x)"),
        ("package_elsewhere/inner/parts.py", "return 1", "return 2"),
        ("package_elsewhere/sizes.py", "SIZE = 1", "SIZE = 2"),
        ("package_elsewhere/more.py", "MORE = 1", "MORE = 2"),
        ("lazy_elsewhere.py", "return 1", "return 2"),
        ("named_elsewhere.py", "Z = 1", "Z = 2"),
    ],
)
def test_modules_of_other_folders_count(file: str, old: str, new: str, tmp_path: Path, new_modules: Any) -> None:
    before = _somewhere(tmp_path)
    alone = _somewhere(tmp_path, "alone")
    new_modules()
    assert _somewhere(tmp_path) == before
    assert _somewhere(tmp_path, **{file: (old, new)}) != before
    assert _somewhere(tmp_path, "alone", **{file: (old, new)}) == alone


def test_the_hash_of_code_with_modules_beside_it_alone_stays_as_earlier_versions_stored_it(tmp_path: Path) -> None:
    _hash(tmp_path)
    with importable(tmp_path):
        hashes = code_hashes(runpy.run_path(str(tmp_path / "file.py"))["declared"])
    assert hashes.whole == hashes.beside
    assert hashes.whole == "03185e38e929075d020a2f6fe38ef7d02d657f77d2aff8d2c3e8a20b97babbbb"


CELL = """
WIDTH = 4
SHAPE = [8, 8]

def helper(x):
    return WIDTH * x

def network(x):
    return helper(x), SHAPE

class Network:
    depth = 2

    def forward(self, x):
        return helper(x)
"""


def _cell(text: str, name: str) -> str:
    """Return the hash of what a cell of a notebook defines."""
    file = f"<cell {abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, file, "exec"), names)
    return code_hash(names[name])


@pytest.mark.parametrize("name", ["network", "Network"])
@pytest.mark.parametrize(
    ("old", "new"),
    [("WIDTH = 4", "WIDTH = 32"), ("return WIDTH * x", "return x"), ("return helper(x)", "return 2 * helper(x)")],
)
def test_what_a_notebook_defines_elsewhere_counts(name: str, old: str, new: str) -> None:
    before = _cell(CELL, name)
    assert _cell(CELL + "\n\nUNUSED = 1\n", name) == before
    assert _cell(CELL.replace(old, new), name) != before


def test_constants_and_attributes_of_a_notebook_count() -> None:
    assert _cell(CELL.replace("[8, 8]", "[8, 9]"), "network") != _cell(CELL, "network")
    assert _cell(CELL.replace("depth = 2", "depth = 3"), "Network") != _cell(CELL, "Network")


INNER = """
from functools import partial

def network(x):
    def inner(y):
        return len(y.real)
    return [inner(part) for part in x], (lambda y: y + 1)(x), ACTIVATIONS["up"](x), scaled(x), made(x), set_of(x)

def power(x, exponent):
    return x ** exponent

def factory(width):
    def of_factory(x):
        return width * x
    return of_factory

class Network:
    class Block:
        def forward(self, x):
            return ACTIVATIONS["up"](x)

    def forward(self, x):
        return (lambda y: y + 1)(x)

def set_of(x, activation=lambda y: y - 5):
    return x in {"a", "b", "c"}, activation(x)

ACTIVATIONS = {"up": lambda y: y + 3}
scaled = partial(power, exponent=2)
made = factory(4)
"""


def _cell_without_text(text: str, name: str) -> str:
    """Return the hash of what a cell defines whose text Python does not know, as one read from a pipe."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, "<stdin>", "exec"), names)
    return code_hash(names[name])


@pytest.mark.parametrize("hash_of", [_cell, _cell_without_text])
@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("network", "len(y.real)", "len(y.imag)"),
        ("network", "len(y.real)", "abs(y.real)"),
        ("network", "y + 1)(x), ACT", "y + 2)(x), ACT"),
        ("network", "y + 3", "y - 3"),
        ("network", "exponent=2", "exponent=3"),
        ("network", "return x ** exponent", "return exponent ** x"),
        ("network", "factory(4)", "factory(8)"),
        ("network", "y - 5", "y - 6"),
        ("Network", "y + 1)(x)\n", "y + 2)(x)\n"),
        ("Network", "y + 3", "y - 3"),
    ],
)
def test_functions_within_a_cell_count(hash_of: Any, name: str, old: str, new: str) -> None:
    assert INNER.count(old) == 1
    assert hash_of(INNER.replace(old, new), name) != hash_of(INNER, name)
    assert hash_of(INNER, name) == hash_of(INNER + "\nUNUSED = 1\n", name)
