"""A preparation that is killed goes on where it was, and makes the bytes of one that was not, whatever was damaged."""

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

from clops_sweep.data import kept_frames, reading, recording_stack
from clops_sweep.data.declared import DeclaredReader
from clops_sweep.data.frame_file import FrameFile
from clops_sweep.data.prepare import prepare
from tests.data.declared_files import declare, forget, waves

RECORDINGS = 60
BLOCK = 10
"""Recordings in a block of the journal, of four frames of 50 samples each."""

CLASSES = 'classes=("w", "x", "y", "z"), channels=("a", "b"), units="g", sampling_rate=50, window_seconds=1'
ARRAYS = """
@dataset("own")
def own(data_root):
    x = np.stack([np.load(file) for file in sorted((data_root / "files").glob("*.npy"))])
    n = np.arange(len(x))
    return Recordings(x, 50, ("a", "b"), "g", n % 4, ("w", "x", "y", "z"), n // 3, window_seconds=1)
"""
YIELDED = f"""
@dataset("own", {CLASSES})
def own(data_root):
    for number, file in enumerate(sorted((data_root / "files").glob("*.npy"))):
        yield Recording(np.load(file), number % 4, number // 3)
"""
RESAMPLED = YIELDED.replace("window_seconds=1", "window_seconds=1, resample_to=40")
FILES = """
@dataset("own", files=["files"])
def own(data_root):
    return Recordings.from_folder(
        data_root / "files", "*.npy", table="labels.csv", name="name", label="label", patient="who", sampling_rate=50,
        units="g", window_seconds=1,
    )
"""
KILLED = """
import os, signal, sys
from pathlib import Path
from clops_sweep.data import kept_frames, recording_stack
from clops_sweep.data.frame_file import FrameFile
from clops_sweep.data.prepare import prepare
from clops_sweep.experiment.selection import load_plugins

root, most, append = Path(sys.argv[1]), int(sys.argv[2]), FrameFile.append

def append_or_die(file, frames):
    if file.count >= most:
        os.kill(os.getpid(), signal.SIGKILL)
    append(file, frames)

FrameFile.append = append_or_die
recording_stack.STACK_BYTES, kept_frames.BLOCK_BYTES = 1, int(sys.argv[3])
load_plugins(root / "space.py")
prepare("own", prepared_root=root / "prepared", data_root=root, workers=1, on_error="skip")
"""


