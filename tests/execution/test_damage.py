"""A launch computes anew what it finds damaged, and the store is as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from clops_sweep import ContinualRun
from clops_sweep.data.preparing.prepare import open_frames
from clops_sweep.experiment.spaces.search_space import all_requests, load_spaces
from clops_sweep.store.run_store import RunStore
from tests.helpers.launching import Sweep, Tables, assert_same
from tests.helpers.preloaded import Preloaded
from tests.helpers.stores import record_result

pytestmark = pytest.mark.nightly

Launch = Callable[..., Sweep]


def _record(space: Path, results: Path, prepared_root: Path) -> None:
    """The runs of a space as a worker records them, without what it takes to start one."""
    store = RunStore(results)
    store.open_for_writing()
    frames = open_frames("synthetic", prepared_root=prepared_root)
    for request in all_requests(load_spaces(space)):
        runs = {request.config.run_id(frames.data_hash): request.config}
        record_result(store, runs, ContinualRun(request.config, frames).run(), lambda _: frames.data_hash, {})


def test_what_is_damaged_is_computed_anew_by_the_next_launch(
    launch: Launch, attach: Launch, commands: Preloaded, alone: Tables, tmp_path: Path, prepared_root: Path
) -> None:
    results = tmp_path / "results"
    _record(tmp_path / "space.py", results, prepared_root)
    assert_same(results, alone)
    flipped, cut, gone = (
        sorted((results / table).iterdir())[place] for table, place in (("runs", 0), ("curves", 1), ("instances", 2))
    )
    content = bytearray(flipped.read_bytes())
    content[len(content) // 2] ^= 1
    flipped.write_bytes(content)
    cut.write_bytes(cut.read_bytes()[:-40])
    gone.unlink()
    checked = launch("check", script=commands)
    assert checked.wait() == 1
    said = checked.output.splitlines()
    assert [line.partition(": ")[0] for line in said] == [str(flipped), str(cut), str(gone)]

    first = attach("space.py", "--no-report")
    assert first.wait() == 0, first.output + first.errors
    assert first.errors.count("clops-sweep: set aside: ") == 3
    assert "3 runs to do" in first.output
    assert_same(results, alone)
    kept = {path.name for path in (results / ".work" / "damaged").iterdir()}
    assert {f"runs-{flipped.name}", f"curves-{cut.name}"} < kept
    assert len(kept) == 1 + 4 + 3, "with what else belongs to these runs"

    second = attach("space.py", "--no-report")
    assert second.wait() == 0
    assert "nothing is pending: 6 runs asked for, 6 finished" in second.output
    assert second.errors == ""
