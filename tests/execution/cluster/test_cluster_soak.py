"""The soak of a cluster in its long form; `cluster_soak.py` says what happens in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_soak import soak


@pytest.mark.slow
@pytest.mark.timeout(10800)
def test_a_disturbed_cluster_gives_what_a_quiet_machine_gives(environment: dict[str, str], tmp_path: Path) -> None:
    print("\n".join(soak(tmp_path, environment, runs=2000, minutes=15, seed=1)))
