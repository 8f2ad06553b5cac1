"""Which running cluster `--address` means, and what is said where there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clops_sweep.errors import UsageError
from clops_sweep.execution.cluster_address import running_cluster, temporary_folder


@pytest.fixture
def ray_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `ray start` leaves word of the cluster that it has started."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    (tmp_path / "ray").mkdir()
    return tmp_path / "ray"


def test_auto_without_a_cluster_is_refused_whatever_other_ray_runs_here(ray_folder: Path) -> None:
    with pytest.raises(UsageError, match=r"^--address auto: no cluster was started on this machine with 'ray start'"):
        running_cluster("auto")


def test_auto_looks_where_ray_start_leaves_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_TMPDIR", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("localhost:1\n")
    with pytest.raises(UsageError, match=r"^--address auto: no Ray cluster answers there, at \S+:1 \(.*refused"):
        running_cluster("auto")
    assert temporary_folder() == tmp_path / "ray"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a file that belongs to somebody else")
def test_a_cluster_of_somebody_else_is_taken_only_when_it_is_named(ray_folder: Path) -> None:
    (ray_folder / "ray_current_cluster").write_text("localhost:1")
    os.chown(ray_folder / "ray_current_cluster", 54321, 54321)
    with pytest.raises(
        UsageError, match="at localhost:1, belongs to user 54321; to use it, give --address localhost:1"
    ):
        running_cluster("auto")


@pytest.mark.parametrize("address", ["here", "host:", "host:99999", "ray://host:10001", "1.2.3.4", "a b:1", ""])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="expected auto or HOST:PORT"):
        running_cluster(address)
