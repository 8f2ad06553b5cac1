"""The folder of prepared frames of a store's last launch, which the commands that repeat its runs name."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from clops_sweep.data.prepared.commands import default_prepared_root
from clops_sweep.store.reading import StoreReader


def remember_prepared_root(store: StoreReader, prepared_root: Path) -> None:
    """Store the folder of the prepared frames of a launch; without it, commands name none."""
    content = json.dumps({"prepared_root": str(prepared_root.resolve())})
    with suppress(OSError):
        store.files.make_folder(store.work_folder)
        store.files.write(_path(store), content.encode())


def prepared_root_to_name(store: StoreReader) -> str | None:
    """Return the folder of prepared frames that a command must name for the runs of a store.

    None if it is the default of this process, is not on this machine, or no launch has stored it.
    """
    with suppress(OSError, ValueError, TypeError, LookupError):
        content = store.files.read(_path(store)).to_pybytes()
        folder = Path(json.loads(content)["prepared_root"])
        if folder.is_dir() and folder != default_prepared_root().resolve():
            return str(folder)
    return None


def _path(store: StoreReader) -> str:
    return f"{store.work_folder}/prepared_root.json"
