"""The search-space file of `clops-sweep new FILE --continue RUN_ID`: a model in use continues with a new ward."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from clops_sweep.data.files.folder import one_sentence, shorten
from clops_sweep.errors import UsageError, listed
from clops_sweep.experiment.columns import config_from_row
from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.provenance import origin_of_data, other_plugins
from clops_sweep.experiment.spaces.space_files import criteria_beside
from clops_sweep.learning.models.model_facts import facts_in
from clops_sweep.store.launch_folders import plugin_files_to_name
from clops_sweep.store.run_store import RunStore

_NOT_TAKEN_OVER: Final = (
    *("dataset", "seed", "split", "split_seed", "stratify", "validation", "start_from", "task_order", "first_tasks"),
)
"""Settings that a continued run does not take over: a column divides its people, and it learns all tasks."""

_PREDICTIONS: Final = "predictions"
_ALL_RECORDINGS: Final = "all_recordings"
"""The function of a file that continues a run, see `_TEXT`."""


@dataclass(frozen=True)
class ContinuedSpace:
    """A file that continues a run.

    Attributes:
        text: its content.
        folder: the folder of the recordings, as the declaration writes it, such as `data_root / "hospital"`.
        declared_in: the file that declares the data set of the run.
        criteria: the acceptance criteria beside that file, which go with the new file, too; None without such a file.
    """

    text: str
    folder: str
    declared_in: Path
    criteria: bytes | None


def continued_space(results: str, prefix: str, file: Path) -> ContinuedSpace:
    """Return the search space that continues a stored run with the recordings of another table.

    Args:
        results: the store of the run, a folder or a URI.
        prefix: the id of the run, or an unambiguous prefix.
        file: the file to be written, which gives the new data set its name.

    Raises:
        UsageError: the run has no stored model or predictions, or its data set is not read with a table of patients.
    """
    store = RunStore.named(results)
    store.files.check_is_there()
    run_id = store.find(prefix)
    (row,) = store.rows("runs", run_ids=[run_id])
    _check_kept(store, run_id)
    config = config_from_row(row)
    source = _file_of_data(store, row)
    with one_sentence(source):
        text = source.read_text(encoding="utf-8")
    criteria = _criteria(source)
    declaration = _Declaration.found(text, config.dataset, source)
    name = _name(file, config.dataset)
    column = declaration.column_of(config.domain) if config.scenario == "domain_il" else None
    learned = _learned(store, run_id, config.domain)
    has_order = column is not None and bool(learned)
    lines = _TEXT.format(
        short=run_id[:8],
        run_id=run_id,
        file=shlex.quote(str(file)),
        criteria="" if criteria is None else f" --criteria {shlex.quote(str(criteria_beside(file)))}",
        imports=_imports(text, declaration.function),
        others=_others(row, source, declaration.names_beside(), declaration.is_continued),
        results=_literal(results),
        old_tables=_old_tables(declaration, source),
        patient=declaration.patient,
        by_label=f"{declaration.label}, " if declaration.label else "",
        os="import os\n" if has_order else "",
        order=_ORDER.format(learned=_literals(learned), column=_literal(column)) if has_order else "",
        task_order=_TASK_ORDER.format(folder=declaration.folder) if has_order else "",
        root=_ROOT.format(parameter=declaration.parameter) if has_order else "",
        declaration=declaration.renamed(config.dataset, name),
        space=file.stem,
        settings="\n".join(_settings(config, name)),
        strategy=config.strategy,
        seed=config.seed,
    )
    return ContinuedSpace(lines, declaration.folder, source, criteria)


def _check_kept(store: RunStore, run_id: str) -> None:
    missing = [] if store.models.has(run_id, "last") else ["models"]
    missing += [] if run_id in store.predicted() else [_PREDICTIONS]
    if missing:
        options = " ".join(f"--keep {what}" for what in missing)
        raise UsageError(
            f"--continue: the {' and '.join(missing)} of run {run_id} are not stored; run its search space again with "
            f"{options}, which adds them to finished runs"
        )


def _file_of_data(store: RunStore, row: Mapping[str, Any]) -> Path:
    """Return the file that declares the data set of a run."""
    origin = origin_of_data(row)
    if origin is None or origin.file is None:
        raise UsageError(
            f"--continue: dataset {row['dataset']!r} of run {row['run_id']} is not declared in a file, so it has no "
            "table that a new ward is added to; expected a run on your data, see docs/ward.md"
        )
    for file in plugin_files_to_name(store, row["plugins"]):
        if Path(file).name == Path(origin.file).name and Path(file).is_file():
            return Path(file)
    raise UsageError(
        f"--continue: {origin.file}, which declares dataset {row['dataset']!r}, is not there; run the command in its "
        "folder"
    )


@dataclass(frozen=True)
class _Declaration:
    """The function that declares a data set, and the parts of its source that change.

    Attributes:
        source: the source of the file.
        function: the function.
        decorator: the call of `dataset`.
        call: the call that reads recordings with a table.
    """

    source: str
    function: ast.FunctionDef
    decorator: ast.Call
    call: ast.Call

    @classmethod
    def found(cls, source: str, dataset: str, file: Path) -> _Declaration:
        """Return the declaration of a data set in a file."""
        for node in ast.parse(source).body:
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            for decorator in decorators:
                if isinstance(decorator, ast.Call) and _is_constant(decorator.args, dataset):
                    assert isinstance(node, ast.FunctionDef)
                    return cls(source, node, decorator, _call_with_table(node, source, dataset, file))
        raise UsageError(f"--continue: {shorten(file)} has no function under @dataset({dataset!r}, ...)")

    def _written(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.source, node) or ""

    @property
    def folder(self) -> str:
        """The folder of the recordings, as the declaration writes it."""
        return self._written(self.call.args[0])

    @property
    def table(self) -> str:
        """The table, as the declaration writes it."""
        return self._written(_keywords(self.call)["table"])

    @property
    def is_continued(self) -> bool:
        """Whether `clops-sweep new --continue` wrote the file, so that its function `tables` has the tables."""
        return _is_of_continued(self.call, self.source)

    @property
    def label(self) -> str:
        """The column with the labels, as the declaration writes it; empty if it is not one column."""
        label = _keywords(self.call).get("label")
        return self._written(label) if label is not None and _is_text(label) else ""

    @property
    def patient(self) -> str:
        """The column with the patients, as the declaration writes it."""
        return self._written(_keywords(self.call)["patient"])

    @property
    def parameter(self) -> str:
        """The name of the parameter that takes the folder of the data."""
        arguments = self.function.args
        return [*arguments.posonlyargs, *arguments.args][0].arg

    def column_of(self, domain: str) -> str | None:
        """Return the column of the table that has a domain; None if the source does not show it outside the function.

        The folder of the table must be readable outside the function, too: it may use its parameter alone.
        """
        used = {node.id for node in ast.walk(self.call.args[0]) if isinstance(node, ast.Name)}
        try:
            columns = ast.literal_eval(_keywords(self.call)["domains"])
        except (KeyError, ValueError):
            return None
        if not used <= {self.parameter}:
            return None
        column = columns.get(domain) if isinstance(columns, dict) else domain
        return column if isinstance(column, str) else None

    def names_beside(self) -> list[str]:
        """Return the names of the file that the function uses, without imports."""
        used = {node.id for node in ast.walk(self.function) if isinstance(node, ast.Name)}
        names = []
        for node in ast.parse(self.source).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.append(node.name)
            elif isinstance(node, ast.Assign):
                names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        written_anew = {self.function.name, _ALL_RECORDINGS if self.is_continued else ""}
        return [name for name in names if name in used - written_anew]

    def renamed(self, dataset: str, name: str) -> str:
        """Return the source of the function for a data set of another name, whose table has all recordings."""
        keywords = _keywords(self.call)
        edits = [
            (self._span(self.decorator.args[0]), f'"{name}"'),
            (self._span(keywords["table"]), f"all_recordings({self.folder})"),
        ]
        if "split" in keywords:
            edits.append((self._span(keywords["split"]), '"part"'))
        else:
            edits.append((self._before_table(), 'split="part",' + self._separator()))
        folds = next((keyword for keyword in self.decorator.keywords if keyword.arg == "folds"), None)
        if folds is not None:  # the column `part` divides the people
            edits.append((self._with_comma(folds), ""))
        if "people_of" not in _keywords(self.decorator):
            edits.append((self._after(self.decorator.args[0]), f', people_of="{dataset}"'))
        start = self._offset(self.function.decorator_list[0].lineno, 0)
        end = self._offset(self.function.end_lineno or 0, self.function.end_col_offset or 0)
        text = self.source.encode()
        for (first, last), new in sorted(edits, reverse=True):
            text = text[:first] + new.encode() + text[last:]
            end += len(new.encode()) - (last - first)
        function = text[start:end].decode()
        return re.sub(rf"^def {self.function.name}\b", f"def {name}", function, count=1, flags=re.M)

    def _offset(self, line: int, column: int) -> int:
        """Return the place of a column of a line, from 1, in the encoded source."""
        lines = self.source.encode().splitlines(keepends=True)
        return sum(map(len, lines[: line - 1])) + column

    def _span(self, node: ast.expr) -> tuple[int, int]:
        begin = self._offset(node.lineno, node.col_offset)
        return begin, self._offset(node.end_lineno or 0, node.end_col_offset or 0)

    def _with_comma(self, keyword: ast.keyword) -> tuple[int, int]:
        """Return the place of a keyword that follows another argument, from the comma on."""
        begin = self._offset(keyword.lineno, keyword.col_offset)
        comma = self.source.encode()[:begin].rindex(b",")
        return comma, self._offset(keyword.end_lineno or 0, keyword.end_col_offset or 0)

    def _before_table(self) -> tuple[int, int]:
        (table,) = (keyword for keyword in self.call.keywords if keyword.arg == "table")
        begin = self._offset(table.lineno, table.col_offset)
        return begin, begin

    def _separator(self) -> str:
        """Return what separates an argument from `table=`: the indentation of its line if it is the first one there."""
        begin, _ = self._before_table()
        line = self.source.encode()[:begin].decode().rpartition("\n")[2]
        return f"\n{line}" if line.isspace() else " "

    def _after(self, node: ast.expr) -> tuple[int, int]:
        _, end = self._span(node)
        return end, end


def _is_constant(arguments: list[ast.expr], value: str) -> bool:
    return bool(arguments) and isinstance(arguments[0], ast.Constant) and arguments[0].value == value


def _is_text(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}


def _is_of_continued(call: ast.Call, source: str) -> bool:
    """Return whether a call reads the recordings of several tables, in a file as `_TEXT` writes it."""
    table = _keywords(call).get("table")
    is_call = isinstance(table, ast.Call) and isinstance(table.func, ast.Name) and table.func.id == _ALL_RECORDINGS
    functions = {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    return is_call and functions >= {_ALL_RECORDINGS, "tables"}


def _old_tables(declaration: _Declaration, file: Path) -> str:
    """Return the lines that read the tables of the run, and the function that reads one."""
    if declaration.is_continued:
        return _OF_CONTINUED.format(module=file.stem)
    return _OF_ONE_TABLE.format(table=declaration.table)


def _call_with_table(function: ast.FunctionDef, source: str, dataset: str, file: Path) -> ast.Call:
    """Return the call of `Recordings.from_...` with a folder, a table and a column of patients."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and node.args:
            keywords = _keywords(node)
            has_table = _is_text(keywords.get("table")) or _is_of_continued(node, source)
            if has_table and _is_text(keywords.get("patient")):
                return node
    raise UsageError(
        f"--continue: dataset {dataset!r} in {shorten(file)} is not read from a folder with the names of table= and "
        "patient= in quotes, so no new recordings can be added to its table; declare the new data with split= and "
        "people_of=, see docs/ward.md"
    )


