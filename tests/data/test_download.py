"""Downloading against a server on this machine that answers as PhysioNet does."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clops_sweep.data.download import download
from clops_sweep.data.wfdb_records import load_wfdb

RECORDS = ("100", "101")
FILES = {
    "RECORDS": "\n".join(RECORDS).encode() + b"\n",
    "SHA256SUMS.txt": b"",
    **{f"{record}{suffix}": os.urandom(3000) for record in RECORDS for suffix in (".hea", ".dat", ".atr")},
}


class PhysioNet(BaseHTTPRequestHandler):
    """One project, mitdb 1.0.0, whose files can be fetched from any place on; remembers what was asked for."""

    asked: list[tuple[str, str | None]] = []  # noqa: RUF012

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        name = self.path.rpartition("/")[2]
        if self.path in ("/content/mitdb/", "/content/mitdb/1.0.0/"):
            content: bytes | None = b"<p>Version: 1.0.0</p>\n"
        else:
            content = FILES.get(name) if self.path.startswith("/files/mitdb/") else None
        if content is None:
            self.send_error(404)
            return
        wanted = self.headers.get("Range")
        if with_body:
            self.asked.append((name, wanted))
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
        first, last = 0, len(content) - 1
        if match:
            first, last = int(match[1]), min(last, int(match[2] or last))
        self.send_response(206 if match else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(last + 1 - first))
        if match:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.end_headers()
        if with_body:
            self.wfile.write(content[first : last + 1])

    def log_message(self, *arguments: object) -> None:
        """Says nothing."""


@pytest.fixture
def physionet(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[PhysioNet]]:
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), PhysioNet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(load_wfdb().io.download, "PN_CONTENT_URL", f"{address}/content/")
    monkeypatch.setattr(load_wfdb().io.download.config, "db_index_url", f"{address}/files/")
    PhysioNet.asked.clear()
    yield PhysioNet
    server.shutdown()
    server.server_close()


def test_everything_is_fetched_and_a_second_time_nothing(physionet: type[PhysioNet], tmp_path: Path) -> None:
    root = tmp_path
    assert download("mitbih", root) == [root / "mitdb"]
    assert {path.name: path.read_bytes() for path in (root / "mitdb").iterdir()} == FILES
    physionet.asked.clear()
    download("mitbih", root)
    assert not [name for name, _ in physionet.asked if name.endswith((".dat", ".atr", ".hea"))]


def test_an_interrupted_file_is_completed_from_where_it_stopped(physionet: type[PhysioNet], tmp_path: Path) -> None:
    root = tmp_path
    download("mitbih", root)
    (root / "mitdb" / "100.dat").write_bytes(FILES["100.dat"][:1000])
    (root / "mitdb" / "101.atr").unlink()
    physionet.asked.clear()
    download("mitbih", root)
    assert {path.name: path.read_bytes() for path in (root / "mitdb").iterdir()} == FILES
    fetched = dict(entry for entry in physionet.asked if entry[0].endswith((".dat", ".atr", ".hea")))
    assert fetched.keys() == {"100.dat", "101.atr"}
    assert fetched["100.dat"] is not None
    assert fetched["100.dat"].startswith("bytes=1000-")
