"""A local server that answers like physionet.org, and projects in its layout."""

from __future__ import annotations

import gzip
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from clops_sweep.data.files.hashes import file_sha256
from tests.data import published_formats
from tests.data.published_formats import write_mitbih_record


class PhysioNet(ThreadingHTTPServer):
    """Serves the files below `root` as /files/PROJECT/VERSION/...

    `asked` records the file of every request. With `dies_after`, that many files are sent whole, the next one breaks
    off in the middle, and later requests get no answer.
    """

    daemon_threads = True

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.root = root
        self.asked: list[str] = []
        self.dies_after: int | None = None
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/files/"

    def fetched(self) -> set[str]:
        """Return the files requested since the last call, without lists of checksums."""
        asked, self.asked = self.asked, []
        return {name for name in asked if not name.endswith("SHA256SUMS.txt")}


class _Answer(BaseHTTPRequestHandler):
    server: PhysioNet

    def do_GET(self) -> None:
        name = self.path.removeprefix("/files/")
        with self.server.lock:
            self.server.asked.append(name)
            left = self.server.dies_after
            if left is not None:
                self.server.dies_after = left - 1
        if left is not None and left < 0:
            return
        path = self.server.root / name
        if not path.is_file():
            self.send_error(404)
            return
        body = path.read_bytes()
        self.send_response(200)
        if path.suffix in (".txt", ".csv") and "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if left == 0 else body)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@contextmanager
def serving(root: Path) -> Iterator[PhysioNet]:
    with PhysioNet(root) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def publish_everything(root: Path) -> None:
    """Write small versions of the four projects, including files that are not downloaded."""
    _publish_mitdb(root / "mitdb" / "1.0.0")
    _publish_vfdb(root / "vfdb" / "1.0.0")
    _publish_ptbxl(root / "ptb-xl" / "1.0.3")
    _publish_challenge(root / "challenge-2020" / "1.0.2")
    for version in root.glob("*/*"):
        listed = sorted(path for path in version.rglob("*") if path.is_file())
        lines = [f"{file_sha256(path)} {path.relative_to(version).as_posix()}\n" for path in listed]
        (version / "SHA256SUMS.txt").write_text("".join(lines))


def _publish_mitdb(version: Path) -> None:
    rhythms = [("(N", 12, "N"), ("(AFIB", 12, "N"), ("(B", 12, "V"), ("(P", 12, "/")]
    beats = [("(N", 12, "L"), ("(SBR", 12, "R"), ("(N", 12, "V"), ("(N", 12, "A")]
    names = [str(100 + number) for number in range(6)]
    for number, name in enumerate(names):
        write_mitbih_record(version, name, rhythms if number % 2 else beats)
    (version / "RECORDS").write_text("".join(f"{name}\n" for name in names))
    (version / "ANNOTATORS").write_text("atr\treference beat, rhythm, and signal quality annotations\n")
    # annotations under another name, and records outside the database proper
    shutil.copy(version / "102.atr", version / "102-0.atr")
    (version / "100.xws").write_text("")
    write_mitbih_record(version / "x_mitdb", "x_108", beats)


def _publish_vfdb(version: Path) -> None:
    names = [str(418 + number) for number in range(4)]
    for name in names:
        rhythms = [("(N", 12, ""), ("(VT", 12, ""), ("(VFL", 12, "")]
        write_mitbih_record(version, name, rhythms, rate=250, leads=("ECG", "second"))
        header = version / f"{name}.hea"
        header.write_text(header.read_text().replace("second", "ECG"))
    (version / "RECORDS").write_text("".join(f"{name}\n" for name in names) + "\n")


def _publish_ptbxl(version: Path) -> None:
    published_formats.ptbxl(version.parent)
    shutil.move(version.parent / "ptbxl", version)
    for path in [*version.glob("records500/*/*")]:
        low = version / "records100" / path.parent.name / path.name.replace("_hr", "_lr")
        low.parent.mkdir(parents=True, exist_ok=True)
        low.write_bytes(b"a fifth of the samples")
    (version / "LICENSE.txt").write_text("Creative Commons Attribution 4.0 International Public License\n")


def _publish_challenge(version: Path) -> None:
    """Write two groups of the CPSC part, whose RECORDS lists name a missing record, and a record of another part."""
    published_formats.physionet2020(version)
    flat = sorted((version / "cpsc2018").glob("*.hea"))
    for number, header in enumerate(flat):
        group = version / "training" / "cpsc_2018" / f"g{1 + number // 10}"
        group.mkdir(parents=True, exist_ok=True)
        text = header.read_text().replace("16+24 1000/mV", "16x1+24 1000.0(0)/mV").replace("#Dx: ", "# Dx: ")
        (group / header.name).write_text(text)
        shutil.move(header.with_suffix(".mat"), group)
    shutil.rmtree(version / "cpsc2018")
    names = [header.stem for header in flat]
    (version / "RECORDS").write_text("training/cpsc_2018/g1/\ntraining/cpsc_2018/g2/\ntraining/cpsc_2018_extra/g1/\n")
    for group, listed in (("g1", names[:11]), ("g2", names[10:])):
        (version / "training" / "cpsc_2018" / group / "RECORDS").write_text("".join(f"{name}\n" for name in listed))
    extra = version / "training" / "cpsc_2018_extra" / "g1"
    published_formats.write_challenge_record(extra, "Q0001", "AF", published_formats.noise(1, shape=(12, 5000)))
