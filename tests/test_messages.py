"""The sentences of all errors, in one file: `python tests/test_messages.py` writes it anew, for review.

A placeholder is {}. Sentences that are put together elsewhere are not in it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from clops_sweep import errors
from clops_sweep.errors import option

GOLDEN = Path(__file__).with_name("messages.txt")
ROOT = GOLDEN.parents[1]
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
ERRORS = {kind.__name__ for kind in KINDS} | {"ValueError", "TimeoutError"}


def _text(node: ast.expr) -> str:
    """The text of an expression, with {} for what is not literal."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    match node:
        case ast.FormattedValue(value=ast.Call() as call):
            return _text(call)
        case ast.Call(func=ast.Name("option"), args=arguments):
            return option(*(str(it.value) if isinstance(it, ast.Constant) else "{}" for it in arguments))
        case ast.Call(func=ast.Name("either"), args=[command, _]):
            return _text(command)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "{}"


def _sentences() -> Iterator[str]:
    for file in sorted([*(ROOT / "clops_sweep").rglob("*.py"), *(ROOT / "analysis").rglob("*.py")]):
        found = []
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
                text = _text(node.args[0]).encode("unicode_escape").decode()
                if text.strip("{}: "):
                    found.append(text)
        if found:
            yield f"\n{file.relative_to(ROOT).as_posix()}"
            yield from sorted(found)


def test_every_sentence_is_in_the_file() -> None:
    now, written = "\n".join(_sentences()).split("\n"), GOLDEN.read_text().splitlines()
    assert [it for it in now if it not in written] == []
    assert [it for it in written if it not in now] == []


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(_sentences()) + "\n")
