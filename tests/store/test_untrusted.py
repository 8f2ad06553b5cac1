"""A store is only data: nothing in it is executed, and no name leads out of it."""

from __future__ import annotations

import base64
import io
import os
import pickle
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from clops_sweep import RunConfig
from clops_sweep.cli.command import main
from clops_sweep.store.checkpoint import CheckpointFile, sealed
from clops_sweep.store.parts import encoded, named
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS
from tests.helpers.stores import write_finished

Tables = Callable[..., dict[str, pa.Table]]
Command = Callable[..., tuple[object, str, str]]

A = "a" * 24


@pytest.fixture
def place(tmp_path: Path, finished_tables: Tables) -> Path:
    """A folder with a store two levels down, and files around it that must not change."""
    (tmp_path / "outside.parquet").write_text("outside")
    place = tmp_path / "work"
    write_finished(RunStore(place / "results"), A, finished_tables(A, RunConfig()))
    (place / "finished-x.parquet").write_text("beside")
    return place


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


HOSTILE = [
    "../../outside",
    f"../runs/finished-{A}",
    "/etc/passwd",
    "..",
    "*",
    "~root",
    "%2e%2e%2fx",
    "a\nb",
    "x" * 100_000,
    "a\x1b[2J",
    "",
    "a\0b",
]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], prepared_root: Path) -> Command:
    """Run the command in this process; return exit status, standard output and standard error."""
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))

    def run(*arguments: object) -> tuple[object, str, str]:
        status: object = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            status = ended.code
        return status, *capsys.readouterr()

    return run


@pytest.mark.parametrize("name", [*HOSTILE, "\u202e", "\udcff"], ids=lambda name: ascii(name)[:20])
@pytest.mark.parametrize("verb", ["show", "rerun"])
def test_a_run_id_that_is_none_is_refused(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command, verb: str, name: str
) -> None:
    monkeypatch.chdir(place)
    before = _tree(tmp_path)
    status, output, errors = command(verb, "--", name)
    assert (status, output) == (2, "")
    assert errors.startswith("clops-sweep: run ")
    assert errors.removesuffix("\n").isprintable()
    assert len(errors) < 300
    assert _tree(tmp_path) == before


@pytest.mark.parametrize("name", ["../up", "/absolute", "a/b", "..", ".hidden", "", "nul\0", "back\\slash"], ids=ascii)
def test_a_name_of_a_search_space_stays_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command, name: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    head = "from clops_sweep import RunConfig, SearchSpace\n"
    (place / "space.py").write_text(head + f"SPACE = SearchSpace(name={name!r}, base=RunConfig(), seeds=[0])\n")
    before = _tree(tmp_path)
    status, output, errors = command("report", "space.py")
    assert (status, output) == (2, "")
    assert errors.startswith("clops-sweep: space.py: search space name ")
    assert _tree(tmp_path) == before


@pytest.fixture(params=["fifo", "device", "loop", "folder"])
def put(request: pytest.FixtureRequest) -> Callable[[Path], None]:
    """Put something other than a regular file where a file belongs."""

    def put(path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if request.param == "fifo":
            os.mkfifo(path)
        elif request.param == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/zero" if request.param == "device" else path)

    return put


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["runs/{stem}-0123456789abcdef.parquet", "curves/{part}"])
def test_what_is_no_file_is_no_part(place: Path, command: Command, put: Callable[[Path], None], name: str) -> None:
    results = place / "results"
    (part,) = (path.name for path in (results / "curves").iterdir())
    put(results / name.format(stem=RunStore(results).next_stem(), part=part))
    for arguments in (["status"], ["show", A], ["check"], ["claims"]):
        status, output, errors = command(*arguments, "--results", results)
        assert status in (0, 1, 2)
        assert "Traceback" not in output + errors
        assert errors.count("\n") <= 1


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = place / "finished-x.parquet"
    monkeypatch.setattr("clops_sweep.data.files.folder.secrets.token_hex", lambda size: "0" * 2 * size)
    final = place / "results" / "runs" / "new"
    beside = final.parent / f".{final.name}.{socket.gethostname()}.{'0' * 8}.partial"
    beside.symlink_to(outside)
    with pytest.raises(FileExistsError):
        RunStore(place / "results").files.write(str(final), b"content")
    assert outside.read_text() == "beside"
    assert not final.exists()


def test_a_user_without_rights_reads_a_store_and_writes_nothing(
    place: Path, without_privilege: list[str], console_script: str
) -> None:
    results = place / "results"
    for path in (results, *results.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = _tree(results)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*without_privilege, console_script, *arguments, "--results", str(results)]
        return subprocess.run(command, capture_output=True, text=True, cwd=place)

    for arguments in (["status"], ["show", A], ["check"]):
        done = run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
    assert _tree(results) == before
    (place / "space.py").write_text(
        'from clops_sweep import RunConfig, SearchSpace\nSPACE = SearchSpace("s", RunConfig(), seeds=[0])\n'
    )
    refused = run("space.py")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"clops-sweep: results {results}") or "permission" in refused.stderr.lower()
    assert "Traceback" not in refused.stderr
    assert _tree(results) == before
    for path in (results, *results.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


# --- nothing is executed ----------------------------------------------------------------------------------------------


class _Malice:
    """Creates a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("form", ["pickle", "torch", "torch, in a dictionary"])
def test_a_checkpoint_that_would_execute_something_is_none(tmp_path: Path, form: str) -> None:
    marker = tmp_path / "executed"
    checkpoint = CheckpointFile(RunStore(tmp_path), [A])
    checkpoint.save({"task": 1, "tensor": torch.arange(3)})
    assert checkpoint.load() is not None
    if form == "pickle":
        content = pickle.dumps(_Malice(marker), protocol=2)
    else:
        buffer = io.BytesIO()
        torch.save(_Malice(marker) if form == "torch" else {"run_ids": [A], "more": _Malice(marker)}, buffer)
        content = buffer.getvalue()
    Path(checkpoint.path).write_bytes(sealed(content))
    assert checkpoint.load() is None
    assert not marker.exists()
    torch.load(checkpoint.path, weights_only=False) if form != "pickle" else pickle.loads(
        Path(checkpoint.path).read_bytes()
    )
    assert marker.exists(), "it would not have executed anything anyway"


def test_a_part_with_a_pickled_type_is_read_as_data(tmp_path: Path, finished_tables: Tables) -> None:
    """Arrow schemas may name an extension type that is a pickle; older pyarrow loaded it."""
    marker = tmp_path / "executed"
    store = RunStore(tmp_path / "results")
    store.open_for_writing()
    kind = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(_Malice(marker)),
    }
    fields = [field.with_metadata(kind) if field.name == "host" else field for field in SCHEMAS["runs"]]
    hostile = pa.table(finished_tables(A, RunConfig())["runs"].columns, schema=pa.schema(fields))
    content = encoded(hostile, {"files": {}, "predicted": [], "replaces": []})
    (tmp_path / "results" / "runs" / named(store.next_stem(), content)).write_bytes(content)
    stored = base64.b64decode(pq.read_metadata(pa.BufferReader(content)).metadata[b"ARROW:schema"])
    assert b"arrow.py_extension_type" in stored
    assert b"executed" in stored
    assert RunStore(tmp_path / "results").read("runs")["run_id"].tolist() == [A]
    assert pd.read_parquet(tmp_path / "results" / "runs")["run_id"].tolist() == [A]
    write_finished(store, "b" * 24, finished_tables("b" * 24, RunConfig()))
    assert len(store.read("runs")) == 2
    assert not marker.exists()
