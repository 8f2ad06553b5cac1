"""As many workers as this process may keep cores busy, whoever limits them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clops_sweep.errors import UsageError
from clops_sweep.machine import available_cores, check_gpu

PERIOD = 100_000


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `taskset` or a batch system has left."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)


@pytest.mark.parametrize(
    ("quota", "cores"), [("max", 8), ("300000", 3), ("250000", 3), ("50000", 1), ("1600000", 8), ("nonsense", 8)]
)
def test_a_container_may_take_less_time_than_its_cores_have(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(f"{quota} {PERIOD}\n")
    assert available_cores(tmp_path) == cores


def test_more_gpus_than_there_are_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    check_gpu("--gpus-per-trial", 0.25)
    check_gpu("--gpus-per-trial", 1)
    with pytest.raises(UsageError, match=r"^--gpus-per-trial 2: this machine has 1; expected no more, or a cluster"):
        check_gpu("--gpus-per-trial", 2)
