"""`clops-sweep new`: what it writes can be run as it is, and nothing that is there is lost by it."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from clops_sweep.cli.command import main
from clops_sweep.experiment.spaces.search_space import all_requests, load_spaces, shipped_spaces

Command = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Runs `clops-sweep new` in the test's folder, inside this process."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        with pytest.raises(SystemExit) as ended:
            main(["new", *arguments])
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), *capfd.readouterr())

    return run


def _refused(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"clops-sweep: {sentence}"), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["space.py", "my sweep.py", "folder/space.py"])
def test_the_first_space_is_planned_by_the_command_that_it_is_said_to_be_run_with(
    new: Command, clops_sweep: Command, tmp_path: Path, name: str
) -> None:
    (tmp_path / "folder").mkdir()
    done = new(name)
    assert (done.returncode, done.stderr) == (0, "")
    said, _, command = done.stdout.strip().partition("; run it with: ")
    assert said == f"{name} is written"
    assert shlex.split(command) == ["clops-sweep", name]
    assert sorted(path.name for path in (tmp_path / name).parent.iterdir() if path.is_file()) == [Path(name).name]
    planned = clops_sweep(*shlex.split(command)[1:], "--dry-run")
    assert (planned.returncode, planned.stderr) == (0, "")
    assert planned.stdout.startswith("8 runs asked for, 0 finished, 8 pending, 0 failed\n")


@pytest.mark.parametrize("name", shipped_spaces())
def test_a_copy_asks_for_the_same_runs_wherever_it_is(new: Command, tmp_path: Path, name: str) -> None:
    assert new("copy.py", "--from", name).returncode == 0
    copied, original = (load_spaces(path) for path in (tmp_path / "copy.py", ROOT / "search_spaces" / f"{name}.py"))
    # A condition is a function, and one that is read anew another one; what it keeps is compared below.
    assert [replace(space, where=None) for space in copied] == [replace(space, where=None) for space in original]
    if any(space.where for space in copied):
        assert all_requests(copied) == all_requests(original)
    assert any(True for space in copied for _ in space.requests()) or all(space.search for space in copied)


def test_recipes_are_filled_in(new: Command, tmp_path: Path) -> None:
    done = new("job.sh", "--slurm-array", "--space", "my grid.py", "--shards", "5", "--time", "1-12")
    assert (done.returncode, done.stdout) == (0, "job.sh is written; submit it with: sbatch job.sh\n")
    array = (tmp_path / "job.sh").read_text()
    for line in ("#SBATCH --array=1-5\n", "#SBATCH --time=1-12\n", "\nspace='my grid.py'\n", "_TASK_ID/5"):
        assert array.count(line) == 1
    assert "16" not in array
    new("nodes.sh", "--slurm", "--space", "grid.py", "--time", "2:00:00")
    assert "#SBATCH --time=2:00:00\n" in (tmp_path / "nodes.sh").read_text()
    for script in ("job.sh", "nodes.sh"):
        assert subprocess.run(["bash", "-n", script], cwd=tmp_path).returncode == 0
    new("job.yaml", "--kuberay", "--space", "/opt/grid.py")
    manifest = yaml.safe_load((tmp_path / "job.yaml").read_text())
    assert manifest["spec"]["entrypoint"].startswith("clops-sweep /opt/grid.py --address auto ")
    assert manifest["spec"]["rayClusterSpec"]["rayVersion"] == version("ray")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["space.txt"], "space.txt: a search-space file needs a name that ends in .py"),
        (["space"], "space: a search-space file needs a name that ends in .py"),
        ([".py"], ".py: a search-space file needs a name that ends in .py"),
        (["nowhere/space.py"], "nowhere/space.py: there is no folder nowhere; make it first or name another"),
        (["file.py/space.py"], "file.py/space.py: there is no folder file.py; make it first or name another"),
        (["file.py"], "file.py: exists already and is not replaced; choose another name"),
        (["file.py", "--from", "paper"], "file.py: exists already"),
        (["folder.py"], "folder.py: exists already"),
        (["link.py"], "link.py: exists already"),
        ([f"{'long' * 100}.py"], "longlong"),
        (
            ["space.py", "--from", "class_il_gird"],
            "--from 'class_il_gird': no search-space file of that name comes with",
        ),
        (["job.sh", "--slurm", "--kuberay"], "--slurm and --kuberay exclude each other; expected one of them"),
        (["job.sh", "--slurm", "--from", "paper"], "--from goes with a search space, not with a job"),
        (["space.py", "--space", "other.py"], "--space needs --slurm, --slurm-array or --kuberay"),
        (["job.yaml", "--kuberay", "--time", "1:00"], "--time needs --slurm or --slurm-array"),
        (["job.sh", "--slurm", "--shards", "3"], "--shards needs --slurm-array"),
        (["job.sh", "--slurm", "--time", "soon"], "--time 'soon': not a time limit of Slurm"),
        (["job.py", "--slurm"], "job.py: a job script is not a Python file; name it job.sh, for example"),
        (["file.py", "--slurm"], "file.py: a job script is not a Python file"),
        (["space.py", "--from", "__init__"], "--from '__init__': no search-space file of that name comes with"),
        (["space.py", "--from", ""], "--from '': no search-space file of that name comes with"),
        ([], "Missing argument 'FILE'"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_and_nothing_changes(
    new: Command, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "file.py").write_text("mine")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "link.py").symlink_to("nothing")
    before = sorted(os.listdir(tmp_path))
    _refused(new(*arguments), sentence)
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "file.py").read_text() == "mine"
