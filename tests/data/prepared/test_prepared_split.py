"""Splits of prepared frames: reading them solves and writes nothing, and solved splits are cached."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.prepared import prepared_split
from clops_sweep.data.prepared.prepared_folder import PreparedSet
from clops_sweep.data.preparing.prepare import data_hash, open_frames, prepare


def _listing(folder: Path) -> dict[str, tuple[int, int]]:
    """Return every file and folder below with size and time, except the file whose time records the last use."""
    paths = [folder, *(path for path in folder.rglob("*") if path.name != "verified.json")]
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}


def _hash(prepared: PreparedSet, seed: int) -> str | None:
    return data_hash(prepared.manifest.name, prepared_root=prepared.folder.parent, split_seed=seed)


def _prepare(prepared: PreparedSet, *seeds: int, anew: bool = False) -> PreparedSet:
    root = prepared.folder.parent
    return prepare(
        "mitbih", prepared_root=root, data_root=root.parent / "data", workers=1, split_seeds=seeds, anew=anew
    )


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_split, "SOLVED", {})


@pytest.fixture
def solved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the seeds that the solver is called with; it deals patients to the three splits in turn."""
    asked: list[int] = []

    def split(counts: object, seed: int) -> np.ndarray:
        asked.append(seed)
        return np.roll(np.arange(8, dtype=np.int8) % 3, seed)

    monkeypatch.setattr(prepared_split, "balanced_split", split)
    return asked


def test_prepared_splits_are_known_in_every_process(small_mitbih: PreparedSet) -> None:
    root = small_mitbih.folder.parent
    assert _prepare(small_mitbih, 40, 33) == small_mitbih
    before = _listing(small_mitbih.folder)
    assert sorted(path.name for path in (small_mitbih.folder / "splits").glob("*.npy")) == ["33.npy", "40.npy"]
    prepared_split.SOLVED.clear()
    for seed in (33, 40):
        assert _hash(small_mitbih, seed) == open_frames("mitbih", prepared_root=root, split_seed=seed).data_hash
    assert _hash(small_mitbih, 33) != _hash(small_mitbih, 40)
    assert _hash(small_mitbih, 41) is None
    assert _listing(small_mitbih.folder) == before


def test_splits_are_prepared_with_the_frames_and_again_with_new_ones(
    small_mitbih: PreparedSet, solved: list[int]
) -> None:
    for path in (small_mitbih.folder / "splits" / "5.npy", small_mitbih.folder / "splits" / "3.npy"):
        made = _prepare(small_mitbih, 5, 0, 3, anew=True)
        assert path.exists()
    assert solved == [3, 5]
    assert _hash(made, 5) is not None


def test_a_kept_split_that_is_not_one_of_these_frames_is_solved_again(
    small_mitbih: PreparedSet, solved: list[int]
) -> None:
    _prepare(small_mitbih, 5)
    kept = small_mitbih.folder / "splits" / "5.npy"
    whole, found = kept.read_bytes(), _hash(small_mitbih, 5)
    for number, harm in enumerate((lambda: np.save(kept, np.zeros(7, np.int8)), lambda: kept.write_bytes(whole[:-7]))):
        harm()
        prepared_split.SOLVED.clear()
        assert _hash(small_mitbih, 5) is None
        _prepare(small_mitbih, 5)
        assert _hash(small_mitbih, 5) == found
        assert kept.read_bytes() == whole
        assert solved == [5] * (2 + number)
