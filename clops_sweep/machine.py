"""This machine: cores, GPUs and software versions."""

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

from clops_sweep.errors import UsageError, option

_LIMITS = Path("/sys/fs/cgroup")
_NVIDIA = Path("/proc/driver/nvidia/gpus")
_GPU_DRIVERS = (str(_NVIDIA), "/dev/kfd", "/dev/dxg")
"""Where the drivers of NVIDIA, AMD and Windows' Linux show GPUs."""


def available_cores(limits: Path = _LIMITS) -> int:
    """Return the number of cores that the process may use, as limited by `taskset`, a batch system or a container.

    Args:
        limits: folder with the limits of Linux control groups.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota(limits)))


def _quota(limits: Path) -> int:
    """Return the CPU quota of a container in cores, by control groups version 2 or 1."""
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
    """Return the GPUs that PyTorch can use. PyTorch is loaded only if there is a driver."""
    if not any(map(os.path.exists, _GPU_DRIVERS)):
        return ()
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    found = (torch.cuda.get_device_properties(index) for index in range(count))
    return tuple(Gpu(it.name, it.total_memory) for it in found)


def gpus_of_driver() -> int:
    """Return the number of GPUs of this machine, whether PyTorch can use them or not."""
    return max(len(list(_NVIDIA.iterdir())) if _NVIDIA.is_dir() else 0, len(usable_gpus()))


def check_gpu(request: str, wanted: float = 1) -> None:
    """Check that PyTorch can use a number of GPUs of this machine.

    Args:
        request: the option that requests them, for the error.
        wanted: number of GPUs.

    Raises:
        UsageError: PyTorch cannot use that many.
    """
    import torch

    if not torch.cuda.is_available():
        raise UsageError(f"{request}: PyTorch {torch.__version__} can use no GPU here; leave it out to compute on CPUs")
    if wanted > torch.cuda.device_count():
        raise UsageError(
            f"{request} {wanted:g}: this machine has {torch.cuda.device_count()}; expected no more, or a cluster with "
            f"{option('address')}"
        )


def software() -> dict[str, Any]:
    """Return software versions and, if known, the commit of this package: columns of `runs`.

    None means that a package is not installed, or that the commit is unknown.
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
    """Return the host and the device (cpu or cuda) of a run: columns of `runs`."""
    return {"host": socket.gethostname(), "device": device}


def installed_version(package: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_commit() -> tuple[str | None, bool | None]:
    """Return the commit and whether files differ from it, of a git checkout or of a pip installation (PEP 610)."""
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
    """Return the commit of `pip install git+https://...`; None for other installations."""
    try:
        origin = json.loads(distribution("clops-sweep").read_text("direct_url.json") or "{}")
        return str(origin["vcs_info"]["commit_id"])
    except (PackageNotFoundError, ValueError, LookupError, TypeError, OSError):
        return None
