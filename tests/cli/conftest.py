"""Fixtures of the data tests that those of the command use too, and commands in turn."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from clops_sweep.experiment.plugins.registry import REGISTRIES
from tests.data.conftest import mitbih, write_mitbih_record

__all__ = ["in_turn", "mitbih", "write_mitbih_record"]

IN_TURN = """
import json
import sys
from clops_sweep.cli.command import main

for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as end:
        if end.code:
            raise
"""


@pytest.fixture(autouse=True)
def _plugins_forgotten() -> Iterator[None]:
    """Commands that run in this process leave no plug-in to later tests."""
    before = {kind: set(registry.added) for kind, registry in REGISTRIES.items()}
    yield
    for kind, registry in REGISTRIES.items():
        for name in set(registry.added) - before[kind]:
            registry.forget(name)


InTurn = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def in_turn(environment: dict[str, str], tmp_path: Path) -> InTurn:
    """Runs commands one after the other in one new interpreter, in the test's folder, until one fails."""

    def run(*commands: Sequence[str], **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", IN_TURN, json.dumps(commands)],
            cwd=tmp_path,
            env=environment | changes,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )

    return run
