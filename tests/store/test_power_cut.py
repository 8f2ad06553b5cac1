"""After a power failure at any moment of recording, compaction or checkpointing, everything found is complete."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from power import Power

from clops_sweep import RunConfig
from clops_sweep.data.files.folder import appearing_file
from clops_sweep.store.checkpoint import CheckpointFile
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.upkeep.verification import damages, without_damage

Tables = Callable[..., dict[str, pa.Table]]
TABLES = ("runs", "r_matrix", "curves", "instances")
IDS = [letter * 24 for letter in "abcd"]


class Found:
    """What a launch finds after a power failure, at each of many moments.

    Attributes:
        written: runs, and states of the checkpoint, reported as recorded by then.
        moments: number of simulated failures.
    """

    def __init__(self, image: Path, tables: dict[str, dict[str, pa.Table]], every: int) -> None:
        self.written: list[str] = []
        self.states: list[int] = []
        self.moments = 0
        self._every = every
        self._image = image
        self._tables = tables
        self._draw = random.Random(3)

    def __call__(self, power: Power) -> None:
        self.moments += 1
        if self.moments % self._every > 1:  # two launches: without and with what was not flushed
            return
        power.image(self._image, None if self.moments % 2 else self._draw)
        store = RunStore(self._image / "results")
        assert not without_damage(store, IDS, pytest.fail)
        finished = {run_id for run_id, status in store.statuses().items() if status == "finished"}
        assert finished >= set(self.written)
        self._check_tables(store, sorted(finished))
        state = CheckpointFile(store, [IDS[0]]).load()
        assert state is None or state["epoch"] >= max(self.states, default=0)
        assert state is not None or not self.states
        if self.moments % 10 == 3:
            for run_id in IDS[::3]:  # the next launch continues
                store.write_finished(run_id, self._tables[run_id])
            store.compact()
            self._check_tables(store, sorted(finished.union(IDS[::3])))
            assert damages(store) == []

    def _check_tables(self, store: RunStore, run_ids: list[str]) -> None:
        for table in TABLES:
            expected = [self._tables[run_id][table] for run_id in run_ids]
            found = store.table(table, run_ids)  # type: ignore[arg-type]
            assert found.equals(pa.concat_tables(expected)) if expected else found.num_rows == 0


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_what_was_recorded_is_there_and_nothing_else_is(
    tmp_path: Path, finished_tables: Tables, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    tables = {run_id: finished_tables(run_id, RunConfig(seed=seed)) for seed, run_id in enumerate(IDS)}
    found = Found(tmp_path / "image", tables, every)
    (tmp_path / "disk").mkdir()
    with monkeypatch.context() as context:
        power = Power(tmp_path / "disk", found, context)
        store = RunStore(tmp_path / "disk" / "results")
        store.open_for_writing()
        checkpoint = CheckpointFile(store, [IDS[0]])
        for run_id in IDS[:3]:
            if run_id == IDS[1]:
                store.write_failed(run_id, tables[run_id]["runs"])
            checkpoint.save({"epoch": len(found.states) + 1})
            found.states.append(len(found.states) + 1)
            store.write_finished(run_id, tables[run_id])
            found.written.append(run_id)
        store.compact()
        for run_id in IDS[3:]:
            store.write_finished(run_id, tables[run_id])
            found.written.append(run_id)
        store.compact()
    power.close()
    assert found.moments > 100


def test_a_file_that_nobody_flushes_may_be_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that the simulated disk loses content."""
    seen = set()

    def look(power: Power) -> None:
        for seed in range(20):
            power.image(tmp_path / "image", random.Random(seed))
            for path in (tmp_path / "image").iterdir():
                seen.add((path.name, path.read_bytes()))

    disk = tmp_path / "disk"
    disk.mkdir()
    with monkeypatch.context() as context:
        power = Power(disk, look, context)
        (disk / "careless").write_bytes(b"0123456789")
        with appearing_file(disk / "careful") as file:
            file.write(b"0123456789")
    power.close()
    assert len({content for name, content in seen if name == "careless"}) > 5
    assert {content for name, content in seen if name == "careful"} == {b"0123456789"}