def _name(file: Path, dataset: str) -> str:
    """Return the name of the new data set: that of the file if it can be one."""
    return file.stem if file.stem.isidentifier() and file.stem.isascii() and file.stem != dataset else f"{dataset}_next"


def _imports(source: str, function: ast.FunctionDef) -> str:
    """Return the imports of a file that its function uses, without those that the new file has."""
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    own = {"Recordings", "RunConfig", "SearchSpace", "dataset", "read", "pd"}
    lines = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias for alias in node.names if (alias.asname or alias.name.partition(".")[0]) in used - own]
            if names:
                node.names = names
                lines.append(ast.unparse(node))
    return "".join(f"{line}\n" for line in lines)


def _others(row: Mapping[str, Any], file: Path, names: list[str], is_continued: bool) -> str:
    """Return the import of what the data set and the network use from the file of the run; empty without any."""
    text = f"from {file.stem} import {', '.join(names)}\n" if names else ""
    if is_continued:
        text += f"import {file.stem}\n"
    elif plugins := other_plugins(row):
        text += f"import {file.stem}  # declares {listed(plugins)}\n"
    return text


def _criteria(file: Path) -> bytes | None:
    """Return the acceptance criteria beside a search-space file; None without such a file."""
    criteria = criteria_beside(file)
    with one_sentence(criteria):
        return criteria.read_bytes() if criteria.is_file() else None


