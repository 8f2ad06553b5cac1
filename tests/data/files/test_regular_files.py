"""`open_regular` opens regular files and refuses everything else at once."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from clops_sweep.data.files.regular_files import open_regular
from clops_sweep.errors import UsageError


def test_a_regular_file_is_read_also_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    for name in ("file", "link"):
        with open_regular(tmp_path / name, limit=7) as file:
            assert file.read() == b"content"


def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with pytest.raises(UsageError, match=r"file: has 7 bytes; expected at most 6$"):
        open_regular(tmp_path / "file", limit=6)


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("link").symlink_to("pipe")
    Path("zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        kinds = {"pipe": "a FIFO", "link": "a FIFO", "folder": "a folder", "zero": "a device", "socket": "a socket"}
        for name, kind in kinds.items():
            with pytest.raises(UsageError, match=f"^{name}: is {kind}; expected a regular file$"):
                open_regular(name)
