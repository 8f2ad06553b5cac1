"""Recordings that several processes read."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from clops_sweep.data.prepared import record_pool
from clops_sweep.data.preparing.prepare import open_frames, prepare
from tests.data.declared_files import declare, forget
from tests.helpers.few_records import OF_THE_PACKAGE

DECLARATION = """
@dataset("many", files=["labels.csv"])
def many(data_root):
    return Recordings.from_folder(
        data_root, "*.npy", table="labels.csv", name="file", label="rhythm", patient="file", sampling_rate=10,
        channels=["ECG"], units="mV",
    )
"""


def test_several_processes_read_what_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_pool, "WORTH_PARALLEL", OF_THE_PACKAGE)
    rows = ["file,rhythm"]
    for number in range(OF_THE_PACKAGE + 8):
        rows.append(f"r{number:02d},{'SR' if number % 2 else 'AF'}")
        np.save(tmp_path / f"r{number:02d}.npy", np.random.default_rng(number).normal(size=(1, 20)))
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    declare(tmp_path / "many.py", DECLARATION)
    hashes = []
    seconds = []
    for workers in (1, 2):
        before = os.times().children_user
        root = tmp_path / f"by {workers}"
        prepare("many", prepared_root=root, data_root=tmp_path, workers=workers)
        seconds.append(os.times().children_user - before)
        hashes.append(open_frames("many", prepared_root=root).data_hash)
    forget("many")
    assert hashes[0] == hashes[1]
    assert seconds[0] == 0
    assert seconds[1] > 0, "other processes have read them"
