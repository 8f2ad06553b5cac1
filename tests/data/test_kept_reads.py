"""A preparation that is killed goes on: what was read is not read again, and trusted only where whole and the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.data.declared_files import waves

YIELDED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from clops_sweep import Recording, dataset
from clops_sweep.data import kept_reads, recording_stack
from clops_sweep.data.declared import DeclaredReader
from clops_sweep.data.prepare import prepare

@dataset(
    "files", files=["files"], classes=("a", "b", "c", "d"), channels=("x", "y"), units="g", sampling_rate=50,
    window_seconds=0.5, resample_to=40,
)
def files(data_root):
    print("called", flush=True)
    for number, file in enumerate(sorted((data_root / "files").glob("*.npy"))):
        yield Recording(np.load(file), number % 4, number // 2)

recording_stack.STACK_BYTES = 1  # every recording by itself
kept_reads.PART_BYTES = 5 * 2 * 2 * 20 * 4  # five recordings of two windows
root, most, reads, read = Path(sys.argv[1]), int(sys.argv[2]), [], DeclaredReader.signals

def counting(reader, source, windows):
    if len(reads) == most:
        os.kill(os.getpid(), signal.SIGKILL)
    reads.append(source.record)
    return read(reader, source, windows)

DeclaredReader.signals = counting
prepare("files", prepared_root=root / sys.argv[3], data_root=root)
assert "pandas" not in sys.modules  # to import it takes longer than this
print(*reads)
"""
SCRIPT = """
import os, signal, sys
from pathlib import Path
from clops_sweep import Recordings, dataset
from clops_sweep.data import kept_reads
from clops_sweep.data.declared import DeclaredReader
from clops_sweep.data.prepare import prepare

@dataset("files", files=["files"])
def files(data_root):
    return Recordings.from_folder(
        data_root / "files", "*.npy", table="labels.csv", name="name", label="label", patient="who", sampling_rate=50,
        units="g",
    )

kept_reads.PART_BYTES = 5 * 2 * 60 * 4  # five recordings
root, most, reads, read = Path(sys.argv[1]), int(sys.argv[2]), [], DeclaredReader.signals

def counting(reader, source, windows):
    if len(reads) == most:
        os.kill(os.getpid(), signal.SIGKILL)
    reads.append(source.record)
    return read(reader, source, windows)

DeclaredReader.signals = counting
prepare("files", prepared_root=root / sys.argv[3], data_root=root, workers=1)
print(*reads)
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 files of a recording each, and a whole preparation of them."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "files").mkdir()
    lines = ["name,label,who"]
    for number, recording in enumerate(waves(40, 2, 60)):
        np.save(folder / "files" / f"r{number:02d}.npy", recording)
        lines.append(f"r{number:02d}.npy,{'abcd'[number % 4]},{number // 2}")
    (folder / "files" / "labels.csv").write_text("\n".join(lines) + "\n")
    assert len(_prepared(folder, 100, "whole")) == 40
    return folder


def _prepared(root: Path, most: int, name: str, script: str = SCRIPT) -> list[str]:
    """The recordings that are read; killed at the one after `most` of them."""
    (root / "space.py").write_text(script)
    done = subprocess.run(
        [sys.executable, root / "space.py", str(root), str(most), name], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.stdout.split()


def _bytes(folder: Path) -> Iterator[tuple[str, bytes]]:
    return ((file.name, file.read_bytes()) for file in sorted(folder.iterdir()))


def test_what_was_read_is_not_read_again_unless_it_has_changed(root: Path) -> None:
    assert _prepared(root, 23, "killed") == []
    (kept,) = (root / "killed").glob(".files.read-*")
    parts = sorted(kept.iterdir())
    assert len(parts) == 4  # of five recordings each
    damaged = bytearray(parts[1].read_bytes())
    damaged[-100] ^= 1
    parts[1].write_bytes(damaged)
    (kept / "000009.part").write_bytes(parts[0].read_bytes()[:50])
    os.utime(root / "files" / "r02.npy")  # looks like another file
    read = _prepared(root, 100, "killed")
    assert read == [f"r{number:02d}.npy" for number in (2, *range(5, 10), *range(20, 40))]
    whole = {name: content for name, content in _bytes(root / "whole" / "files") if name != "files.json"}
    assert {name: content for name, content in _bytes(root / "killed" / "files") if name != "files.json"} == whole
    assert [file.name for file in (root / "killed").iterdir()] == ["files"]


def test_other_code_reads_everything(root: Path) -> None:
    _prepared(root, 23, "other")
    (kept,) = (root / "other").glob(".files.read-*")
    shutil.move(kept, kept.with_name(".files.read-0"))
    assert len(_prepared(root, 100, "other")) == 40
    assert [file.name for file in (root / "other").iterdir()] == ["files"]


def test_what_was_resampled_of_recordings_in_memory_is_used_where_the_same_samples_come(root: Path) -> None:
    data = shutil.copytree(root / "files", root / "yielded" / "files").parent
    assert _prepared(data, 23, "killed", YIELDED) == ["called", "called"]
    (kept,) = (data / "killed").glob(".files.read-*")
    parts = sorted(kept.iterdir())
    assert len(parts) == 4  # of five recordings each
    damaged = bytearray(parts[1].read_bytes())
    damaged[-100] ^= 1
    parts[1].write_bytes(damaged)
    (kept / "000009.part").write_bytes(parts[0].read_bytes()[:50])
    (data / "files" / "r01.npy").unlink()  # the others move up by one
    changed = np.load(data / "files" / "r12.npy")
    changed[1, 30] += 1
    np.save(data / "files" / "r12.npy", changed)
    called, again, *read = _prepared(data, 100, "killed", YIELDED)
    assert (called, again) == ("called", "called")
    assert read == [str(number - 1) for number in (*range(5, 10), 12, *range(20, 40))]
    assert len(_prepared(data, 100, "whole", YIELDED)) == 2 + 39
    whole = {name: content for name, content in _bytes(data / "whole" / "files") if name != "files.json"}
    assert {name: content for name, content in _bytes(data / "killed" / "files") if name != "files.json"} == whole
    assert [file.name for file in (data / "killed").iterdir()] == ["files"]
