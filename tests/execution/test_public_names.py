"""Only public names of Ray are used: a private one may be gone in its next release."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "clops_sweep"
OF_RAY = {"ray", "tune", "tune_controller", "trial"}


def private_names(tree: ast.AST) -> Iterator[str]:
    """The private names of Ray in a file, and the arguments that begin with an underscore."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (it.name for it in names if it.name.startswith("ray.") and "._" in it.name)
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "ray":
                yield from (name for it in names if "._" in (name := f"{module}.{it.name}"))
            case ast.keyword(arg=str(name)) if name.startswith("_"):
                yield f"{name}="
            case ast.Attribute(attr=name) if name.startswith("_") and not name.endswith("__"):
                if (base := re.match(r"\w+", ast.unparse(node))) and base[0] in OF_RAY:
                    yield f"{base[0]}...{name}"


def test_no_private_name_of_ray_is_used() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if "ray" in path.read_text()]
    assert PACKAGE / "execution" / "tune.py" in files
    found = {path.name: list(private_names(ast.parse(path.read_text()))) for path in files}
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from ray._private import services", "ray._private.services"),
        ("import ray._private.node", "ray._private.node"),
        ("import ray\nray.init(_temp_dir='/tmp')", "_temp_dir="),
        ("from ray import tune\ntune.Tuner(x)._local_tuner", "tune..._local_tuner"),
        ("def choose(tune_controller):\n    return tune_controller._trials", "tune_controller..._trials"),
    ],
)
def test_a_private_name_is_seen(line: str, found: str) -> None:
    assert list(private_names(ast.parse(line))) == [found]
