"""What this machine has: cores, GPUs, versions of what computes."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import socket
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, NamedTuple

from clops_sweep.errors import UsageError

_LIMITS = Path("/sys/fs/cgroup")
_NVIDIA = Path("/proc/driver/nvidia/gpus")
_GPU_DRIVERS = (str(_NVIDIA), "/dev/kfd", "/dev/dxg")
"""Where the drivers of NVIDIA, AMD and Windows' Linux show GPUs."""


def available_cores(limits: Path = _LIMITS) -> int:
    """The cores that the process may keep busy, which `taskset`, a batch system or a container may have made fewer.

    Args:
        limits: where Linux tells what a container may take.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota(limits)))


def _quota(limits: Path) -> int:
    """The cores that a container may keep busy, by the second version of control groups or the first."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError):  # no such file, or no limit: "max", -1
            quota, period = (int(word) for name in files for word in (limits / name).read_text().split())
            if quota > 0 and period > 0:
                return math.ceil(quota / period)
    return sys.maxsize


class Gpu(NamedTuple):
    """A GPU that PyTorch can use: its name, and its memory in bytes."""

    name: str
    memory: int


def usable_gpus() -> tuple[Gpu, ...]:
    """The GPUs that PyTorch can use. PyTorch is loaded only where there is a driver."""
    if not any(map(os.path.exists, _GPU_DRIVERS)):
        return ()
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    found = (torch.cuda.get_device_properties(index) for index in range(count))
    return tuple(Gpu(it.name, it.total_memory) for it in found)


def gpus_of_driver() -> int:
    """How many GPUs this machine has, whether PyTorch can use them or not."""
    return max(len(list(_NVIDIA.iterdir())) if _NVIDIA.is_dir() else 0, len(usable_gpus()))


def check_gpu(option: str, wanted: float = 1) -> None:
    """Sees whether PyTorch can use as many GPUs of this machine as are asked for.

    Args:
        option: what asks for them.
        wanted: how many.

    Raises:
        UsageError: it cannot.
    """
    import torch

    if not torch.cuda.is_available():
        raise UsageError(f"{option}: PyTorch {torch.__version__} can use no GPU here; leave it out to compute on CPUs")
    if wanted > torch.cuda.device_count():
        raise UsageError(
            f"{option} {wanted:g}: this machine has {torch.cuda.device_count()}; expected no more, or a cluster with "
            "--address"
        )


def software() -> dict[str, Any]:
    """Versions of what computes, and the commit of this package where it is known: columns of `runs`.

    None stands for a package that is not installed, and for the commit of a copy of unknown origin.
    """
    commit, dirty = _git_commit()
    return {
        "package_version": installed_version("clops-sweep"),
        "git_commit": commit,
        "git_dirty": dirty,
        "python": platform.python_version(),
        "torch": installed_version("torch"),
        "ray": installed_version("ray"),
    }


def host(device: str) -> dict[str, Any]:
    """The host and the device (cpu or cuda) that a run is computed on: columns of `runs`."""
    return {"host": socket.gethostname(), "device": device}


def installed_version(package: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_commit() -> tuple[str | None, bool | None]:
    """Commit and whether files differ from it: of a git checkout, or of what pip was told to install (PEP 610)."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        installed = _installed_commit()
        return installed, None if installed is None else False
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
    return git("rev-parse", "HEAD"), None if changed is None else bool(changed)


def _installed_commit() -> str | None:
    """The commit that pip installed from a repository, as in `pip install git+https://...`; None for anything else."""
    try:
        origin = json.loads(distribution("clops-sweep").read_text("direct_url.json") or "{}")
        return str(origin["vcs_info"]["commit_id"])
    except (PackageNotFoundError, ValueError, LookupError, TypeError, OSError):
        return None
