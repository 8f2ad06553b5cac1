"""Measure what the tests catch: change one operator, constant, comparison or argument, and run the tests of the line.

    python tools/mutants.py --coverage        which test covers which line, once; kept in build/mutants
    python tools/mutants.py --seed 1 --count 150

A mutant lives in the memory of one child process; no file is changed. Each result is appended to a file of JSON lines,
so that the command goes on where it was stopped. Tests of a mutant run from the fastest, within SECONDS in all.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "mutants"
MUTATED = (
    *(f"clops_sweep/learning/{it}.py" for it in ("losses", "class_weights", "early_stopping", "batches")),
    *(f"clops_sweep/learning/{it}" for it in ("metrics", "replay", "learners", "method", "augmentation")),
    *(f"clops_sweep/data/{it}" for it in ("files", "splits", "scenarios")),
    *("clops_sweep/experiment/metrics.py", "analysis/statistics.py", "analysis/metrics.py"),
)
TESTS = (
    *(f"tests/learning/{it}" for it in ("metrics", "replay", "learners", "method", "augmentation", "strategies")),
    *(f"tests/learning/test_{it}.py" for it in ("losses", "class_weights", "early_stopping", "batches")),
    *(f"tests/learning/test_{it}.py" for it in ("online", "people", "scenarios")),
    *(f"tests/data/{it}" for it in ("files", "splits", "scenarios")),
    *("tests/data/declared/test_filters.py", "tests/experiment/test_metrics.py"),
    *("tests/analysis/test_statistics.py", "tests/analysis/test_metrics.py"),
)
SECONDS = 45
PYTEST = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header", "--tb=no"]
SWAPPED: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def files(places: Sequence[str]) -> list[str]:
    """Return the Python files of some places that exist, relative to the root."""
    found = [path for it in places for path in (sorted((ROOT / it).rglob("*.py")) or [ROOT / it])]
    return [str(path.relative_to(ROOT)) for path in found if path.is_file()]


def module_name(file: str) -> str:
    """Return the name under which a file is imported."""
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith("clops_sweep") else f"clops_sweep.{name}"


def changed(node: ast.AST) -> ast.expr | None:
    """Return a copy of an expression with one thing changed; None if nothing can be."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in SWAPPED:
            return ast.BinOp(left, SWAPPED[type(op)](), right)
        case ast.Compare(left, [op, *ops], comparators) if type(op) in SWAPPED:
            return ast.Compare(left, [SWAPPED[type(op)](), *ops], comparators)
        case ast.BoolOp(op, values):
            return ast.BoolOp(SWAPPED[type(op)](), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            return operand
        case ast.Constant(bool() as value):
            return ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            return ast.Constant(value + 1)
        case ast.Call(func, [first, second, *rest], keywords):
            return ast.Call(func, [second, first, *rest], keywords)
        case ast.Call(func, arguments, [_, *keywords]):
            return ast.Call(func, arguments, keywords)
    return None


def within_functions(node: ast.AST, function: bool = False) -> Iterator[tuple[ast.expr, int]]:
    """Yield the expressions in functions that are neither types nor messages, with the line of their statement."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert):
                inside = function or isinstance(child, ast.FunctionDef)
                if function and isinstance(child, ast.expr):
                    yield child, child.lineno
                yield from within_functions(child, inside)


def mutants(file: str) -> Iterator[dict[str, Any]]:
    """Yield each mutant of a file: where, what it was, what it becomes."""
    for node, line in within_functions(ast.parse((ROOT / file).read_text())):
        new = changed(node)
        if new is not None:
            span = [node.lineno, node.col_offset, node.end_lineno, node.end_col_offset]
            became = ast.unparse(ast.fix_missing_locations(new))
            yield {"file": file, "line": line, "span": span, "was": ast.unparse(node), "became": became}


def mutated(mutant: dict[str, Any]) -> bytes:
    """Return the source of a file with its mutant."""
    lines = (ROOT / mutant["file"]).read_bytes().splitlines(keepends=True)
    first, begin, last, end = mutant["span"]
    before = b"".join(lines[: first - 1]) + lines[first - 1][:begin]
    after = lines[last - 1][end:] + b"".join(lines[last:])
    return before + f"({mutant['became']})".encode() + after


class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a changed source in place of a file's."""

    source = b""

    def get_code(self, fullname: str) -> Any:
        return compile(self.source, self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module with its mutant."""

    def __init__(self, name: str, loader: _Loader) -> None:
        self._name, self._loader = name, loader

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._loader.path, loader=self._loader)


def _try(mutant: dict[str, Any], tests: list[str]) -> None:
    """Run the tests with a mutant and exit as pytest does."""
    import pytest

    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    name = module_name(mutant["file"])
    loader = _Loader(name, str(ROOT / mutant["file"]))
    loader.source = mutated(mutant)
    sys.meta_path.insert(0, _Finder(name, loader))
    os._exit(pytest.main([*PYTEST, *tests]))


class _Contexts:
    """A plug-in of pytest: coverage by test, and how long each test took."""

    def __init__(self, measuring: Any) -> None:
        self.measuring, self.seconds = measuring, {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.measuring.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.seconds[report.nodeid] = float("inf")


def measure() -> None:
    """Write which test covers which line."""
    import coverage
    import pytest

    FOLDER.mkdir(parents=True, exist_ok=True)
    measuring = coverage.Coverage(data_file=str(FOLDER / "coverage"), include=[str(ROOT / it) for it in files(MUTATED)])
    measuring.erase()
    measuring.start()
    plugin = _Contexts(measuring)
    pytest.main([*(it for it in PYTEST if it != "-x"), *TESTS], plugins=[plugin])
    measuring.stop()
    measuring.save()
    (FOLDER / "seconds.json").write_text(json.dumps(plugin.seconds))


def covering() -> dict[str, dict[int, list[str]]]:
    """Return the tests of each line, fastest first, cut where they would take more than SECONDS."""
    import coverage

    data = coverage.CoverageData(str(FOLDER / "coverage"))
    data.read()
    seconds = json.loads((FOLDER / "seconds.json").read_text())
    found: dict[str, dict[int, list[str]]] = {}
    for file in files(MUTATED):
        for line, contexts in data.contexts_by_lineno(str(ROOT / file)).items():
            total, chosen = 0.0, []
            for test in sorted((it for it in contexts if it in seconds), key=seconds.__getitem__):
                total += seconds[test]
                if total <= SECONDS:
                    chosen.append(test)
            found.setdefault(file, {})[line] = chosen
    return found


def _outcome(mutant: dict[str, Any], tests: list[str]) -> str:
    """Return what became of a mutant: killed by a failing test or import, survived, timeout, or another status."""
    child = multiprocessing.get_context("fork").Process(target=_try, args=(mutant, tests))
    child.start()
    child.join(5 * SECONDS)
    status = child.exitcode
    child.kill()
    child.join()
    broken = dict.fromkeys((1, 2, 4), "killed")  # a test, a module of tests or what conftest.py imports
    return ({0: "survived", None: "timeout"} | broken).get(status, f"status {status}")


def main() -> None:
    """Make the coverage, or try mutants and print the share that is killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=150)
    asked = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    if asked.coverage:
        measure()
        return
    tests = covering()
    candidates = [it for file in tests for it in mutants(file) if tests[file].get(it["line"])]
    chosen = random.Random(asked.seed).sample(candidates, asked.count)
    path = ROOT / "benchmarks" / f"mutants_seed{asked.seed}.jsonl"
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    for module in ("pandas", "pyarrow.parquet", "torch", "scipy.stats", "sklearn.metrics"):
        importlib.import_module(module)  # once: each mutant is tried in a fork
    unchanged = _outcome({**chosen[0], "became": chosen[0]["was"]}, tests[chosen[0]["file"]][chosen[0]["line"]])
    if unchanged != "survived":
        raise SystemExit(f"the tests of unchanged code do not pass ({unchanged}): measure the coverage again")
    for mutant in chosen[len(known) :]:
        nodes = tests[mutant["file"]][mutant["line"]]
        result = _outcome(mutant, nodes)
        known.append({**mutant, "tests": len(nodes), "result": result})
        with path.open("a") as file:
            file.write(json.dumps(known[-1]) + "\n")
        print(
            f"{result:8} {mutant['file']}:{mutant['line']} {mutant['was'][:60]} -> {mutant['became'][:60]}", flush=True
        )
    killed = sum(it["result"] in ("killed", "timeout") for it in known)
    print(f"{killed} of {len(known)} killed ({killed / len(known):.0%})")


if __name__ == "__main__":
    main()
