"""Names of attributes that a method may use: those that its base class does not use itself."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator

from clops_sweep.errors import UsageError


def names_in_use(base: type) -> frozenset[str]:
    """Return the public properties and methods of a class, which no attribute of an object may hide."""
    names = []
    for name, member in vars(base).items():
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            names.append(name)
    return frozenset(names)


def check_assignments(method: type, base: type) -> None:
    """Check that a class assigns no attribute that would hide a property or method of its base class.

    So a launch refuses it before any worker starts. Code without a source file is checked when it runs.

    Raises:
        UsageError: it assigns one.
    """
    taken = names_in_use(base)
    for name, member in vars(method).items():
        if isinstance(vars(base).get(name), property) and not isinstance(member, property):
            raise in_use(method, base, name, name)
        if not inspect.isfunction(member):
            continue
        for name in _assigned(member):
            if name in taken:
                raise in_use(method, base, name, f"self.{name} = ...")


def in_use(method: type, base: type, name: str, definition: str) -> UsageError:
    """Return the error for an attribute that would hide a property or method, with the text that defines it."""
    kind = "property" if isinstance(vars(base)[name], property) else "method"
    return UsageError(
        f"class {method.__name__}: {definition} would hide the {kind} {base.__name__}.{name}; give the attribute "
        "another name"
    )


def _assigned(function: object) -> Iterator[str]:
    """Yield the attributes of its first argument that a function assigns; none if its source is not available."""
    try:
        source = textwrap.dedent(inspect.getsource(function))  # type: ignore[arg-type]
        (definition,) = ast.parse(source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return
    if not isinstance(definition, ast.FunctionDef) or not definition.args.args:
        return
    first = definition.args.args[0].arg
    for node in ast.walk(definition):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Store):
            continue
        if isinstance(node.value, ast.Name) and node.value.id == first:
            yield node.attr