def _settings(config: RunConfig, name: str) -> Iterator[str]:
    """Yield the lines of the settings that a continued run takes over."""
    yield f"    dataset={_literal(name)},"
    for field, value in config.changed.items():
        if field not in (*_NOT_TAKEN_OVER, "strategy"):
            yield f"    {field}={_literal(value)},"


def _learned(store: RunStore, run_id: str, domain: str) -> list[str]:
    """Return the values of a domain that are the tasks of a stored model, in its order; empty for other tasks."""
    tasks = facts_in(store.models.read(run_id), f"the model of run {run_id}").tasks
    word = f"{domain} "
    if not all(task.startswith(word) for task in tasks):
        return []
    return [task.removeprefix(word) for task in tasks]


def _literals(values: Iterable[str]) -> str:
    """Return a list of texts as Python code."""
    return f"[{', '.join(map(_literal, values))}]"


def _literal(value: object) -> str:
    """Return a value as Python code, text in double quotes."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


_ORDER: Final = '''
def wards_in_order(folder):
    """Return the wards in the order of training: those that the run learned, in its order, then new ones."""
    order = {learned}
    for table in tables(folder):
        order += sorted(set(table[{column}].str.strip()) - {{*order, ""}})
    return order

'''

_OF_ONE_TABLE: Final = '''
def tables(folder):
    """Return the table of the run, and last that of the new recordings."""
    parts = []
    for table in ({table}, NEW):
        parts.append(pd.read_csv(Path(folder, table), dtype=str, keep_default_na=False, sep=None, engine="python"))
    return parts
'''

_OF_CONTINUED: Final = '''
def tables(folder):
    """Return the tables of the run, and last that of the new recordings."""
    new = pd.read_csv(Path(folder, NEW), dtype=str, keep_default_na=False, sep=None, engine="python")
    return [*{module}.tables(folder), new]
'''

_ROOT: Final = """
# The tables of wards are read from here; if you use --data-root, write its folder.
{parameter} = Path(os.environ.get("CLOPS_DATA_ROOT") or Path(__file__).parent)
"""

_TASK_ORDER: Final = """    task_order=wards_in_order({folder}),  # the new ward is learned last
"""

_TEXT: Final = '''"""Continue run {short}, the model in use, with the recordings of a new ward.

