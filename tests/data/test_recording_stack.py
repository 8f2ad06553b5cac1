"""Stacked recordings give the same frames as recordings one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.declared import portions, recordings
from clops_sweep.data.prepared.manifest import read_manifest
from clops_sweep.data.preparing.prepare import open_frames, prepare
from tests.data.declared_files import declare, forget, waves

ARRAYS = """
@dataset("arrays")
def arrays(data_root):
    n = 90
    x = np.load(data_root / "x.npy")
    return Recordings(
        x, 50, ("a", "b"), "g", np.arange(n) % 4, ("w", "x", "y", "z"), np.arange(n) // 3, window_seconds=1,
        domains={"site": ["alone" if number == 40 else f"s{number % 3}" for number in range(n)]},
    )
"""
YIELDED = """
@dataset("arrays", classes=("w", "x", "y", "z"), channels=("a", "b"), units="g", sampling_rate=50, window_seconds=1)
def arrays(data_root):
    for number, signal in enumerate(np.load(data_root / "x.npy")):
        site = "alone" if number == 40 else f"s{number % 3}"
        yield Recording(signal, number % 4, number // 3, domains={"site": site})
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Signals that are partly or wholly flat, or lack samples."""
    forget()
    signals = waves(90, 2, 100)
    signals[40] = signals[50, :, :50] = signals[60, 0] = 1
    signals[[7, 31, 32], 1, 3] = np.nan
    np.save(tmp_path / "x.npy", signals)
    yield tmp_path
    forget()


def _made(root: Path, name: str) -> dict[str, bytes]:
    prepare("arrays", prepared_root=root / name, data_root=root, on_error="skip")
    files = sorted((root / name / "arrays").iterdir())
    return {file.name: file.read_bytes() for file in files if file.name not in ("files.json", "verified.json")}


@pytest.mark.parametrize("body", [ARRAYS, YIELDED])
def test_what_is_made_does_not_depend_on_how_many_at_a_time(
    root: Path, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(root / "space.py", body)
    together = _made(root, "together")
    for size in (1, 800 * 7):
        monkeypatch.setattr(portions, "STACK_BYTES", size)
        monkeypatch.setattr(recordings, "STACK_BYTES", size)
        assert _made(root, str(size)) == together

    frames = open_frames("arrays", prepared_root=root / "together", leads="all")
    signals = np.load(root / "x.npy").reshape(90, 2, 2, 50).swapaxes(1, 2)
    kept = [(n, w) for n in range(90) for w in range(2) if n != 40 and (w or n not in (7, 31, 32, 50))]
    np.testing.assert_array_equal(frames.signal(np.arange(len(frames))), [signals[n, w] for n, w in kept])
    assert [frames.patient_names[code] for code in frames.patients] == [str(n // 3) for n, _ in kept]
    codes, sites = frames.domains["site"]
    assert (sites, [sites[code] for code in codes]) == (("s0", "s1", "s2"), [f"s{n % 3}" for n, _ in kept])
    manifest = read_manifest(root / "together" / "arrays")
    assert manifest is not None
    assert not manifest.skipped
    assert manifest.dropped == {"flat line": 6, "missing samples": 6}


def test_a_function_that_fills_one_array_again_and_again_is_taken_at_its_word(root: Path) -> None:
    declare(root / "space.py", YIELDED)
    expected = _made(root, "many")
    forget()
    again = YIELDED.replace("    for number", "    buffer = np.empty((2, 100), np.float32)\n    for number")
    declare(
        root / "space.py",
        again.replace("        yield Recording(signal,", "        buffer[:] = signal\n        yield Recording(buffer,"),
    )
    made = _made(root, "one")
    assert made["frames.npy"] == expected["frames.npy"]
    assert made["index.parquet"] == expected["index.parquet"]
