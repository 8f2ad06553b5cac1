"""Commands that rewrite a store."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clops_sweep import RunConfig
from clops_sweep.cli.commands import command
from clops_sweep.errors import UsageError
from clops_sweep.store.run_store import RunStore
from tests.conftest import Tables
from tests.helpers.stores import write_finished


def ask(*arguments: object, typed: str | None = None) -> Result:
    return CliRunner().invoke(command, [str(it) for it in arguments], input=typed, standalone_mode=False)


def refused(*arguments: object) -> str:
    done = ask(*arguments)
    assert isinstance(done.exception, UsageError), done.output
    assert len(str(done.exception)) < 400
    return str(done.exception)


@pytest.fixture
def store(tmp_path: Path, finished_tables: Tables) -> RunStore:
    """Three runs of CLOPS with seeds 0 to 2."""
    return written(tmp_path / "store", range(3), finished_tables)


def written(root: Path, seeds: range, tables: Tables) -> RunStore:
    store = RunStore(root)
    for seed in seeds:
        write_finished(store, f"{seed:024x}", tables(f"{seed:024x}", RunConfig(seed=seed)))  # type: ignore[arg-type]
    return store


def test_delete_asks_before_it_deletes(store: RunStore) -> None:
    where = ("delete", store.uri, "--where", "seed > 0")
    said = f"2 runs of 3 in {store.uri} match, 0 of them failed\n"
    assert ask(*where, "--dry-run").output == said
    assert refused(*where) == "delete: not confirmed, so nothing was deleted; confirm with y or --yes"
    assert ask(*where, typed="n\n").output == f"{said}Delete them? [y/N]: n\nnothing was deleted\n"
    assert len(store.statuses()) == 3
    assert ask(*where, typed="y\n").output == f"{said}Delete them? [y/N]: y\n2 runs deleted\n"
    assert list(RunStore(store.uri).statuses()) == [f"{0:024x}"]
    assert ask("delete", store.uri, "--where", "seed == 0", "--yes").output.endswith("1 run deleted\n")
    assert RunStore(store.uri).statuses() == {}


def test_merge_copies_runs(store: RunStore, tmp_path: Path, finished_tables: Tables) -> None:
    other = written(tmp_path / "other", range(2, 6), finished_tables)
    assert ask("merge", store.uri, other.uri).output == f"3 runs copied into {store.uri}\n"
    assert len(RunStore(store.uri).statuses()) == 6
    before = set((tmp_path / "other" / "curves").iterdir())
    written(tmp_path / "other", range(6, 7), finished_tables)
    (new,) = set((tmp_path / "other" / "curves").iterdir()) - before
    new.unlink()
    said = (
        f"0 runs copied into {store.uri}\n1 run not copied: incomplete in {other.uri}, see {other.command('check')}\n"
    )
    assert f"--results {other.uri}\n" in said
    assert ask("merge", store.uri, other.uri).output == said
    assert refused("merge", store.uri, store.uri) == f"merge {store.uri} with {store.uri}: they are one store; give two"


def test_merge_parts(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused("merge", store.uri) == "merge: expected a store OTHER to copy from, or --parts"
    assert refused("merge", store.uri, "other", "--parts") == "merge: expected a store OTHER to copy from, or --parts"
    before = store.read("curves")

    def refuse(*arguments: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as context:
        context.setattr("clops_sweep.store.files.Files.write", refuse)
        assert refused("merge", store.uri, "--parts") == (
            f"results {store.uri}: cannot be written to (Read-only file system); nothing is lost, repeat the command"
        )
    assert ask("merge", store.uri, "--parts").output == "3 parts merged\n"
    assert ask("merge", store.uri, "--parts").output == "0 parts merged\n"
    assert RunStore(store.uri).read("curves").equals(before)


@pytest.mark.parametrize("words", [("merge", "--parts"), ("delete", "--yes", "--where", "seed < 2")])
def test_a_missing_file_is_no_disk_that_cannot_be_written_to(store: RunStore, words: tuple[str, ...]) -> None:
    gone = sorted(Path(store.uri, "r_matrix").iterdir())[1]
    gone.unlink()
    assert refused(words[0], store.uri, *words[1:]) == (
        f"{gone}: is missing; a launch computes the requested runs in it again"
    )
