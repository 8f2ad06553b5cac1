"""Where a number comes from: versions, commit and machine, as columns of the `runs` table."""

from __future__ import annotations

import platform
import socket
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import clops_sweep


def software() -> dict[str, Any]:
    """Versions of what computes, and the commit of this package where it runs from a git checkout."""
    commit, dirty = _git_commit()
    return {
        "package_version": clops_sweep.__version__,
        "git_commit": commit,
        "git_dirty": dirty,
        "python": platform.python_version(),
        "torch": _version("torch"),
        "ray": _version("ray"),
    }


def machine(device: str) -> dict[str, Any]:
    """The host and the device that a run is computed on."""
    return {"host": socket.gethostname(), "device": device}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_commit() -> tuple[str | None, bool | None]:
    """Commit and whether files differ from it; None for an installed copy, which git does not track."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    if git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None, None
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
    return git("rev-parse", "HEAD"), None if changed is None else bool(changed)
