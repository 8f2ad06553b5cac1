"""The code of a declared function: changes that count, and changes that do not."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from clops_sweep.data.source_code import code_hash
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
