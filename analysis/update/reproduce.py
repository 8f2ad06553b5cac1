"""How to reproduce an update report: its two models, and commands."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clops_sweep.data.prepared.commands import data_command, default_prepared_root
from clops_sweep.errors import UsageError
from clops_sweep.experiment.provenance import described
from clops_sweep.store.commands import rerun_command, store_command
from clops_sweep.store.launch_folders import plugin_files_to_name
from clops_sweep.store.run_store import RunStore

_COLUMNS = {
    "computed on": "started_at",
    "clops-sweep": "package_version",
    "commit": "git_commit",
    "Python": "python",
    "PyTorch": "torch",
    "device": "device",
}
"""Columns of `runs` by the names that the page gives them."""


@dataclass(frozen=True)
class Model:
    """A model of a store: the row of its run, the number of tasks that it has learned, and that of all tasks."""

    row: Mapping[str, Any]
    learned: int
    tasks: int


@dataclass(frozen=True)
class Asked:
    """The options of an update report, as words of its command.

    Attributes:
        against: the id of the other run, if any.
        groups: the subgroup columns.
        criteria: whether criteria were given.
        criteria_file: the TOML file of the criteria, if they were read from one.
        folds: whether folds are pooled.
        title: the words at the top of the page.
    """

    against: str
    groups: Sequence[str]
    criteria: bool
    criteria_file: Path | None
    folds: bool = False
    title: str = ""

    def words(self) -> list[str]:
        """Return the options; without a file of criteria, one is named that the reader has to write."""
        words = ["--against", self.against] if self.against else []
        if self.folds:
            words.append("--folds")
        if self.groups:
            words += ["--groups", ",".join(self.groups)]
        if self.criteria:
            words += ["--criteria", str(self.criteria_file.resolve() if self.criteria_file else "criteria.toml")]
        if self.title:
            words += ["--title", self.title]
        return words


def models_of(store: RunStore, before: Sequence[Model], after: Sequence[Model]) -> Iterator[tuple[str, str, str]]:
    """Yield facts about models before and after as (name, before, after), where the store has them.

    Args:
        store: the store.
        before: the model before, or that of each fold.
        after: the model after, or that of each fold.
    """
    pairs = list(zip(before, after, strict=True))
    for earlier, later in pairs:
        yield _named("run", earlier, pairs), str(earlier.row["run_id"]), str(later.row["run_id"])
    learned = [f"{models[0].learned} of {models[0].tasks}" for models in (before, after)]
    yield "tasks learned", learned[0], learned[1]
    for name, column in _COLUMNS.items():
        texts = [_distinct_values(models, column) for models in (before, after)]
        if any(texts):
            yield name, texts[0], texts[1]
    code = []
    for models in (before, after):
        code.append(_distinct(", ".join(described(model.row.get("plugins"))) for model in models))
    if any(code):
        yield "custom code", code[0], code[1]
    seeds = []
    for models in (before, after):
        seeds.append(_distinct(f"seed {model.row['seed']}, split_seed {model.row['split_seed']}" for model in models))
    yield "seeds", seeds[0], seeds[1]
    missing = "not stored; --keep models:all stores it"
    hashes = [(_sha256_of(store, earlier), _sha256_of(store, later)) for earlier, later in pairs]
    if not any(map(any, hashes)):
        yield "SHA-256 of the model", missing, missing
        return
    for (earlier, _), (of_earlier, of_later) in zip(pairs, hashes, strict=True):
        yield _named("SHA-256 of the model", earlier, pairs), of_earlier or missing, of_later or missing


def _named(fact: str, model: Model, pairs: Sequence[object]) -> str:
    """Return the name of a fact about one model, with its fold if there are several."""
    return fact if len(pairs) == 1 else f"{fact}, {model.row['split']}"


def _distinct_values(models: Iterable[Model], column: str) -> str:
    """Return the different values of a column of `runs`, separated by semicolons."""
    return _distinct(_as_text(model.row, column) for model in models)


def _distinct(texts: Iterable[str]) -> str:
    """Return different texts, separated by semicolons."""
    return "; ".join(dict.fromkeys(text for text in texts if text))


def commands_for(
    store: RunStore, rows: Sequence[Mapping[str, Any]], asked: Asked, prepared_root: Path, edition: Path
) -> Iterator[tuple[str, str]]:
    """Yield the commands that repeat a report, valid in any folder, each with its purpose.

    Args:
        store: the store.
        rows: the rows of the runs, that of the updated model first.
        asked: the options of the report.
        prepared_root: the folder of the prepared frames.
        edition: the same, or the folder of an earlier edition, which has the frames of the runs.
    """
    default = prepared_root.resolve() == default_prepared_root().resolve()
    root = None if default else str(prepared_root.resolve())
    options = [] if root is None else ["--prepared-root", root]
    files = [plugin_files_to_name(store, row["plugins"], anywhere=True) for row in rows]
    plugins = []
    for file in files[0]:
        plugins += ["--plugins", file]
    dataset = str(rows[0]["dataset"])
    of_hash = f"of data hash {str(rows[0]['data_hash'])[:12]}"
    if edition == prepared_root:
        prepare = shlex.join(["clops-sweep", "data", "prepare", dataset, *plugins, *options])
        if not plugins:
            prepare = data_command("prepare", dataset, prepared_root=prepared_root)
        yield f"Prepare the frames, {of_hash}", prepare
    else:
        root = str(edition.resolve())
        counts = shlex.join(["clops-sweep", "data", "counts", dataset, *plugins, "--prepared-root", root])
        yield f"Count the frames of the earlier edition, {of_hash}, which is kept there", counts
    for row, of_row in zip(rows, files, strict=True):
        again = rerun_command(str(row["run_id"]), store.files.anywhere, verify=True, plugins=of_row, prepared_root=root)
        whose = f"the models of {row['split']}" if asked.folds else "the models"
        if asked.folds and asked.against:
            whose += f", run {str(row['run_id'])[:8]},"
        if row["data_hash"] != rows[0]["data_hash"] and not asked.folds:
            whose += f", run {str(row['run_id'])[:8]} on its own data, of data hash {str(row['data_hash'])[:12]},"
        yield f"Train {whose} again, and compare every number with the stored ones", again
    words = [str(rows[0]["run_id"]), *asked.words(), *plugins, *options]
    purpose = "Draw this page"
    if asked.criteria and asked.criteria_file is None:
        purpose = "Draw this page, with the limits of the table of criteria in criteria.toml"
    yield purpose, store_command(store.files.anywhere, "update-report", *words)


def _as_text(row: Mapping[str, Any], column: str) -> str:
    """Return a value of a run as text, a time to the minute."""
    value = row.get(column)
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    text = "" if value is None else str(value)
    changed = column == "git_commit" and row.get("git_dirty") and text
    return f"{text} with local changes" if changed else text


def _sha256_of(store: RunStore, model: Model) -> str:
    """Return the SHA-256 of a model; empty if the store does not have it."""
    run_id = str(model.row["run_id"])
    if not store.models.has(run_id, "last"):
        return ""
    try:
        return hashlib.sha256(store.models.read(run_id, model.learned)).hexdigest()
    except UsageError:  # the last model is kept, and this is an earlier one
        return ""
