"""The sources keep to the contracts in pyproject.toml about which part may import which."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest
from importlinter.api import read_configuration

from tests.helpers.sources import nodes_of

ROOT = Path(__file__).parents[1]
CONFIGURATION = ROOT / "pyproject.toml"
ELSEWHERE = ("analysis", "search_spaces")
"""Packages whose folders lie at the top of the repository; import-linter looks for a package where its name says."""

Contract = dict[str, list[str]]

LENIENT: list[Contract] = [
    contract
    for contract in read_configuration(str(CONFIGURATION))["contracts_options"]
    if contract["type"] == "forbidden" and contract.get("ignore_imports")
]
"""Contracts about what is not imported that let some imports through."""


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder of links in which every package is where it is imported from."""
    package = tmp_path / "linked" / "clops_sweep"
    package.mkdir(parents=True)
    for path in (*(ROOT / "clops_sweep").iterdir(), *(ROOT / name for name in ELSEWHERE)):
        (package / path.name).symlink_to(path)
    return package.parent


def _started(folder: Path, *command: Path | str) -> subprocess.CompletedProcess[str]:
    """A command that imports `clops_sweep` from a folder."""
    environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def _lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """What import-linter says of the sources in a folder."""
    lint = Path(sys.executable).with_name("lint-imports")
    return _started(folder, lint, "--config", str(CONFIGURATION), "--no-cache")