class Killed(BaseException):
    """In the place of a signal."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file a recording; every recording is handled by itself."""
    forget()
    (tmp_path / "files").mkdir()
    lines = ["name,label,who"]
    for number, recording in enumerate(waves(RECORDINGS, 2, 100)):
        np.save(tmp_path / "files" / f"r{number:02d}.npy", recording)
        lines.append(f"r{number:02d}.npy,{'wxyz'[number % 4]},{number // 3}")
    (tmp_path / "files" / "labels.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(recording_stack, "STACK_BYTES", 1)
    monkeypatch.setattr(kept_frames, "BLOCK_BYTES", BLOCK * 4 * 50 * 4)
    yield tmp_path
    forget()


def _prepared(root: Path, name: str = "prepared") -> dict[str, bytes]:
    """What is made; nothing is left beside it."""
    prepare("own", prepared_root=root / name, data_root=root, workers=1, on_error="skip")
    assert [place.name for place in (root / name).iterdir()] == ["own"]
    files = sorted((root / name / "own").iterdir())
    return {file.name: file.read_bytes() for file in files if file.name not in ("files.json", "verified.json")}


def _killed(root: Path, monkeypatch: pytest.MonkeyPatch, recordings: int) -> Path:
    """Ended before the frames of the recording after so many are written; the folder of what is kept."""
    append = FrameFile.append

    def append_or_end(file: FrameFile, frames: np.ndarray) -> None:
        if file.count >= 4 * recordings:
            raise Killed
        append(file, frames)

    with monkeypatch.context() as patch:
        patch.setattr(FrameFile, "append", append_or_end)
        with pytest.raises(Killed):
            prepare("own", prepared_root=root / "prepared", data_root=root, workers=1, on_error="skip")
    (kept,) = (root / "prepared").iterdir()
    return kept


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of frames, each time that statistics of some are computed."""
    counts: list[int] = []
    compute = reading.frame_statistics

    def counting(stored: np.ndarray, *arguments: object) -> np.ndarray:
        counts.append(len(stored))
        return compute(stored, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reading, "frame_statistics", counting)
    return counts


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The recordings of which signals are read, or made."""
    records: list[str] = []
    signals = DeclaredReader.signals

    def noting(reader: DeclaredReader, source: object, windows: object) -> object:
        records.append(source.record)  # type: ignore[attr-defined]
        return signals(reader, source, windows)  # type: ignore[arg-type]

    monkeypatch.setattr(DeclaredReader, "signals", noting)
    return records


@pytest.mark.parametrize("body", [ARRAYS, YIELDED, RESAMPLED, FILES], ids=["arrays", "yielded", "resampled", "files"])
def test_a_killed_preparation_goes_on_with_whole_blocks(
    root: Path, body: str, monkeypatch: pytest.MonkeyPatch, computed: list[int], read: list[str]
) -> None:
    if body is RESAMPLED:
        monkeypatch.setattr(kept_frames, "BLOCK_BYTES", BLOCK * 4 * 40 * 4)
    declare(root / "space.py", body)
    whole = _prepared(root, "whole")
    for recordings in (35, 58):  # the second time, what was kept of the first is followed and then added to
        _killed(root, monkeypatch, recordings)
    computed.clear()
    read.clear()
    assert _prepared(root) == whole
    assert len(computed) == RECORDINGS - 50
    assert len(read) == (RECORDINGS if body in (ARRAYS, YIELDED) else RECORDINGS - 50)  # those are made to compare


@pytest.mark.parametrize("body", [YIELDED, FILES], ids=["yielded", "files"])
def test_a_signal_that_nothing_can_catch(root: Path, body: str, computed: list[int]) -> None:
    declare(root / "space.py", body)
    arguments = [sys.executable, "-c", KILLED, root, 4 * 47, kept_frames.BLOCK_BYTES]
    done = subprocess.run([str(each) for each in arguments], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    whole = _prepared(root, "whole")
    computed.clear()
    assert _prepared(root) == whole
    assert RECORDINGS - len(computed) in (40, 30)  # the last block is written by a thread: nobody waits for the disk


@pytest.mark.parametrize("body", [YIELDED, RESAMPLED, FILES], ids=["yielded", "resampled", "files"])
def test_a_recording_that_has_changed_ends_what_is_used(
    root: Path, body: str, monkeypatch: pytest.MonkeyPatch, computed: list[int]
) -> None:
    declare(root / "space.py", body)
    _killed(root, monkeypatch, 45)
    changed = np.load(root / "files" / "r23.npy")
    changed[1, 30] += 1e-3
    np.save(root / "files" / "r23.npy", changed)
    computed.clear()
    again = _prepared(root)
    assert len(computed) == RECORDINGS - 23
    assert again == _prepared(root, "whole")


def test_bad_recordings_among_those_that_are_kept(
    root: Path, monkeypatch: pytest.MonkeyPatch, computed: list[int]
) -> None:
    for number, column, value in ((3, 3, np.nan), (12, slice(50), 1), (13, slice(None), 1), (21, 70, np.inf)):
        recording = np.load(root / "files" / f"r{number:02d}.npy")
        recording[:, column] = value
        np.save(root / "files" / f"r{number:02d}.npy", recording)
    declare(root / "space.py", YIELDED)
    for stack in (1, 7 * 800):  # by itself, and with six others, of which each is then made by itself
        monkeypatch.setattr(recording_stack, "STACK_BYTES", stack)
        whole = _prepared(root, f"whole{stack}")
        shutil.rmtree(root / "prepared", ignore_errors=True)
        _killed(root, monkeypatch, 40)
        computed.clear()
        assert _prepared(root) == whole
        assert sum(computed) <= 4 * (RECORDINGS - 30 + 2 * 7)


@pytest.mark.parametrize("name", ["frames.npy", "journal"])
@pytest.mark.parametrize("body", [YIELDED, FILES], ids=["yielded", "files"])
def test_whatever_did_not_reach_the_disk(
    root: Path, body: str, name: str, monkeypatch: pytest.MonkeyPatch, computed: list[int]
) -> None:
    """Bytes that are others, and files that are shorter, longer or gone, as after a power cut."""
    stream = np.random.default_rng(0)
    declare(root / "space.py", body)
    whole = _prepared(root, "whole")
    kept = Path(shutil.move(_killed(root, monkeypatch, 45), root))
    for damage in ("other", "zeros", "shorter", "longer", "gone"):
        content = bytearray((kept / name).read_bytes())
        place = int(stream.integers(0 if name == "journal" else 128, len(content)))
        if damage == "other":
            content[place] ^= 1 << int(stream.integers(8))
        elif damage in ("zeros", "shorter"):
            content[place:] = bytes(len(content) - place if damage == "zeros" else 0)
        elif damage == "longer":
            content += content[:100]
        shutil.rmtree(root / "prepared")
        file = Path(shutil.copytree(kept, root / "prepared" / kept.name)) / name
        if damage == "gone":
            file.unlink()
        else:
            file.write_bytes(content)
        computed.clear()
        assert _prepared(root) == whole, (damage, place)
        usable = {"longer": 4, "gone": 0}.get(damage, min(4, (place - 128) // (4 * BLOCK * 200)))
        if name == "frames.npy":
            assert len(computed) == RECORDINGS - usable * BLOCK


def test_nothing_is_used_of_other_code_or_another_declaration(
    root: Path, monkeypatch: pytest.MonkeyPatch, computed: list[int]
) -> None:
    declare(root / "space.py", YIELDED)
    kept = _killed(root, monkeypatch, 45)
    monkeypatch.setattr(kept_frames, "_code", lambda: "another version")
    computed.clear()
    _prepared(root)
    assert len(computed) == RECORDINGS
    shutil.rmtree(root / "prepared")
    kept = _killed(root, monkeypatch, 45)
    forget()
    declare(root / "space.py", YIELDED.replace("np.load(file)", "np.load(file)[:]"))
    computed.clear()
    _prepared(root)
    assert len(computed) == RECORDINGS
    assert not kept.exists()


def test_a_kill_once_all_frames_are_written_loses_none_and_two_names_are_not_needed(
    root: Path, monkeypatch: pytest.MonkeyPatch, computed: list[int]
) -> None:
    declare(root / "space.py", FILES)
    whole = _prepared(root, "whole")

    def end(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("clops_sweep.data.preparation.write_rest", end)
        with pytest.raises(Killed):
            prepare("own", prepared_root=root / "prepared", data_root=root, workers=1, on_error="skip")
    computed.clear()

    def refuse(*arguments: object) -> None:
        raise OSError(1, "not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert _prepared(root) == whole
    assert not computed


def test_frames_that_have_appeared_are_never_written_to(
    root: Path, monkeypatch: pytest.MonkeyPatch, computed: list[int]
) -> None:
    declare(root / "space.py", YIELDED)
    kept = _killed(root, monkeypatch, 45)
    aside = shutil.move(kept, root)
    _prepared(root)
    shutil.move(aside, kept)
    (kept / "frames.npy").unlink()
    os.link(root / "prepared" / "own" / "frames.npy", kept / "frames.npy")  # as they are until the last moment
    in_use = np.load(root / "prepared" / "own" / "frames.npy", mmap_mode="r")
    before = in_use.copy()
    changed = np.load(root / "files" / "r23.npy") + 1
    np.save(root / "files" / "r23.npy", changed)
    prepare("own", prepared_root=root / "prepared", data_root=root, workers=1, on_error="skip", anew=True)
    np.testing.assert_array_equal(in_use, before)
    now = np.load(root / "prepared" / "own" / "frames.npy")
    np.testing.assert_array_equal(now[23 * 4], changed[0, :50])


def test_an_attempt_that_ends_while_it_follows_another_loses_nothing_of_that(
    root: Path, monkeypatch: pytest.MonkeyPatch, computed: list[int]
) -> None:
    declare(root / "space.py", FILES)
    _killed(root, monkeypatch, 45)
    skip = FrameFile.skip

    def skip_or_end(file: FrameFile, count: int) -> None:
        if file.count >= 4 * 15:
            raise Killed
        skip(file, count)

    with monkeypatch.context() as patch:
        patch.setattr(FrameFile, "skip", skip_or_end)
        with pytest.raises(Killed):
            prepare("own", prepared_root=root / "prepared", data_root=root, workers=1, on_error="skip")
    computed.clear()
    _prepared(root)
    assert len(computed) == RECORDINGS - 40
