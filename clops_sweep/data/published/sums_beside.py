"""Checksums of files, computed beside other work."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from pathlib import Path
from threading import Thread

from clops_sweep.data.files.folder import is_file
from clops_sweep.data.files.hashes import file_sha256


class SumsBeside:
    """SHA-256 of files by a thread, which nobody waits for where the other work ends before its time."""

    def __init__(self, files: Collection[Path]) -> None:
        self._found: Future[dict[Path, str]] = Future()
        Thread(target=self._compute, args=(sorted(files),), daemon=True).start()

    def result(self) -> dict[Path, str]:
        """Hex SHA-256 of each of the files that are there.

        Raises:
            OSError: one may not be read.
        """
        return self._found.result()

    def _compute(self, files: Collection[Path]) -> None:
        try:
            self._found.set_result({file: file_sha256(file) for file in files if is_file(file)})
        except Exception as error:
            self._found.set_exception(error)