def _python(code: str, folder: Path, *arguments: str) -> str:
    """What a program prints."""
    done = _started(folder, sys.executable, "-c", code, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def _loaded(folder: Path, contract: Contract) -> list[str]:
    """Which of the modules that a contract forbids are there once all that it is about has been imported."""
    code = """
import importlib, json, pkgutil, sys
for name in json.loads(sys.argv[1]):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
        importlib.import_module(module.name)
print(json.dumps(sorted(set(sys.modules) & set(json.loads(sys.argv[2])))))
"""
    done = _python(code, folder, json.dumps(contract["source_modules"]), json.dumps(contract["forbidden_modules"]))
    return json.loads(done)


def test_the_contracts_are_kept(linked: Path) -> None:
    done = _lint(linked)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


def test_all_sources_are_looked_at(linked: Path) -> None:
    seen = _python('import grimp; print(*grimp.build_graph("clops_sweep", cache_dir=None).modules)', linked).split()
    folders = {"clops_sweep": ROOT / "clops_sweep", **{f"clops_sweep.{name}": ROOT / name for name in ELSEWHERE}}
    sources = {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
        for package, folder in folders.items()
        for path in folder.rglob("*.py")
    }
    assert set(seen) == sources


@pytest.mark.parametrize("contract", LENIENT, ids=lambda contract: contract["name"])
def test_what_a_contract_lets_through_is_not_loaded(linked: Path, contract: Contract) -> None:
    """An import that is let through stands in a function that is called on demand, or is for types alone."""
    assert _loaded(linked, contract) == []


PATTERNS = {
    "drawing/svg.py": "changes the XML that matplotlib writes",
    "drawing/task_styles.py": "sorts names of tasks, which are the user's, by the numbers in them",
    "figures/beta/tracings.py": "knows leads of an ECG by the names in the user's files",
    "formats.py": "escapes text for Markdown and CSV",
    "report/page.py": "replaces characters that HTML does not show, and spaces between which a line must not break",
    "tables/latex.py": "makes labels and minus signs of LaTeX",
}
"""The files of analysis that use patterns, and what for: to write a format, or to read names that a user chose."""

PATTERNS_OF_SWEEPS = {
    "execution/cluster/cluster_address.py": "reads HOST:PORT, which the user gives",
    "execution/observers/mlflow.py": "replaces characters that MLflow refuses",
    "planning/launched.py": "replaces characters that a file name cannot have",
    "planning/shard.py": "reads i/n, which the user gives",
    "store/models.py": "knows the files of models by their names",
    "store/parts.py": "knows parts by the names of their files",
    "store/run_logs.py": "removes the colours that runs print",
}
"""The same of the packages that plan, compute and store runs."""


def test_no_pattern_of_analysis_reads_what_this_package_writes() -> None:
    """Labels, epochs and scores are data: logs have JSON lines, and names have parts."""
    assert _with_patterns(ROOT / "analysis", ".") == PATTERNS.keys()


def test_no_pattern_reads_errors_labels_or_logs_of_a_sweep() -> None:
    """Reasons of failures and names of options are data, too."""
    assert _with_patterns(ROOT / "clops_sweep", "execution", "planning", "search", "store") == PATTERNS_OF_SWEEPS.keys()
    assert "api.py" not in _with_patterns(ROOT / "clops_sweep", ".")


def _with_patterns(folder: Path, *packages: str) -> set[str]:
    """Return the files of some packages in a folder that import regular expressions."""
    with_patterns = set()
    for package in packages:
        for path in (folder / package).rglob("*.py"):
            for node in nodes_of(path):
                if isinstance(node, ast.Import | ast.ImportFrom) and {"re", "regex"} & _imported(node):
                    with_patterns.add(path.relative_to(folder).as_posix())
    return with_patterns


MOST_NESTED = {"comprehensions": 20, "conditional expressions": 14}
"""Today's numbers of expressions within one of their kind. They fall; a new one is a loop or an `if`."""


def test_nested_expressions_become_fewer() -> None:
    """A comprehension in a comprehension is a loop, and a conditional expression in another an `if`."""
    kinds: dict[str, tuple[type[ast.expr], ...]] = {
        "comprehensions": (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
        "conditional expressions": (ast.IfExp,),
    }
    counts = dict.fromkeys(kinds, 0)
    for path in (*(ROOT / "clops_sweep").rglob("*.py"), *(ROOT / "analysis").rglob("*.py")):
        nodes = nodes_of(path)
        for name, kind in kinds.items():
            outer = [node for node in nodes if isinstance(node, kind)]
            counts[name] += sum(_contains(node, kind) for node in outer)
    assert {name: count for name, count in counts.items() if count > MOST_NESTED[name]} == {}


TOKENS = 14
MOST_DENSE = 21
"""Most files with more than `TOKENS` a statement: tables of declarations, calls and signatures of many arguments."""
VAGUE = frozenset({"each", "found", "it", "place"})
MOST_VAGUE = 192
"""Most places where a variable has a vague name. The number falls; a new variable is a noun."""


def test_statements_become_shorter() -> None:
    """A statement does one thing: intermediate values have names."""
    dense = {}
    for path in (*(ROOT / "clops_sweep").rglob("*.py"), *(ROOT / "analysis").rglob("*.py")):
        tokens = _tokens_of_a_statement(path)
        if tokens > TOKENS:
            dense[path.relative_to(ROOT).as_posix()] = round(tokens, 1)
    assert len(dense) <= MOST_DENSE, dense


def _tokens_of_a_statement(path: Path) -> float:
    """Return the mean number of tokens of a file's statements; docstrings do not count."""
    lengths = []
    statement: list[int] = []
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.NEWLINE:
                if set(statement) != {tokenize.STRING}:
                    lengths.append(len(statement))
                statement = []
            elif token.type not in LAYOUT:
                statement.append(token.type)
    return sum(lengths) / max(len(lengths), 1)


LAYOUT = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NL,
}


def test_variables_are_nouns() -> None:
    counts: Counter[str] = Counter()
    for path in (*(ROOT / "clops_sweep").rglob("*.py"), *(ROOT / "analysis").rglob("*.py")):
        for node in nodes_of(path):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in VAGUE:
                counts[path.relative_to(ROOT).as_posix()] += 1
    assert counts.total() <= MOST_VAGUE, counts.most_common(10)


def _contains(outer: ast.expr, kind: tuple[type[ast.expr], ...]) -> bool:
    return any(isinstance(node, kind) for node in ast.walk(outer) if node is not outer)


def _imported(node: ast.Import | ast.ImportFrom) -> set[str | None]:
    return {node.module} if isinstance(node, ast.ImportFrom) else {alias.name for alias in node.names}


MOST_PRIVATE = 14
"""Most private names of other modules and libraries in tests. The number falls."""

NAMED_PRIVATELY = re.compile(r"_[a-zA-Z]\w*")
PUBLIC_WITH_UNDERSCORE = {"_asdict", "_exit", "_replace", "_repr_html_"}
"""Names that begin with an underscore and that Python or IPython document."""


def test_tests_use_public_names() -> None:
    """Tests observe what a user observes. The rest of them stands in for a machine, or patches a library."""
    private = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = _names_of_others(node)
            private += [(path.name, name) for name in names if NAMED_PRIVATELY.fullmatch(name)]
    used = [(file, name) for file, name in private if name not in PUBLIC_WITH_UNDERSCORE]
    assert len(used) <= MOST_PRIVATE, "\n".join(map(str, used))


def _names_of_others(node: ast.AST) -> list[str]:
    """Return the last parts of the names that an expression takes from another object or module, or replaces there."""
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return []
        case ast.Attribute(attr=name):
            return [name]
        case ast.ImportFrom(module=str(module)):
            return [*module.split("."), *(alias.name for alias in node.names)]
        case ast.Call(func=ast.Attribute(attr="setattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return [name]
        case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(path)), *_]):
            return [path.rpartition(".")[2]]
    return []


def test_only_public_names_of_ray_are_used() -> None:
    """No private module or attribute of Ray, and no argument that begins with an underscore."""
    private, found = re.compile(r"ray\.(.+\.)?_[^_]"), []
    files = [path for folder in ("clops_sweep", *ELSEWHERE) for path in (ROOT / folder).rglob("*.py")]
    with_ray = [path for path in files if "ray" in path.read_text("utf-8")]
    assert with_ray
    for path in with_ray:
        for node in nodes_of(path):
            match node:
                case ast.Import():
                    names = [alias.name for alias in node.names]
                case ast.ImportFrom(module=str(module)):
                    names = [f"{module}.{alias.name}" for alias in node.names]
                case ast.Attribute():
                    names = [ast.unparse(node)]
                case ast.Call(func=ast.Attribute() as called):
                    names = [f"{ast.unparse(called)}.{argument.arg}" for argument in node.keywords]
                case _:
                    continue
            found += [(path.name, name) for name in names if private.match(name)]
    assert found == []
