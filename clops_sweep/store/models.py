"""Models of runs: one safetensors file per network under `models/RUN_ID/`, and a list that is written last."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from pyarrow import fs as arrow_fs

from clops_sweep.errors import DamagedStore, UsageError, option
from clops_sweep.store.files import Files

KeptModels = Literal["last", "all"]
"""Which networks of a run to keep: the one after the last task, or the one after every task."""

_FILE = re.compile(r"task_([1-9][0-9]{0,8})\.safetensors")


class ModelFiles:
    """The models in a store.

    `task_K.safetensors` is the network after the first K tasks. `last.json` or `all.json` holds the run's id and maps
    the names of its files to their SHA-256. It is written last, and a run without it has no models.

    Args:
        files: the files of the store.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._folder = f"{files.root}/models"

    def runs(self, kept: KeptModels) -> set[str]:
        """Return the ids of runs whose models are complete; runs with all models also have the last one."""
        lists = ("all.json",) if kept == "all" else ("last.json", "all.json")
        names = (path.rsplit("/", 2) for path in self._paths())
        return {run_id for _, run_id, name in names if name in lists}

    def has(self, run_id: str, kept: KeptModels) -> bool:
        """Return whether the models of a run are complete."""
        lists = ("all.json",) if kept == "all" else ("last.json", "all.json")
        return any(self._files.exists(f"{self._folder}/{run_id}/{name}") for name in lists)

    def write(self, run_id: str, models: Mapping[int, bytes], kept: KeptModels) -> None:
        """Write the models of a run by number of tasks, each file whole or not at all."""
        hashes = {"run_id": run_id}
        for tasks, content in models.items():
            name = f"task_{tasks}.safetensors"
            self._files.write(f"{self._folder}/{run_id}/{name}", content)
            hashes[name] = hashlib.sha256(content).hexdigest()
        self._files.write(f"{self._folder}/{run_id}/{kept}.json", json.dumps(hashes, indent=1).encode())

    def read(self, run_id: str, tasks: int | None = None) -> bytes:
        """Return the verified bytes of a model.

        Args:
            run_id: the run.
            tasks: number of tasks learned; by default the last model kept.

        Raises:
            UsageError: the run has no such model.
            DamagedStore: the file is missing or was changed.
        """
        hashes = self._hashes(run_id)
        if not hashes:
            raise UsageError(f"run {run_id}: no model is stored; run it again with {option('keep', 'models')}")
        numbers = {int(match[1]): name for name in hashes if (match := _FILE.fullmatch(name))}
        name = numbers.get(max(numbers) if tasks is None else tasks)
        if name is None:
            known = ", ".join(map(str, sorted(numbers)))
            raise UsageError(f"run {run_id}: no model after task {tasks}; stored after task {known}")
        if reason := self._fault(run_id, name, hashes[name]):
            raise DamagedStore(reason)
        content: bytes = self._files.read(f"{self._folder}/{run_id}/{name}").to_pybytes()
        return content

    def faults(self) -> Iterator[str]:
        """Return a sentence for each file that is missing or was changed."""
        for run_id in sorted(self.runs("last")):
            try:
                hashes = self._hashes(run_id)
            except DamagedStore as error:
                yield str(error)
                continue
            yield from filter(None, (self._fault(run_id, name, sha256) for name, sha256 in sorted(hashes.items())))

    def delete(self, run_ids: Collection[str]) -> None:
        """Delete the models of some runs; the lists go first."""
        gone = [path for path in self._paths() if path.rsplit("/", 2)[1] in run_ids]
        self._files.delete(path for path in gone if path.endswith(".json"))
        self._files.delete(path for path in gone if not path.endswith(".json"))
        if self._files.local:
            for folder in {path.rpartition("/")[0] for path in gone}:
                self._files.system.delete_dir(folder)

    def copy(self, other: ModelFiles, run_ids: Collection[str]) -> None:
        """Copy the models of some runs from another store, verified, if this one lacks them.

        Raises:
            DamagedStore: a file of the other store is missing or was changed.
        """
        kinds: tuple[KeptModels, ...] = ("all", "last")
        for kept in kinds:
            for run_id in sorted((other.runs(kept) & set(run_ids)) - self.runs(kept)):
                numbers = [int(match[1]) for name in other._hashes(run_id) if (match := _FILE.fullmatch(name))]
                self.write(run_id, {number: other.read(run_id, number) for number in numbers}, kept)

    def _paths(self) -> list[str]:
        """Return all files of all runs."""
        selector = arrow_fs.FileSelector(self._folder, recursive=True, allow_not_found=True)
        return [info.path for info in self._files.system.get_file_info(selector) if info.is_file]

    def _hashes(self, run_id: str) -> dict[str, str]:
        """Return the SHA-256 of each file of a run; empty if it has no models."""
        for kept in ("all", "last"):
            path = f"{self._folder}/{run_id}/{kept}.json"
            try:
                hashes = json.loads(self._files.read(path).to_pybytes())
            except FileNotFoundError:
                continue
            except (ValueError, RecursionError):
                hashes = None
            if not isinstance(hashes, dict) or not any(_FILE.fullmatch(name) for name in hashes):
                raise DamagedStore(
                    f"{path}: is not the list of models that was written; run with {option('keep', 'models')} again"
                )
            if (owner := hashes.pop("run_id", run_id)) != run_id:
                raise DamagedStore(
                    f"{path}: lists the models of run {owner}; delete its folder and run with "
                    f"{option('keep', 'models')} again"
                )
            return hashes
        return {}

    def _fault(self, run_id: str, name: str, sha256: str) -> str | None:
        path = f"{self._folder}/{run_id}/{name}"
        try:
            content = self._files.read(path)
        except FileNotFoundError:
            return f"{path}: is missing; delete its folder and run with {option('keep', 'models')} again"
        if hashlib.sha256(content).hexdigest() != sha256:
            return (
                f"{path}: was changed after it was written; delete its folder and run with "
                f"{option('keep', 'models')} again"
            )
        return None
