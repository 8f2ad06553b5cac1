"""A checkpoint belongs to its run and is complete, or it is ignored."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from clops_sweep.errors import StoreError, UnreadableFile
from clops_sweep.store.checkpoint import CheckpointFile
from clops_sweep.store.rows import storing
from clops_sweep.store.run_store import RunStore

A, B = "a" * 24, "b" * 24
STATE = {"task": 3, "text": "x" * 50, "values": torch.arange(500.0), "nested": [{"m": torch.ones(40)}]}


def _file(folder: Path, run_id: str) -> CheckpointFile:
    return CheckpointFile(RunStore(folder), run_id)


def _same(state: object, expected: object) -> bool:
    if isinstance(expected, torch.Tensor):
        return isinstance(state, torch.Tensor) and torch.equal(state, expected)
    if isinstance(expected, dict):
        return (
            isinstance(state, dict)
            and state.keys() == expected.keys()
            and all(_same(state[key], value) for key, value in expected.items())
        )
    if isinstance(expected, list):
        return isinstance(state, list) and all(map(_same, state, expected))
    return state == expected


def test_it_gives_back_what_was_saved(tmp_path: Path) -> None:
    checkpoint = _file(tmp_path, A)
    assert checkpoint.load() is None
    checkpoint.save(STATE)
    assert _same(_file(tmp_path, A).load(), STATE)


def test_a_file_that_cannot_be_read_is_no_missing_checkpoint(tmp_path: Path) -> None:
    """The run would start anew, and replace its progress."""
    checkpoint = _file(tmp_path, A)
    checkpoint.save(STATE)
    Path(checkpoint.path).unlink()
    Path(checkpoint.path).mkdir()
    with pytest.raises(UnreadableFile, match="expected a regular file"):
        checkpoint.load()
    with pytest.raises(StoreError), storing(RunStore(tmp_path)):
        checkpoint.load()


def test_that_of_another_run_is_none(tmp_path: Path) -> None:
    checkpoint, theirs = _file(tmp_path, A), _file(tmp_path, B)
    theirs.save(STATE)
    Path(theirs.path).rename(checkpoint.path)
    assert checkpoint.load() is None


def test_a_flipped_bit_makes_it_none(tmp_path: Path) -> None:
    checkpoint = _file(tmp_path, A)
    checkpoint.save(STATE)
    whole = Path(checkpoint.path).read_bytes()
    draw = random.Random(1)
    for position in range(0, len(whole), 11):
        content = bytearray(whole)
        content[position] ^= 1 << draw.randrange(8)
        Path(checkpoint.path).write_bytes(content)
        assert checkpoint.load() is None, position