Write the name of their table into NEW, then:

    clops-sweep {file} --keep predictions --keep models
    clops-sweep runs
    clops-sweep update-report RUN_ID --against {short}{criteria} --plugins {file}

The second command lists the runs with their ids; write that of this search space for RUN_ID. The last command compares
both models on people whom neither was trained on.
"""

{os}from pathlib import Path

import pandas as pd
{imports}{others}
from clops_sweep import Recordings, RunConfig, SearchSpace, dataset, read

NEW = "records_new.csv"  # FILL IN: the table of the new recordings, in the folder of the old table, with its columns

RUN = "{run_id}"  # the model in use


{old_tables}

def all_recordings(folder):
    """Return the recordings of all tables. Those whom the run tested, and every third new person, are tested."""
    *old, new = tables(folder)
    tested = set(read({results}, "predictions", run_ids=RUN)["patient"])
    known = set(pd.concat(old)[{patient}])
    ordered = new[~new[{patient}].isin(known)].sort_values([{by_label}{patient}])
    added = ordered[{patient}].drop_duplicates()
    recordings = pd.concat([*old, new])
    is_tested = recordings[{patient}].isin([*tested, *added[::3]])
    return recordings.assign(part=is_tested.map({{True: "test", False: "train"}}))

{order}
{declaration}

{root}
BASE = RunConfig(
{settings}
    start_from=f"run:{{RUN}}",
{task_order})
SPACE = SearchSpace("{space}", BASE, {{"strategy": ["{strategy}"]}}, seeds=[{seed}])
'''
