"""Conditions on config fields, as `--where` takes them: expressions of Python's grammar, and nothing more of Python.

Comparisons (also chained, `in` and `not in`), arithmetic, `and`, `or`, `not` (and pandas's `&`, `|`, `~`), numbers,
text, lists, True and False, and the names of config fields. No calls, attributes or subscripts: what a user pastes
from somewhere must not be a program. A field that is not set, and an option of a plug-in that the run does not use, are
as nan is: they equal nothing, and a comparison with them is false.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from clops_sweep.errors import UsageError, one_line, shown
from clops_sweep.experiment.config import known_key, nearest

_LONGEST_REASON = 80

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda value, values: value in values,
    ast.NotIn: lambda value, values: value not in values,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_LOGIC: Mapping[type[ast.operator], Callable[[bool, bool], bool]] = {ast.BitAnd: operator.and_, ast.BitOr: operator.or_}
_SIGNS: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_LONGEST = 10_000
"""Characters; Python's own grammar takes deeper expressions than its stack does."""

_LARGEST = 2**128
"""Whole numbers of Python have any number of digits, and take any time."""


class _Named(Protocol):
    """What has values by name: a config, or a row of `runs` as a mapping."""

    def get(self, name: str, /) -> Any: ...


class Where:
    """A condition on config fields, or on the columns of rows.

    Args:
        expression: such as ``storage_fraction == 0.5 and strategy in ["clops", "mir"]``.
        columns: what it may name; by default the fields of a config.

    Raises:
        UsageError: it is no such expression, or names a field that there is not.
    """

    def __init__(self, expression: str, columns: Collection[str] | None = None) -> None:
        self.expression = expression
        self._columns = columns
        if len(expression) > _LONGEST:
            raise self._wrong(f"it is longer than {_LONGEST:,} characters")
        try:
            self._tree = ast.parse(expression.strip(), mode="eval").body
        except SyntaxError as error:
            single = "=" in expression and not any(sign in expression for sign in ("==", "<=", ">=", "!="))
            raise self._wrong(
                "a condition compares with == and not with =" if single else one_line(error.msg)[:_LONGEST_REASON]
            ) from None
        except (ValueError, RecursionError, MemoryError):  # a zero byte; brackets inside brackets
            raise self._wrong("Python cannot read it") from None
        try:
            self._check(self._tree)
        except RecursionError:
            raise self._wrong("Python cannot read it") from None

    def __call__(self, config: _Named) -> bool:
        """Whether it holds for a config.

        Raises:
            UsageError: values cannot be compared so, or it is neither true nor false.
        """
        try:
            kept = self._value(self._tree, config)
        except (TypeError, ArithmeticError, RecursionError) as error:
            raise self._wrong(one_line(error)[:_LONGEST_REASON]) from None
        if not isinstance(kept, bool):
            raise self._wrong("neither true nor false for a run")
        return kept

    def _check(self, node: ast.AST) -> None:
        """Everything that is in it, before it is computed for the first run."""
        match node:
            case ast.Constant(value=int(value)) if abs(value) > _LARGEST:
                raise self._wrong("a number in it is too large")
            case ast.Constant(value=bool() | int() | float() | str()):
                return
            case ast.Name(id=name):
                try:
                    self._check_name(name)
                except UsageError as error:
                    raise self._wrong(str(error)) from None
                return
            case ast.BinOp(op=op) if type(op) not in {*_ARITHMETIC, *_LOGIC}:
                raise self._wrong("it takes + - * / // % and the words and, or, not")
            case ast.Compare(ops=ops) if any(type(op) not in _COMPARISONS for op in ops):
                raise self._wrong("it compares with == != < <= > >= in and not in")
            case ast.BoolOp() | ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.List() | ast.Tuple():
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._check(child)
            case _:
                raise self._wrong("it takes comparisons, arithmetic, lists and the words and, or, not, in")

    def _check_name(self, name: str) -> None:
        if self._columns is None:
            known_key(name)
        elif name not in self._columns:
            raise UsageError(f"there is no column {name!r}{nearest(name, dict.fromkeys(self._columns))}")

    def _value(self, node: ast.expr, config: _Named) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                value = config.get(name)
                return math.nan if value is None else value
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return tuple(self._value(item, config) for item in items)
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                return not self._truth(operand, config)
            case ast.UnaryOp(op=op, operand=operand):
                return _SIGNS[type(op)](self._number(operand, config))
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _LOGIC:
                return _LOGIC[type(op)](self._truth(left, config), self._truth(right, config))
            case ast.BinOp(op=op, left=left, right=right):
                number = _ARITHMETIC[type(op)](self._number(left, config), self._number(right, config))
                if isinstance(number, int) and abs(number) > _LARGEST:
                    raise OverflowError("a number becomes too large")
                return number
            case ast.BoolOp(op=op, values=values):
                wanted = isinstance(op, ast.Or)
                return wanted if any(self._truth(value, config) is wanted for value in values) else not wanted
            case ast.Compare(left=left, ops=ops, comparators=others):
                value = self._value(left, config)
                for comparison, other in zip(ops, others, strict=True):
                    following = self._value(other, config)
                    if not _compared(comparison, value, following):
                        return False
                    value = following
                return True
        raise AssertionError(ast.dump(node))

    def _number(self, node: ast.expr, config: _Named) -> int | float:
        value = self._value(node, config)
        if not isinstance(value, int | float):  # text times a number could be made as long as memory is
            raise TypeError(f"{shown(value)} is no number")
        return value

    def _truth(self, node: ast.expr, config: _Named) -> bool:
        value = self._value(node, config)
        if _is_nan(value):
            return False
        if not isinstance(value, bool):
            raise TypeError(f"{shown(value)} is neither true nor false")
        return value

    def _wrong(self, what: str) -> UsageError:
        if self._columns is not None:
            return UsageError(f"condition {shown(self.expression)}: {what}")
        return UsageError(
            f"--where {shown(self.expression)}: {what}; expected a condition on config fields and options, such as "
            "storage_fraction == 0.5"
        )


def _compared(comparison: ast.cmpop, value: Any, following: Any) -> bool:
    """Whether two values compare so; nan, which also text and lists are compared with, equals nothing."""
    if _is_nan(value) or _is_nan(following):
        return isinstance(comparison, ast.NotEq | ast.NotIn)
    return bool(_COMPARISONS[type(comparison)](value, following))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
