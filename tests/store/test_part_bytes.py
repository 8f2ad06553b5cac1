"""The seal of a part detects every changed byte, and every other path."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clops_sweep import RunConfig
from clops_sweep.store.part_bytes import UNSEALED, check_seal, sealed

Tables = Callable[..., dict[str, pa.Table]]
A = "a" * 24


def _sealed(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"digest": UNSEALED})
    return pa.py_buffer(sealed(sink.getvalue(), "runs/x"))


def test_whatever_is_changed_is_seen(finished_tables: Tables) -> None:
    table = finished_tables(A, RunConfig())["curves"]
    content = _sealed(table)
    check_seal(content, "runs/x")
    assert pq.read_table(pa.BufferReader(content)).equals(table)
    draw = random.Random(1)
    for _ in range(300):
        changed = bytearray(content)
        changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        with pytest.raises(pa.ArrowInvalid, match=r"it (is not what was written there|has no digest)"):
            check_seal(pa.py_buffer(bytes(changed)), "runs/x")
    with pytest.raises(pa.ArrowInvalid):
        check_seal(content, "runs/y")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\xff\xff\xff\xffPAR1"])
def test_what_is_no_part_has_no_digest(content: bytes) -> None:
    with pytest.raises(pa.ArrowInvalid, match="it has no digest"):
        check_seal(pa.py_buffer(content), "runs/x")
