"""A launch computes anew what it finds damaged, and the store is as if nothing had happened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from launching import Sweep, Tables, assert_same

Launch = Callable[..., Sweep]


def test_what_is_damaged_between_two_launches_is_computed_anew(
    launch: Launch, attach: Launch, alone: Tables, tmp_path: Path
) -> None:
    first = attach("space.py", "--no-report")
    assert first.wait() == 0, first.output + first.errors
    results = tmp_path / "results"
    flipped, cut, gone = (
        sorted((results / table).iterdir())[place] for table, place in (("runs", 0), ("curves", 1), ("instances", 2))
    )
    content = bytearray(flipped.read_bytes())
    content[len(content) // 2] ^= 1
    flipped.write_bytes(content)
    cut.write_bytes(cut.read_bytes()[:-40])
    gone.unlink()
    checked = launch("check")
    assert checked.wait() == 1
    said = checked.output.splitlines()
    assert [line.startswith(start) for line, start in zip(said, (f"{flipped}: ", f"{cut}: ", "run "), strict=True)] == [
        True, True, True,
    ]  # fmt: skip

    second = attach("space.py", "--no-report")
    assert second.wait() == 0, second.output + second.errors
    assert second.errors.count("clops-sweep: set aside: ") == 2
    assert "3 runs to do" in second.output
    assert_same(results, alone)
    kept = sorted(path.name for path in (results / ".work" / "damaged").iterdir())
    assert kept == sorted([f"runs-{flipped.name}", f"curves-{cut.name}"])

    third = attach("space.py", "--no-report")
    assert third.wait() == 0
    assert "nothing is pending: 6 runs asked for, 6 finished" in third.output
    assert third.errors == ""
