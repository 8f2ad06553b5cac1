"""`clops-sweep check`: reads every part of a store, or search-space files, and reports what is wrong."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from clops_sweep.cli.options import (
    EXIT_BAD_INPUT,
    EXIT_FAILED,
    Ended,
    NotEmpty,
    data_root_option,
    json_option,
    prepared_root_option,
    print_json,
    results_option,
)
from clops_sweep.data.files.folder import shorten
from clops_sweep.errors import UsageError, listed, several
from clops_sweep.experiment.spaces.space_files import defines_space
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep import faults, files_of_no_run


@click.command()
@click.argument("path", required=False, type=NotEmpty(), metavar="[FOLDER|SPACE.py]")
@results_option
@data_root_option
@prepared_root_option
@json_option
def check(path: str | None, results: str, data_root: Path | None, prepared_root: Path | None, as_json: bool) -> None:
    """Check the store, or search-space files, and report what is wrong. Nothing is started or changed.

    Without an argument, every part of the store is read; exit status 1 if one is damaged. FOLDER is another store, or a
    folder with search-space files. A file is executed, and checked as a launch does before the first run; exit status 2
    if one is invalid. Tasks are checked on data that are prepared. A study in --results that was made on another
    edition of the data is named: the file is valid, but a launch is refused.
    """
    if path is None or "://" in path or (Path(path) / "runs").is_dir():
        _check_store(RunStore.named(results if path is None else path), as_json)
        return
    options = ["--results", results]
    for name, folder in (("--data-root", data_root), ("--prepared-root", prepared_root)):
        options += [] if folder is None else [name, str(folder)]
    if Path(path).is_dir():
        files = _files_in(Path(path))
    elif path.endswith(".py"):
        files = [Path(path)]
    else:
        raise UsageError(
            f"{shorten(Path(path))}: no such folder; expected a store, a search-space file, or a folder of them"
        )
    checked = []
    for file in files:
        of_file = _checked(file, options)
        checked.append(of_file)
        if not as_json:
            click.echo(_in_words(of_file))
    invalid = [of_file["problem"] for of_file in checked if of_file["problem"] is not None]
    if as_json:
        runs = sum(of_file["runs"] for of_file in checked)
        of_files = {"results": None, "whole": not invalid, "runs": runs, "unnamed": 0, "faults": invalid}
        print_json({**of_files, "files": checked})
    elif len(files) > 1:
        click.echo(f"{len(files)} search-space files in {shorten(Path(path))}, {len(invalid)} of them invalid")
    if invalid:
        raise Ended(EXIT_BAD_INPUT)


def _check_store(store: RunStore, as_json: bool) -> None:
    """Print the damage of a store."""
    store.files.check_is_there()
    damage = []
    for fault in faults(store):
        damage.append(fault)
        if not as_json:
            click.echo(fault)
    runs = None if damage else len(store.statuses())
    unnamed = 0 if damage else files_of_no_run(store)
    if as_json:
        whole = not damage
        of_store = {"results": store.files.shown, "whole": whole, "runs": runs, "unnamed": unnamed, "faults": damage}
        print_json({**of_store, "files": []})
    elif not damage:
        click.echo(f"every part in {store.files.shown} is intact: {runs} runs")
        if unnamed:
            click.echo(
                f"{several(unnamed, 'file')} of other tables without a part of runs: left by a killed launch, or the "
                "store was copied incompletely; copy it again before the next launch, which moves them to .work/left"
            )
    if damage:
        raise Ended(EXIT_FAILED)


def _files_in(folder: Path) -> list[Path]:
    """Return the search-space files in a folder, by name.

    Raises:
        UsageError: no file of the folder has a SPACE.
    """
    files = sorted(file for file in folder.glob("*.py") if _may_define_space(file))
    if not files:
        raise UsageError(
            f"{shorten(folder)}: is no store, and no file (*.py) in it has a SPACE; expected a store such as results, "
            "or a folder with search-space files"
        )
    return files


def _may_define_space(file: Path) -> bool:
    """Return whether a file defines `SPACE`, or is invalid Python that has the word. It is not executed."""
    if defines_space(file):
        return True
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
        ast.parse(text)
    except SyntaxError:
        return "SPACE" in text
    except (OSError, ValueError):
        return False
    return False


def _checked(file: Path, options: Sequence[str]) -> dict[str, Any]:
    """Return what a file asks for, or what is wrong with it, as data.

    `plan` checks it in a process of its own, as files may declare data sets and methods of one name.
    """
    command = [sys.executable, "-m", "clops_sweep", "plan", str(file), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    counts: dict[str, Any] = {"runs": 0, "searches": 0, "unprepared": [], "launch_refused": []}
    nothing = {"file": str(file), "problem": None, **counts}
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"its process ended with status {done.returncode}"]
        return nothing | {"problem": said[-1].removeprefix("clops-sweep: ")}
    plan = _printed_json(done.stdout)
    unprepared = [tasks["dataset"] for tasks in plan["tasks"] if tasks["tasks"] is None]
    return nothing | {
        "runs": plan["asked"],
        "searches": len(plan["searches"]),
        "unprepared": list(dict.fromkeys(unprepared)),
        "launch_refused": plan["launch_refused"],
    }


def _printed_json(text: str) -> dict[str, Any]:
    """Return the JSON object at the end of an output, which may begin with what the file prints."""
    lines = text.splitlines()
    begin = max(number for number, line in enumerate(lines) if line == "{")
    return dict(json.loads("\n".join(lines[begin:])))


def _in_words(of_file: Mapping[str, Any]) -> str:
    """Return what a file asks for, or what is wrong with it, on one line, and a line for each study on other data."""
    file, problem = of_file["file"], of_file["problem"]
    if problem is not None:
        return f"{file}: invalid: {problem.removeprefix(f'{file}: ').removeprefix(f'{file} ')}"
    searches = of_file["searches"]
    parts = [several(of_file["runs"], "run")] if of_file["runs"] or not searches else []
    if searches:
        parts.append("1 search" if searches == 1 else f"{searches} searches")
    words = f"{file}: valid: {' and '.join(parts)}"
    if of_file["unprepared"]:
        words += f"; tasks on {listed(of_file['unprepared'])} are not checked, as these data are not prepared"
    return "\n".join([words, *(f"  {sentence}" for sentence in of_file["launch_refused"])])
