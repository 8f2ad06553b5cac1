"""A store is only data: nothing in it is executed."""

from __future__ import annotations

import base64
import io
import os
import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from clops_sweep import RunConfig
from clops_sweep.store.checkpoint import CheckpointFile, with_digest
from clops_sweep.store.parts import encoded, named
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS
from tests.conftest import Tables
from tests.helpers.stores import write_finished

A = "a" * 24


class _Malice:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("form", ["pickle", "torch", "torch, in a dictionary"])
def test_a_checkpoint_that_would_execute_something_is_none(tmp_path: Path, form: str) -> None:
    marker = tmp_path / "executed"
    checkpoint = CheckpointFile(RunStore(tmp_path), A)
    checkpoint.save({"task": 1, "tensor": torch.arange(3)})
    assert checkpoint.load() is not None
    if form == "pickle":
        content = pickle.dumps(_Malice(marker), protocol=2)
    else:
        buffer = io.BytesIO()
        torch.save(_Malice(marker) if form == "torch" else {"run_id": A, "more": _Malice(marker)}, buffer)
        content = buffer.getvalue()
    Path(checkpoint.path).write_bytes(with_digest(content))
    assert checkpoint.load() is None
    assert not marker.exists()
    torch.load(checkpoint.path, weights_only=False) if form != "pickle" else pickle.loads(
        Path(checkpoint.path).read_bytes()
    )
    assert marker.exists(), "it would not have executed anything anyway"


def test_a_part_with_a_pickled_type_is_read_as_data(tmp_path: Path, finished_tables: Tables) -> None:
    """Arrow schemas may name an extension type that is a pickle; older pyarrow loaded it."""
    marker = tmp_path / "executed"
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    kind = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(_Malice(marker)),
    }
    fields = [field.with_metadata(kind) if field.name == "host" else field for field in SCHEMAS["runs"]]
    hostile = pa.table(finished_tables(A, RunConfig())["runs"].columns, schema=pa.schema(fields))
    content = encoded(hostile, {"files": {}, "predicted": [], "replaces": []})
    (tmp_path / "results" / "runs" / named(store.parts.next_stem(), content)).write_bytes(content)
    stored = base64.b64decode(pq.read_metadata(pa.BufferReader(content)).metadata[b"ARROW:schema"])
    assert b"arrow.py_extension_type" in stored
    assert b"executed" in stored
    assert RunStore(tmp_path / "results").read("runs")["run_id"].tolist() == [A]
    assert pd.read_parquet(tmp_path / "results" / "runs")["run_id"].tolist() == [A]
    write_finished(store, "b" * 24, finished_tables("b" * 24, RunConfig()))
    assert len(store.read("runs")) == 2
    assert not marker.exists()
