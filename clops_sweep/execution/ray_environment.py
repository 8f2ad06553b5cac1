"""The settings that Ray and Tune look at when they are imported: import this module before them.

What the user has set stays.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

SETTINGS = {
    # Nothing is reported to Ray's makers, and no GPU is hidden from those who ask for none.
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # A line that another run has printed, too, is this run's all the same.
    "RAY_DEDUP_LOGS": "0",
    # Tune writes no result files and no snapshots: the store has what they would hold.
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "TUNE_GLOBAL_CHECKPOINT_S": "86400",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # an interrupt is the display's
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS": "0",
}


def has_token() -> bool:
    """Whether there is a token to show to a cluster."""
    file = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    return bool(os.environ.get("RAY_AUTH_TOKEN")) or Path(file).exists()


for _name, _value in SETTINGS.items():
    os.environ.setdefault(_name, _value)

# A cluster of Ray 2.60 requires a token if the process that started it had one, so send ours if there is one. Set this
# before Ray is imported: this process keeps the value that Ray read then, and child processes take the later one.
if "ray" not in sys.modules and has_token():
    os.environ.setdefault("RAY_AUTH_MODE", "token")
