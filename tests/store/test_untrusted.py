"""A store is only data: nothing in it is executed, and no name leads out of it."""

from __future__ import annotations

import base64
import io
import os
import pickle
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
from tests.conftest import Tables
from tests.helpers.stores import write_finished

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
