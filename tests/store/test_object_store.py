"""A store on an S3 server on the loopback interface: its content, and the number of requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner

from clops_sweep import OptunaSearch, RunConfig, SearchSpace
from clops_sweep.cli.commands import command
from clops_sweep.errors import UsageError
from clops_sweep.execution.feeding.only_driver import only_driver
from clops_sweep.experiment.events import Progress
from clops_sweep.store.checkpoint import CheckpointFile
from clops_sweep.store.launches import LaunchFile, UnderWay, runs_under_way
from clops_sweep.store.run_store import RunStore
from clops_sweep.testing import tiny_config
from tests.conftest import Tables
from tests.helpers.s3_server import serving_s3
from tests.helpers.stores import record_failure, write_finished

BUCKET = "results-of-tests"


@dataclass
class Server:
    """A server, and its requests as method and path."""

    port: int = 0
    requests: list[str] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)  # answers to the next requests

    def store(self, name: str) -> RunStore:
        """A new store; the requests to open it are not counted."""
        store = RunStore(f"s3://{BUCKET}/{name}?endpoint_override=127.0.0.1:{self.port}&scheme=http&region=us-east-1")
        self.requests.clear()
        return store

    def count(self) -> int:
        """Return the number of requests since the last call."""
        count = len(self.requests)
        self.requests.clear()
        return count


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    with serving_s3(BUCKET, server.requests.append, lambda: server.faults.pop() if server.faults else 0) as server.port:
        yield server


def _id(number: int) -> str:
    return f"{number:024x}"


@pytest.mark.parametrize("status", [pytest.param(500, marks=pytest.mark.nightly), 503])
def test_a_sweep_waits_for_a_server_that_is_busy(server: Server, status: int) -> None:
    files = server.store(f"busy-{status}").files
    server.faults[:] = [status] * 5
    with pytest.raises(OSError, match="PutObject"):
        files.write(f"{files.root}/file", b"content")
    files.retry_longer()
    server.faults[:] = [status] * 5
    files.write(f"{files.root}/file", b"content")
    assert not server.faults
    assert files.read(f"{files.root}/file").to_pybytes() == b"content"


def test_objects_of_any_size_are_written_whole(server: Server) -> None:
    store = server.store("sizes")
    store.open_for_writing()
    for size in (0, 1, 11 * 2**20):  # the last one is uploaded in parts
        content = bytes(range(256)) * (size // 256) if size > 1 else b"x" * size
        store.files.write(f"{store.work_folder}/{size}", content)
        assert store.files.read(f"{store.work_folder}/{size}").to_pybytes() == content
    with pytest.raises(UsageError, match="cannot be written to"):
        RunStore(store.uri.replace(BUCKET, "no-such-bucket")).open_for_writing()


def test_a_failure_and_a_checkpoint_that_are_there_go(server: Server, finished_tables: Tables) -> None:
    store, tables = server.store("retried"), finished_tables(_id(1), RunConfig())
    record_failure(store, {_id(1): RunConfig()}, "ValueError: no", lambda _: "0", {})
    checkpoint = CheckpointFile(store, _id(1))
    checkpoint.save({"epoch": 3})
    store = server.store("retried")
    checkpoint = CheckpointFile(store, _id(1))
    assert checkpoint.load() == {"epoch": 3}
    write_finished(store, _id(1), tables)
    store.files.delete([checkpoint.path])
    assert store.statuses() == {_id(1): "finished"}
    assert len(store.files.names(store.folder("runs"))) == 1
    assert store.files.names(store.checkpoint_folder) == []


SECRET = "wJalrXUtnFEMI"


_COMMANDS = [
    ["status"], ["status", "--json"], ["show", _id(1)], ["show", _id(1), "--json"], ["show", "7"], ["check"],
    ["claims"], ["claims", "--json"], ["logs", _id(1)], ["report", "--output", "{report}"], ["doctor"],
]  # fmt: skip


@pytest.mark.parametrize("arguments", _COMMANDS, ids=" ".join)
@pytest.mark.nightly
def test_no_command_prints_the_secret_in_an_address(
    server: Server, finished_tables: Tables, tmp_path: Path, arguments: list[str]
) -> None:
    write_finished(server.store("shown"), _id(1), finished_tables(_id(1), RunConfig()))
    given = [argument.format(report=tmp_path / "report") for argument in arguments]
    done = CliRunner().invoke(command, [*given, "--results", _with_secret(server, BUCKET)])
    assert SECRET not in f"{done.output} {done.exception}"
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in content for content in written)
    assert bool(written) == (arguments[0] == "report")


def _with_secret(server: Server, bucket: str) -> str:
    place = f"endpoint_override=127.0.0.1:{server.port}&scheme=http&region=us-east-1"
    return f"s3://key:{SECRET}@{bucket}/shown?{place}"


def test_launches_are_seen(server: Server) -> None:
    store = server.store("launches")
    first = LaunchFile(store)
    first.begin([_id(0), _id(1)])
    first.write([UnderWay(_id(0), "first, seed 0", Progress(1, "a", 2, 3, 4))])
    with pytest.raises(UsageError, match="is computing 1 run of these"):
        LaunchFile(store).begin([_id(1)])
    assert [it.name for it in runs_under_way(store)] == ["first, seed 0"]
    first.remove()
    assert runs_under_way(store) == ()


def test_searches_of_one_name_in_two_stores_have_a_driver_each(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    search = OptunaSearch({"learning_rate": (1e-4, 1e-2)}, n_trials=2)
    space = SearchSpace("same", tiny_config("class_il"), search=search)
    first, second = server.store("first"), server.store("second")
    with only_driver(space, first):
        with only_driver(space, second):
            pass
        with pytest.raises(UsageError, match="another driver"), only_driver(space, first):
            pass
