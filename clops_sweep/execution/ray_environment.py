"""Environment variables that Ray and Tune read when they are imported: import this module before them.

Values set by the user are kept.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SETTINGS = {
    # Disable usage statistics, and keep GPUs visible to trials that request none.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray must not deduplicate lines: equal lines of different runs matter.
    "RAY_DEDUP_LOGS": "0",
    # Tune writes no result files and no snapshots, which the store replaces.
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "86400",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # the display handles interrupts
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
}


_CLUSTERS = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_on_loopback = False


def stay_on_loopback() -> None:
    """Let Ray use 127.0.0.1 as the address of this machine, as on macOS and Windows. Call it before Ray is imported.

    Otherwise a Ray that this process starts listens on all interfaces, where other machines can reach it.
    """
    global _on_loopback
    if "ray" not in sys.modules and _CLUSTERS not in os.environ:
        os.environ[_CLUSTERS] = "0"
        _on_loopback = True


def is_on_loopback() -> bool:
    """Return whether `stay_on_loopback` has changed this process, which can then join no cluster of other machines."""
    return _on_loopback


def has_token() -> bool:
    """Return whether there is a token for a cluster."""
    file = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or Path(file).exists()


for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)

# A cluster of Ray 2.60 requires a token if it was started with one; then present ours. Once Ray is
# imported it is too late: this process uses the value read at import, but its children use the current one.
if "ray" not in sys.modules and has_token():
    os.environ.setdefault("RAY_AUTH_MODE", "token")
