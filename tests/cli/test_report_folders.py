"""Folders of reports: the report of a search-space file does not replace that of another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import clops_sweep
from clops_sweep.analysis.drawing.pictures import Sketch
from clops_sweep.cli.commands import command
from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.experiment.spaces.space_files import load_spaces
from clops_sweep.store.run_store import RunStore
from tests.helpers.stores import write_many_finished
from tests.helpers.unpainted import unpainted

SPACE = """
from clops_sweep import RunConfig, SearchSpace

METHODS = ["{method}", "finetune"]
SPACE = SearchSpace("study", RunConfig(epochs_per_task=2), {{"strategy": METHODS}}, seeds=range(2))
"""
METHODS = {"first.py": "er", "second.py": "ewc"}


@pytest.fixture
def folder(tmp_path: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files whose search spaces have one name, and a store with the runs of both."""
    store = RunStore(tmp_path / "results")
    content = data_hash("synthetic", prepared_root=prepared_root)
    for name, method in METHODS.items():
        (tmp_path / name).write_text(SPACE.format(method=method))
        (space,) = load_spaces(tmp_path / name)
        write_many_finished(store, [request.config for request in space.requests()], content)
    monkeypatch.setattr(Sketch, "drawn", unpainted)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reported(*arguments: str, prepared_root: Path) -> tuple[Path, str]:
    """Return the page that the command writes, and what it prints on standard error."""
    done = CliRunner().invoke(command, ["report", *arguments, "--prepared-root", str(prepared_root)])
    assert done.exit_code == 0, done.output
    return Path(done.stdout.splitlines()[-1].removeprefix("report: ")), done.stderr


@pytest.mark.nightly
def test_files_with_spaces_of_one_name_have_separate_reports(folder: Path, prepared_root: Path) -> None:
    first, said = reported("first.py", prepared_root=prepared_root)
    assert first.parent == folder / "results" / "report" / "study"
    assert "has the report of" not in said
    page = first.read_text()
    second, said = reported("second.py", prepared_root=prepared_root)
    assert second.parent.name.startswith("study+")
    assert "study' has the report of first.py, so this report, which has the same name, has its own folder" in said
    assert first.read_text() == page
    assert "ewc" in second.read_text()
    assert "ewc" not in page
    for name, index in (("first.py", first), ("second.py", second)):
        again, _ = reported(name, prepared_root=prepared_root)
        assert again == index
        written = clops_sweep.write_report(name, "results", prepared_root=prepared_root)
        assert written.index.resolve() == index
    named, said = reported("second.py", "--output", str(first.parent), prepared_root=prepared_root)
    assert (named, said) == (first, ""), "a folder that the user names is replaced"
    assert "ewc" in first.read_text()


@pytest.mark.nightly
def test_a_file_keeps_its_report_if_it_is_edited_moved_or_copied(folder: Path, prepared_root: Path) -> None:
    first, _ = reported("first.py", prepared_root=prepared_root)
    with (folder / "first.py").open("a") as file:
        file.write("# a comment\n")
    assert reported("first.py", prepared_root=prepared_root) == (first, "")
    (folder / "studies").mkdir()
    (folder / "first.py").rename(folder / "studies" / "moved.py")
    assert reported("studies/moved.py", prepared_root=prepared_root) == (first, "")
    shutil.copy(folder / "studies" / "moved.py", folder / "copied.py")
    assert reported("copied.py", prepared_root=prepared_root) == (first, "")
    shutil.copytree(folder, folder.with_name(f"{folder.name}-elsewhere"))
    elsewhere = folder.with_name(f"{folder.name}-elsewhere")
    there, said = reported(
        str(elsewhere / "copied.py"), "--results", str(elsewhere / "results"), prepared_root=prepared_root
    )
    assert (there, said) == (elsewhere / "results" / "report" / "study" / "index.html", "")


def test_the_report_of_the_whole_store_replaces_none_of_a_file(folder: Path, prepared_root: Path) -> None:
    for name in METHODS:
        content = (folder / name).read_text()
        (folder / name).write_text(content.replace('"study"', '"everything"'))
    of_file, _ = reported("first.py", prepared_root=prepared_root)
    of_store, said = reported(prepared_root=prepared_root)
    assert of_file.parent.name == "everything"
    assert of_store.parent.name.startswith("everything+")
    assert "has the report of first.py" in said
