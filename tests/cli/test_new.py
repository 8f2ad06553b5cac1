"""`clops-sweep new`: what it writes can be run as it is, and nothing that is there is lost by it."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path

import edfio
import h5py
import numpy as np
import pandas as pd
import pytest
import yaml

from clops_sweep import ContinualRun
from clops_sweep.analysis.update.criteria import read_criteria
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.experiment.fields import facts_of
from clops_sweep.experiment.plugins.registry import NETWORKS, STRATEGIES
from clops_sweep.experiment.spaces.selection import all_requests
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_spaces
from clops_sweep.testing.watch import result_difference
from tests.conftest import Command
from tests.data.declared_files import forget, write_wfdb
from tests.helpers.at_night import mostly_at_night

ROOT = Path(__file__).parents[2]


@pytest.fixture
def new(monkeypatch: pytest.MonkeyPatch, in_process: Command, tmp_path: Path) -> Command:
    """Runs `clops-sweep new` in the test's folder, inside this process."""
    monkeypatch.chdir(tmp_path)
    return partial(in_process, "new")


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
    assert planned.stdout.startswith("12 runs asked for, 0 finished, 12 pending, 0 failed\n")


def test_a_file_with_a_method_states_the_facts_of_its_option_and_trains(
    new: Command, tmp_path: Path, prepared_root: Path
) -> None:
    assert new("method.py", "--template", "method").returncode == 0
    try:
        (space,) = load_spaces(tmp_path / "method.py")
        facts = facts_of("my_strength")
        assert (facts.equal_training, facts.equal_cost) == (True, True)
        config, *_ = (it.config for it in space.requests())
        short = config.replace(epochs_per_task=1, first_tasks=2)
        frames = open_frames("synthetic", prepared_root=prepared_root)
        plain = short.replace(my_strength=0.0)
        trained, without = (ContinualRun(it, frames).run() for it in (short, plain))
        assert result_difference(trained, without, ignore=["run_id", "my_strength"]) is not None
    finally:
        STRATEGIES.forget("my_method")


def _arrays(folder: Path, stream: np.random.Generator) -> None:
    people, labels = np.repeat(np.arange(15), 8), np.tile(np.arange(4), 30)
    np.savez(folder / "wearable.npz", x=stream.normal(size=(120, 3, 100)), y=labels, subject=people)


def _csv(folder: Path, stream: np.random.Generator) -> None:
    (folder / "recordings").mkdir()
    rows = ["file,activity,person"]
    for number in range(60):
        name = f"r{number:03}.csv"
        samples = pd.DataFrame(stream.normal(size=(250, 3)), columns=["ax", "ay", "az"])
        samples.insert(0, "seconds", np.arange(250) / 50)
        samples.to_csv(folder / "recordings" / name, index=False)
        rows.append(f"{name},{('rest', 'walk', 'run', 'stairs')[number % 4]},P{number // 4:02}")
    (folder / "recordings" / "table.csv").write_text("\n".join(rows))


def _wfdb(folder: Path, stream: np.random.Generator) -> None:
    rows = ["record,rhythm,person"]
    for number in range(80):
        name = f"r{number:03}"
        write_wfdb(folder / "hospital", name, stream.integers(-999, 999, (1, 1500)), 250)
        rows.append(f"{name},{('normal', 'AF', 'other', 'noise')[number % 4]},{number // 4}")
    (folder / "hospital" / "labels.csv").write_text("\n".join(rows))


def _edf(folder: Path, stream: np.random.Generator) -> None:
    (folder / "nights").mkdir()
    stages = [
        edfio.EdfAnnotation(60 * number, 60, f"Sleep stage {it}") for number, it in enumerate(("W", "N2", "N3", "R"))
    ]
    for person in range(10):
        signal = edfio.EdfSignal(stream.normal(size=240 * 100), 100, label="EEG Fpz-Cz", physical_dimension="uV")
        edfio.Edf([signal], annotations=stages).write(folder / "nights" / f"ab{person:02}_1.edf")


def _hdf5(folder: Path, stream: np.random.Generator) -> None:
    with h5py.File(folder / "exams.h5", "w") as file:
        file["tracings"] = stream.normal(size=(80, 800, 2))
        file["rhythm"] = [("normal", "AF", "other", "noise")[number % 4] for number in range(80)]
        file["patient_id"] = np.arange(80) // 4


@pytest.mark.parametrize(
    ("template", "name", "write"),
    mostly_at_night(
        [
            ("arrays", "wearable", _arrays),
            ("csv", "recordings", _csv),
            ("wfdb", "hospital", _wfdb),
            ("edf", "nights", _edf),
            ("hdf5", "exams", _hdf5),
        ],
        lambda case: case[0] in ("arrays", "csv"),
    ),
)
def test_templates_for_recordings_train_on_files_like_those_that_they_name(
    new: Command, tmp_path: Path, template: str, name: str, write: Callable[[Path, np.random.Generator], None]
) -> None:
    done = new("space.py", "--template", template)
    assert (done.returncode, done.stderr) == (0, "")
    assert " beside it, then run it with: clops-sweep space.py" in done.stdout
    write(tmp_path, np.random.default_rng(0))
    try:
        (space,) = load_spaces(tmp_path / "space.py")
        config, *others = (it.config for it in space.requests())
        assert len(others) == 8
        prepare(name, prepared_root=tmp_path / "prepared", data_root=tmp_path)
        frames = open_frames(name, prepared_root=tmp_path / "prepared")
        result = ContinualRun(config.replace(epochs_per_task=1), frames).run()
        assert result.runs["epochs_trained"].item() > 0
    finally:
        forget(name)


