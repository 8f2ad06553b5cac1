"""`clops-sweep check` of search-space files; tests of the store check damaged stores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clops_sweep.cli.commands import command
from clops_sweep.errors import UsageError

SPACE = """
from clops_sweep import OptunaSearch, RunConfig, SearchSpace

print("loaded")
SPACE = SearchSpace("grid", RunConfig(), {"strategy": ["finetune", "er"]}, seeds=2)
"""
ABSENT = 'SPACE = SearchSpace("mitbih", RunConfig(dataset="mitbih"))\n'


@pytest.fixture
def folder(tmp_path: Path, prepared_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    (tmp_path / "grid.py").write_text(SPACE)
    (tmp_path / "script.py").write_text("raise SystemExit('not a search-space file')\n")
    return tmp_path


def _run(*words: str) -> Result:
    return CliRunner().invoke(command, ["check", *words])


@pytest.mark.nightly
def test_every_search_space_file_of_a_folder_is_checked(folder: Path) -> None:
    (folder / "wrong.py").write_text(SPACE.replace("RunConfig()", "RunConfig(datset='x')"))
    (folder / "broken.py").write_text("SPACE = (\n")
    done = _run(".")
    assert done.exit_code == 2
    assert done.output.splitlines() == [
        "broken.py: invalid: raises SyntaxError in line 1: '(' was never closed (broken.py, line 1)",
        "grid.py: valid: 4 runs",
        "wrong.py: invalid: unknown key 'datset' (did you mean 'dataset'?)",
        "3 search-space files in ., 2 of them invalid",
    ]
    as_json = json.loads(_run(".", "--json").stdout)
    assert (as_json["whole"], as_json["runs"], len(as_json["faults"])) == (False, 4, 2)
    assert [of_file["file"] for of_file in as_json["files"]] == ["broken.py", "grid.py", "wrong.py"]
    assert not (folder / "results").exists()


def test_one_file_is_checked_and_says_which_data_are_not_prepared(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(folder / "nothing prepared"))
    monkeypatch.delenv("CLOPS_DATA_ROOT", raising=False)
    (folder / "absent.py").write_text(SPACE + ABSENT)
    done = _run("absent.py")
    assert (done.exit_code, done.output) == (
        0,
        "absent.py: valid: 5 runs; tasks on mitbih are not checked, as these data are not prepared\n",
    )


def test_a_folder_of_neither_kind_is_refused(folder: Path) -> None:
    (folder / "grid.py").unlink()
    done = _run(".")
    assert isinstance(done.exception, UsageError)
    assert "is no store, and no file (*.py) in it has a SPACE" in str(done.exception)


@pytest.mark.nightly
def test_another_store_is_named_as_the_folder(folder: Path) -> None:
    assert CliRunner().invoke(command, ["grid.py", "--results", "mine", "--no-report", "--no-ray"]).exit_code == 0
    assert _run("mine").output == f"every part in {folder / 'mine'} is intact: 4 runs\n"
