"""How to reproduce an update report: its two models, and commands."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clops_sweep.data.prepared.commands import data_command, default_prepared_root
from clops_sweep.errors import UsageError
from clops_sweep.experiment.provenance import described
from clops_sweep.store.launch_folders import plugin_files_to_name
from clops_sweep.store.reading import rerun_command, store_command
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
    """

    against: str
    groups: Sequence[str]
    criteria: bool
    criteria_file: Path | None

    def words(self) -> list[str]:
        """Return the options; without a file of criteria, one is named that the reader has to write."""
        words = ["--against", self.against] if self.against else []
        if self.groups:
            words += ["--groups", ",".join(self.groups)]
        if self.criteria:
            words += ["--criteria", str(self.criteria_file.resolve() if self.criteria_file else "criteria.toml")]
        return words


def models_of(store: RunStore, before: Model, after: Model) -> Iterator[tuple[str, str, str]]:
    """Yield facts about two models as (name, before, after), where the store has them."""
    yield "run", str(before.row["run_id"]), str(after.row["run_id"])
    learned = [f"{model.learned} of {model.tasks}" for model in (before, after)]
    yield "tasks learned", learned[0], learned[1]
    for name, column in _COLUMNS.items():
        earlier, later = _as_text(before.row, column), _as_text(after.row, column)
        if earlier or later:
            yield name, earlier, later
    code = [", ".join(described(model.row.get("plugins"))) for model in (before, after)]
    if any(code):
        yield "custom code", code[0], code[1]
    seeds = [f"seed {model.row['seed']}, split_seed {model.row['split_seed']}" for model in (before, after)]
    yield "seeds", seeds[0], seeds[1]
    hashes = [_sha256_of(store, model) for model in (before, after)]
    missing = "not stored; --keep models:all stores it"
    yield "SHA-256 of the model", hashes[0] or missing, hashes[1] or missing


def commands_for(
    store: RunStore, rows: Sequence[Mapping[str, Any]], asked: Asked, prepared_root: Path
) -> Iterator[tuple[str, str]]:
    """Yield the commands that repeat a report, valid in any folder, each with its purpose.

    Args:
        store: the store.
        rows: the rows of the runs, that of the updated model first.
        asked: the options of the report.
        prepared_root: the folder of the prepared frames.
    """
    default = prepared_root.resolve() == default_prepared_root().resolve()
    root = None if default else str(prepared_root.resolve())
    options = [] if root is None else ["--prepared-root", root]
    files = [plugin_files_to_name(store, row["plugins"], anywhere=True) for row in rows]
    plugins = []
    for file in files[0]:
        plugins += ["--plugins", file]
    dataset = str(rows[0]["dataset"])
    prepare = shlex.join(["clops-sweep", "data", "prepare", dataset, *plugins, *options])
    if not plugins:
        prepare = data_command("prepare", dataset, prepared_root=prepared_root)
    yield f"Prepare the frames, of data hash {str(rows[0]['data_hash'])[:12]}", prepare
    for row, of_row in zip(rows, files, strict=True):
        again = rerun_command(str(row["run_id"]), store.files.anywhere, verify=True, plugins=of_row, prepared_root=root)
        yield "Train the models again, and compare every number with the stored ones", again
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
