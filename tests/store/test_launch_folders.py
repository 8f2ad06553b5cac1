"""Commands that repeat a run name the files of its plug-ins so that they are found from where the command is typed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from clops_sweep.errors import UsageError, speaking_python
from clops_sweep.store.launch_folders import plugin_files_to_name, remember_folders
from clops_sweep.store.rows import check_registered
from clops_sweep.store.run_store import RunStore

SOURCE = b"SPACE = ...\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "spaces").mkdir(parents=True)
    (project / "spaces" / "my.py").write_bytes(SOURCE)
    (tmp_path / "elsewhere").mkdir()
    return project


def recorded(file: str = "spaces/my.py") -> str:
    """The column `plugins` of a run whose launch was started in the project."""
    return json.dumps({"mine": [file, hashlib.sha256(SOURCE).hexdigest(), None]})


def test_a_plug_in_file_is_named_relative_to_the_folder_of_the_launch(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    store = RunStore("results")
    assert plugin_files_to_name(store, recorded()) == ("spaces/my.py",)
    assert plugin_files_to_name(store, recorded(), anywhere=True) == (str(project / "spaces" / "my.py"),)
    assert plugin_files_to_name(store, None) == ()


def test_in_another_folder_it_is_found_around_the_results(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent / "elsewhere")
    store = RunStore("../project/results")
    assert plugin_files_to_name(store, recorded()) == (str(project / "spaces" / "my.py"),)
    assert plugin_files_to_name(store, recorded("gone.py")) == ("gone.py",)
    row = {"run_id": "a" * 24, "strategy": "mine", "plugins": recorded()}
    with pytest.raises(UsageError, match=f"strategy 'mine' is not registered; expected --plugins {project}/spaces/my"):
        check_registered(row, store)
    with (
        speaking_python(),
        pytest.raises(UsageError, match=rf"registered; import the file that declares it: {project}/spaces/my\.py$"),
    ):
        check_registered(row, store)


def test_results_elsewhere_remember_where_the_launch_was_started(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    store = RunStore(tmp_path / "disk" / "results")
    store.open_for_writing()
    remember_folders(store, tmp_path)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert plugin_files_to_name(store, recorded()) == (str(project / "spaces" / "my.py"),)


def test_a_file_with_the_recorded_content_is_preferred(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = project.parent / "elsewhere" / "spaces"
    other.mkdir()
    (other / "my.py").write_text("raise RuntimeError\n")
    monkeypatch.chdir(other.parent)
    assert plugin_files_to_name(RunStore("../project/results"), recorded()) == (str(project / "spaces" / "my.py"),)
