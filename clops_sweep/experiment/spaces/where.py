"""Conditions on config fields, as `--where` takes them: Python expressions without calls.

They consist of comparisons (also chained, `in` and `not in`), arithmetic, `and`, `or`, `not` (and pandas's `&`, `|`,
`~`), numbers, text, lists, True, False and names of config fields. Calls, attributes and subscripts are refused, so
that a pasted condition cannot execute code.

A field that is not set, or an option that the run does not use, equals nothing, as in pandas: `!=` and `not in` are
True, all other comparisons False.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from typing import Any, Protocol

from clops_sweep.errors import UsageError, nearest, one_line, option, shown
from clops_sweep.experiment.config import RunConfig, known_key
from clops_sweep.experiment.plugins.options import OPTIONS

_LONGEST_REASON = 80

_TEXT_OR_SINGLE = re.compile(r"""('[^']*'|"[^"]*")|(?<![=<>!:])=(?!=)""")
"""Text, as the first group, or a single =."""

_SIGNS_OF_TEXT = {ast.Eq: "==", ast.NotEq: "!=", ast.In: "in", ast.NotIn: "not in"}
"""Signs that compare with text."""

_ALLOWED = (
    *(ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.UAdd, ast.Invert),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
    *(ast.Expression, ast.Name, ast.Load, ast.List, ast.Tuple),
)


class _Named(Protocol):
    """Anything with values by name: a config, or a row of `runs` as a mapping."""

    def get(self, name: str, /) -> Any: ...


class Where:
    """A condition on config fields, or on the columns of rows.

    Args:
        expression: a condition such as ``storage_fraction == 0.5 and strategy in ["clops", "mir"]``.
        columns: allowed names; by default the fields of a config.

    Raises:
        UsageError: the expression is invalid or names an unknown field.
    """

    def __init__(self, expression: str, columns: Collection[str] | None = None) -> None:
        self.expression = expression
        self._columns = columns
        try:
            tree = ast.parse(expression.strip(), mode="eval")
            self._names = sorted({name for node in ast.walk(tree) if (name := self._checked(node))})
            self._code = compile(ast.fix_missing_locations(_WordsForSigns().visit(tree)), "a condition", "eval")
        except SyntaxError as error:
            meant = _TEXT_OR_SINGLE.sub(lambda found: found[1] or "==", expression)
            if meant != expression:
                what = f"a condition compares with == and not with = (did you mean {shown(meant)}?)"
                raise self._wrong(what) from None
            raise self._wrong(one_line(error.msg)[:_LONGEST_REASON]) from None
        except UsageError as error:
            raise self._wrong(str(error)) from None
        except (ValueError, RecursionError, MemoryError):  # a null byte, or deeply nested brackets
            raise self._wrong("Python cannot read it") from None

    def __call__(self, config: _Named) -> bool:
        """Return whether the condition holds for a config.

        Raises:
            UsageError: values cannot be compared, or the result is not a bool.
        """
        values = {name: _value(config.get(name)) for name in self._names}
        try:
            kept = eval(self._code, {"__builtins__": {}}, values)  # contains only nodes in `_ALLOWED`
        except (TypeError, ArithmeticError, RecursionError, MemoryError) as error:
            raise self._wrong(one_line(error)[:_LONGEST_REASON]) from None
        if not isinstance(kept, bool | _Unset):
            raise self._wrong("neither true nor false for a run")
        return bool(kept)

    def _checked(self, node: ast.AST) -> str | None:
        """Return the field that a node names, if it is a name.

        Raises:
            UsageError: the node is not allowed in a condition, or the field is unknown.
        """
        match node:
            case ast.Name(id=name):
                if self._columns is None:
                    return known_key(name)
                if name not in self._columns:
                    raise UsageError(f"there is no column {name!r}{nearest(name, dict.fromkeys(self._columns))}")
                return name
            case ast.Constant(value=bool() | int() | float() | str()):
                return None
            case ast.Compare(left=ast.Name(id=name)) if self._is_known(name):
                self._check_quotes(node, name)
            case ast.BoolOp(values=operands) if any(_is_no_truth(operand) for operand in operands):
                raise UsageError("and, or take comparisons: repeat the field, as in seed == 1 or seed == 2")
        if not isinstance(node, _ALLOWED):
            raise UsageError("it takes comparisons, arithmetic, lists and the words and, or, not, in")
        return None

    def _is_known(self, name: str) -> bool:
        """Return whether a name is a field or column."""
        if self._columns is not None:
            return name in self._columns
        return name in RunConfig.model_fields or name in OPTIONS

    def _check_quotes(self, comparison: ast.Compare, name: str) -> None:
        """Check that a field or column is not compared with an unknown name, which is probably text without quotes.

        Raises:
            UsageError: it is.
        """
        for sign, operand in zip(comparison.ops, comparison.comparators, strict=True):
            values = operand.elts if isinstance(operand, ast.List | ast.Tuple) else [operand]
            names = [value.id for value in values if isinstance(value, ast.Name)]
            unknown = [text for text in names if not self._is_known(text)]
            if not unknown or type(sign) not in _SIGNS_OF_TEXT:
                continue
            texts = [f'"{value.id}"' if isinstance(value, ast.Name) else ast.unparse(value) for value in values]
            kind = "key" if self._columns is None else "column"
            right = texts[0] if values == [operand] else f"[{', '.join(texts)}]"
            raise UsageError(
                f"there is no {kind} {unknown[0]!r}; text needs quotes: {name} {_SIGNS_OF_TEXT[type(sign)]} {right}"
            )

    def _wrong(self, what: str) -> UsageError:
        if self._columns is not None:
            return UsageError(f"condition {shown(self.expression)}: {what}")
        return UsageError(
            f"{option('where')} {shown(self.expression)}: {what}; expected a condition on config fields and options, "
            "such as storage_fraction == 0.5"
        )


class _WordsForSigns(ast.NodeTransformer):
    """Replaces pandas's &, | and ~ by `and`, `or` and `not`, and lists by tuples, as in configs."""

    def visit_List(self, node: ast.List) -> ast.expr:
        self.generic_visit(node)
        return ast.Tuple(node.elts, node.ctx)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        words = {ast.BitAnd: ast.And, ast.BitOr: ast.Or}
        word = words.get(type(node.op))
        return node if word is None else ast.BoolOp(word(), [node.left, node.right])

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        return ast.UnaryOp(ast.Not(), node.operand) if isinstance(node.op, ast.Invert) else node


def _is_no_truth(node: ast.expr) -> bool:
    """Return whether an operand is text or a number, as in ``strategy == 'er' or 'clops'``."""
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool)


class _Unset:
    """A value that is missing: equal to nothing, without an order, false."""

    def _false(self, _: object) -> bool:
        return False

    def _self(self, _: object = None) -> _Unset:
        return self

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = _false
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _self
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __pos__ = _self
    __hash__ = None  # type: ignore[assignment]

    def __ne__(self, _: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return False


def _value(value: Any) -> Any:
    return _Unset() if value is None or value != value else value
