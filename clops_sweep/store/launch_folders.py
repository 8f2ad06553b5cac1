"""The folders of a store's last launch, for the commands that repeat its runs: prepared frames and plug-in files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from clops_sweep.data.prepared.commands import default_prepared_root
from clops_sweep.experiment.provenance import plugin_origins
from clops_sweep.store.run_store import RunStore


def remember_folders(store: RunStore, prepared_root: Path) -> None:
    """Store the folder of the prepared frames of a launch, and the one in which it was started."""
    content = json.dumps({"prepared_root": str(prepared_root.resolve()), "started_in": os.getcwd()})
    with suppress(OSError):
        store.files.make_folder(store.work_folder)
        store.files.write(_path(store), content.encode())


def prepared_root_to_name(store: RunStore) -> str | None:
    """Return the folder of prepared frames that a command must name for the runs of a store.

    None if it is the default of this process, is not on this machine, or no launch has stored it.
    """
    folder = _folder(store, "prepared_root")
    if folder is None or not folder.is_dir() or folder == default_prepared_root().resolve():
        return None
    return str(folder)


def plugin_files_to_name(store: RunStore, plugins: object, *, anywhere: bool = False) -> tuple[str, ...]:
    """Return the files that a command must name to repeat a run, from its column `plugins`.

    A path in that column may be relative to the folder of the launch. It is looked for in the current folder, the one
    of the last launch, and those around the results; a file with the recorded content is preferred. Without one,
    the path is returned as it is recorded.

    Args:
        store: the store with the run.
        plugins: the column.
        anywhere: whether the command should be valid in any folder: paths are then absolute.
    """
    recorded: dict[str, str | None] = {}
    for origin in plugin_origins(plugins):
        if origin.file is not None:
            recorded[origin.file] = origin.sha256
    files = [_file_to_name(store, file, sha256, anywhere) for file, sha256 in recorded.items()]
    return tuple(sorted(set(files)))


def update_report_command(store: RunStore, run_id: str, *words: str) -> str:
    """Return the command of the update report of a run, with the files and frames that all its parts need.

    Args:
        store: the store with the run.
        run_id: the whole id of the run.
        words: further options.
    """
    (plugins,) = store.read("runs", [run_id], ["plugins"])["plugins"]
    options = list(words)
    for file in plugin_files_to_name(store, plugins):
        options += ["--plugins", file]
    prepared_root = prepared_root_to_name(store)
    if prepared_root is not None:
        options += ["--prepared-root", prepared_root]
    return store.command("update-report", run_id, *options)


def _file_to_name(store: RunStore, file: str, sha256: str | None, anywhere: bool) -> str:
    existing = []
    for folder in _folders(store):
        path = folder / file
        with suppress(OSError, ValueError):  # a path of an untrusted store
            if path.is_file():
                existing.append(path)
    if not existing:
        return file
    path = next((path for path in existing if _sha256(path) == sha256), existing[0]).resolve()
    here = Path.cwd()
    if anywhere or not path.is_relative_to(here):
        return str(path)
    return path.relative_to(here).as_posix()


def _folders(store: RunStore) -> Iterator[Path]:
    """Yield the folders to which the path of a plug-in file may be relative."""
    yield Path.cwd()
    started_in = _folder(store, "started_in")
    if started_in is not None:
        yield started_in
    if store.files.local:
        yield from Path(store.files.anywhere).resolve().parents


def _sha256(path: Path) -> str | None:
    with suppress(OSError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return None


def _folder(store: RunStore, name: str) -> Path | None:
    with suppress(OSError, ValueError, TypeError, LookupError):
        content = store.files.read(_path(store)).to_pybytes()
        return Path(json.loads(content)[name])
    return None


def _path(store: RunStore) -> str:
    return f"{store.work_folder}/folders.json"