def _wards(folder: Path, stream: np.random.Generator) -> None:
    rows = ["record,rhythm,patient,ward,sex,age"]
    for number in range(120):
        patient = number // 2
        name = f"r{number:03}"
        write_wfdb(folder / "hospital", name, stream.integers(-999, 999, (1, 2500)), 250)
        label = ("sinus rhythm", "AF")[number % 2]
        rows.append(f"{name},{label},{patient},{'AB'[patient % 2]},{'fm'[patient // 2 % 2]},{40 + patient % 40}")
    (folder / "hospital" / "records.csv").write_text("\n".join(rows))


@pytest.mark.nightly
def test_the_template_of_wards_ends_with_an_update_report_that_judges_its_criteria(
    new: Command, tmp_path: Path, clops_sweep: Command
) -> None:
    done = new("my wards.py", "--template", "wards")
    assert (done.returncode, done.stderr) == (0, "")
    said, _, command = done.stdout.strip().partition(", then run them with: ")
    assert said.startswith("my wards.py and my wards_criteria.toml are written; ")
    assert shlex.split(command) == ["clops-sweep", "my wards.py", "--keep", "predictions"]
    _wards(tmp_path, np.random.default_rng(0))
    try:
        (space,) = load_spaces(tmp_path / "my wards.py")
        assert [it.config.split_seed for it in space.requests()] == [*range(5)] * 2
        limits = read_criteria(tmp_path / "my wards_criteria.toml")
        assert (limits.min_sensitivity, limits.min_specificity) == ({"AF": 0.8}, {"AF": 0.9})
        written = (tmp_path / "my wards.py").read_text().splitlines()
        launch, runs, report = (shlex.split(line) for line in written if line.startswith("    clops-sweep "))
        shorter = ("--set", "epochs_per_task=1", "--where", "split_seed == 0", "--no-report", "--no-ray")
        launched = clops_sweep(*launch[1:], *shorter, CLOPS_PREPARED_ROOT="prepared")
        assert launched.returncode == 0, launched.stderr
        shown = clops_sweep(*runs[1:], "--json", CLOPS_PREPARED_ROOT="prepared")
        run_id = json.loads(shown.stdout)["runs"][0]["run_id"]
        assert report[:3] == ["clops-sweep", "update-report", "RUN_ID"]
        judged = clops_sweep("update-report", run_id, *report[3:], CLOPS_PREPARED_ROOT="prepared")
        assert judged.returncode in (0, 1), judged.stderr
        assert "max_group_flips of sex f" in judged.stdout
        assert "min_specificity of AF" in judged.stdout
        assert "The last task has recordings of another ward: B." in judged.stdout
    finally:
        forget("wards")


def test_the_template_of_wards_of_edf_files_takes_people_and_wards_from_the_table(new: Command, tmp_path: Path) -> None:
    done = new("wards.py", "--template", "wards_edf")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "wards_criteria.toml").exists()
    (tmp_path / "hospital").mkdir()
    stream = np.random.default_rng(0)
    rows = ["record,rhythm,patient,ward,sex,age"]
    for number in range(40):
        signal = edfio.EdfSignal(stream.normal(size=2500), 250, label="II", physical_dimension="mV")
        edfio.Edf([signal]).write(tmp_path / "hospital" / f"r{number:02}.edf")
        label, ward = ("sinus rhythm", "AF")[number % 2], "AB"[number // 20]
        rows.append(f"r{number:02},{label},{number // 2},{ward},f,{50 + number}")
    (tmp_path / "hospital" / "records.csv").write_text("\n".join(rows))
    try:
        (space,) = load_spaces(tmp_path / "wards.py")
        prepare("wards", prepared_root=tmp_path / "prepared", data_root=tmp_path)
        config = space.base.replace(strategy="er", epochs_per_task=1, stratify="ward")
        frames = open_frames("wards", prepared_root=tmp_path / "prepared", **config.data_key.view)
        assert len(frames) == 40
        assert sorted(frames.patient_names) == sorted(str(number) for number in range(20))
        r_matrix = ContinualRun(config, frames).run().r_matrix
        assert set(r_matrix["evaluated_on"]) == {1, 2}, "a task for each ward"
    finally:
        forget("wards")


def test_criteria_that_are_there_are_not_replaced(new: Command, tmp_path: Path) -> None:
    (tmp_path / "wards_criteria.toml").write_text("max_flips = 0.01")
    done = new("wards.py", "--template", "wards")
    assert done.returncode == 2
    assert "wards_criteria.toml: exists already and is not replaced; choose another name" in done.stderr
    assert not (tmp_path / "wards.py").exists()


def test_the_template_of_a_network_trains(new: Command, tmp_path: Path, prepared_root: Path) -> None:
    assert new("space.py", "--template", "network").returncode == 0
    try:
        (space,) = load_spaces(tmp_path / "space.py")
        config, *_ = (it.config for it in space.requests())
        assert config.network == "my_network"
        frames = open_frames("synthetic", prepared_root=prepared_root)
        result = ContinualRun(config.replace(epochs_per_task=1, first_tasks=2), frames).run()
        assert result.runs["epochs_trained"].item() > 0
    finally:
        NETWORKS.forget("my_network")


@pytest.mark.parametrize("others", [["--from", "class_il_grid"], ["--slurm"]])
def test_a_template_goes_with_nothing_else(new: Command, others: list[str]) -> None:
    done = new("method.py", "--template", "method", *others)
    assert done.returncode == 2
    assert "--template goes with neither --from nor a job; expected it alone" in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(it, marks=() if it in ("quickstart", "networks", "paper_claims") else pytest.mark.nightly)
        for it in shipped_spaces()
    ],
)
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
