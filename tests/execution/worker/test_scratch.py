"""Private folders of launches: no other user enters them, and those of killed launches are removed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.execution.conftest import Launch
from tests.helpers.launching import ONE_WORKER, kill_all, wait_for
from tests.helpers.preloaded import Preloaded


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "rest", ["killed", pytest.param("ends by itself", marks=pytest.mark.nightly)]
)  # in a minute or two
def test_a_launch_removes_what_a_killed_one_left_and_leaves_nothing(
    launch: Launch, forked: Preloaded, short: Path, rest: str
) -> None:
    command, changes = ("space.py", "--no-report", *ONE_WORKER), {"TMPDIR": str(short)}
    killed = launch(*command, script=forked, changes=changes)
    killed.read_until("starting workers")  # Ray has started
    killed.kill()
    if rest == "ends by itself":  # but for Ray's agents: they report to a server that has ended as well
        wait_for(lambda: all("Agent" in title for title in killed.processes().values()), "the end of Ray")
    kill_all(killed.tag)
    assert list(short.glob("clops-*/ray/session_*"))
    last = launch(*command, "--where", "strategy == 'finetune'", "--seeds", "1", script=forked, changes=changes)
    assert last.wait() == 0, last.output + last.errors
    assert list(short.iterdir()) == []
