"""Private folders of launches: no other user enters them, and those of killed launches are removed."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clops_sweep.execution.worker.scratch import private_folder, remove_left_behind
from tests.helpers.launching import ONE_WORKER, Sweep, kill_all, wait_for
from tests.helpers.preloaded import Preloaded

Launch = Callable[..., Sweep]

OWNER = """
import sys
from pathlib import Path
from clops_sweep.execution.worker.scratch import private_folder

with private_folder(Path(sys.argv[1])) as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_a_folder_is_removed_once_its_process_is_gone_and_not_before(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        assert folder.stat().st_mode & 0o777 == 0o700
        remove_left_behind(tmp_path)
        assert (folder / "file").exists()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    assert (folder / "file").exists()
    with private_folder(tmp_path) as ours:
        assert list(tmp_path.iterdir()) == [ours]
        remove_left_behind(tmp_path)
        assert ours.is_dir()
    assert list(tmp_path.iterdir()) == []


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
    assert last.wait() == 0, last.errors
    assert list(short.iterdir()) == []
