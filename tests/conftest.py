"""What the tests share: one thread, prepared data in a temporary folder, real data where they are at hand."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pyarrow as pa
import pytest

from clops_sweep import RunConfig, native
from tests.helpers import few_records, quick_fonts  # noqa: F401, for all data and reports of this process
from tests.helpers.preloaded import COMMANDS, SWEEPS, Preloaded

if TYPE_CHECKING:
    from clops_sweep.data.prepared.prepared_folder import PreparedSet

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each command that a test starts would compile the package anew
if not native.available():  # as a choice, which says nothing; every launch would warn otherwise
    os.environ[native.ENVIRONMENT] = "off"

hypothesis.settings.register_profile("unhurried", deadline=None)  # how long an example takes depends on what else runs
hypothesis.settings.load_profile("unhurried")

gc.disable()  # while tests are collected: millions of objects are made, and all of them stay

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a script; what tests start is to hear it
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SHARED_MEMORY, _ROOM = "/dev/shm", 2**31
MEMORY = (
    _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) and shutil.disk_usage(_SHARED_MEMORY).free > _ROOM else None
)
"""A file system in memory, for tests that would mostly wait for the disk; None where there is none with enough room."""

SHARED_SWEEPS = [f"test_{name}.py" for name in ("nodes", "plugins", "undisturbed", "face", "readme", "tutorials")]


def pytest_configure() -> None:
    """Temporary folders lie in memory: a run that is recorded waits for the disk ten times."""
    if MEMORY is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)


WITH_RAY = {"ray_at_hand", "forked"}
"""Fixtures whose tests wait for a Ray to start, and for its workers; a busy machine may take minutes."""

FIXTURES = {"browser": {"chromium"}, "data": {"data_root"}}
"""The marker of tests that use a fixture."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by folder and fixture, those without a mark as core; leave those out that are not in the slice.

    CLOPS_SLICE=K/N takes the K-th of N parts, which are about as long: a test is in one by its name.
    """
    for item in items:
        for name, fixtures in FIXTURES.items():
            if fixtures.intersection(getattr(item, "fixturenames", ())):
                item.add_marker(name)
        if WITH_RAY.intersection(getattr(item, "fixturenames", ())) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))
        if "tests/execution/cluster/" in item.nodeid:
            item.add_marker("cluster")
        if not any(item.get_closest_marker(name) for name in ("cluster", "browser", "data", "nightly")):
            item.add_marker("core")
    part, _, parts = os.environ.get("CLOPS_SLICE", "1/1").partition("/")
    inside = [zlib.crc32(item.nodeid.partition("[")[0].encode()) % int(parts) == int(part) - 1 for item in items]
    config.hook.pytest_deselected(items=[item for item, kept in zip(items, inside, strict=True) if not kept])
    items[:] = [item for item, kept in zip(items, inside, strict=True) if kept]
    _sweeps_first(items)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A test that is skipped for want of what CLOPS_REQUIRE names, a marker or a package, has failed."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    required = [name for name in os.environ.get("CLOPS_REQUIRE", "").split(",") if name]
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    if reason and any(item.get_closest_marker(name) or name in reason for name in required):
        report.outcome, report.longrepr = "failed", f"CLOPS_REQUIRE={','.join(required)}, but {reason}"


def _sweeps_first(items: list[pytest.Item]) -> None:
    """Whole sweeps first: they take long and mostly wait for Ray, while another process computes what comes behind.

    Of those the ones whose tests share a sweep, which would be run twice if a second process took some of them over,
    and those that lie elsewhere: the process that has begun with sweeps has a Ray for them.
    """

    def place(item: pytest.Item) -> int:
        sweeps = "tests/execution/" in item.nodeid
        return 0 if item.path.name in SHARED_SWEEPS and (sweeps or item.path.parent.name == "tests") else 2 - sweeps

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Keep what is imported and collected by now out of the collector's way: it stays until the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Remove what tests of this process have written once for all of them: workers of xdist end without clearing up."""
    for folder in Path(tempfile.gettempdir()).glob(f"clops-sweep-test-{os.getpid()}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def prepare_once(name: str, prepared_root: Path, data_root: Path | None = None) -> PreparedSet:
    """Prepares a data set that several processes of the tests want: one of them does it, and others wait.

    By itself: processes to read records with would take longer to start than they save.
    """
    from clops_sweep.data.preparing.prepare import prepare

    prepared_root.mkdir(exist_ok=True)
    with open(prepared_root.with_name(f"{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return prepare(name, prepared_root=prepared_root, data_root=data_root, workers=1)


@pytest.fixture(scope="session")
def prepared_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this session's prepared data sets live, for all its processes; `synthetic` is prepared once."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prepared"
    prepare_once("synthetic", root)
    return root


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Real data as their publishers ship them; the test is skipped where there are none."""
    folder = os.environ.get("CLOPS_DATA_ROOT")
    if folder is None:
        pytest.skip("no real data at hand: set CLOPS_DATA_ROOT to the folder that holds them")
    return Path(folder)


@pytest.fixture(scope="session")
def console_script() -> str:
    """The installed command `clops-sweep`."""
    beside = Path(sys.executable).with_name("clops-sweep")
    found = str(beside) if beside.exists() else shutil.which("clops-sweep")
    assert found, "clops-sweep is not installed: pip install -e '.[test]'"
    return found


@pytest.fixture(scope="session")
def environment(prepared_root: Path) -> dict[str, str]:
    """The environment of every command that a test starts."""
    return {
        **{name: value for name, value in os.environ.items() if name != "CLOPS_DATA_ROOT"},
        "CLOPS_PREPARED_ROOT": str(prepared_root),
        "COLUMNS": "200",
    }


@pytest.fixture(scope="session")
def ray_at_hand(environment: dict[str, str], commands: Preloaded) -> Iterator[dict[str, str]]:
    """The environment of launches that attach to a Ray that is there for all tests of this process."""
    from tests.helpers.launching import running_ray

    with running_ray(environment, commands) as found:
        yield found


@pytest.fixture(scope="session")
def drivers(ray_at_hand: dict[str, str], commands: Preloaded) -> Iterator[Preloaded]:
    """Starts launches that attach to that Ray and begin with all imported."""
    preloaded = Preloaded(ray_at_hand, SWEEPS, commands)
    yield preloaded
    preloaded.close()


Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def commands(environment: dict[str, str]) -> Iterator[Preloaded]:
    """Starts commands that begin with all imported."""
    preloaded = Preloaded(environment, COMMANDS)
    yield preloaded
    preloaded.close()


@pytest.fixture(scope="session")
def forked(environment: dict[str, str], commands: Preloaded) -> Iterator[Preloaded]:
    """Starts launches that start a Ray of their own; they begin with what they need imported."""
    preloaded = Preloaded(environment | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}, SWEEPS, commands)
    yield preloaded
    preloaded.close()


@pytest.fixture
def clops_sweep(console_script: str, environment: dict[str, str], tmp_path: Path, commands: Preloaded) -> Command:
    """Runs the command in the test's folder, as a user would, and waits for it."""

    def run(*arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
        if not any(name.startswith("PYTHON") for name in changes):  # what a Python goes by when it starts
            return commands.run(tmp_path, environment | changes, *map(str, arguments))
        return subprocess.run(
            [console_script, *map(str, arguments)],
            cwd=tmp_path,
            env=environment | changes,
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )

    return run


@pytest.fixture
def in_process(capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs the command in this process: a hundred times faster than as one of its own."""
    from clops_sweep.cli.command import main

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        return subprocess.CompletedProcess(arguments, int(ended.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture
def unpainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are not drawn: for tests of words and rows, on figures whose like others look at."""
    from clops_sweep.analysis.drawing.pictures import Sketch
    from tests.helpers.unpainted import unpainted as empty

    monkeypatch.setattr(Sketch, "drawn", empty)


Tables = Callable[..., dict[str, pa.Table]]


@pytest.fixture(scope="session")
def finished_tables() -> Tables:
    """Makes the four tables of a finished run of six tasks, as a worker would hand them to the store."""

    def make(run_id: str, config: RunConfig, auc: float = 0.75, instances: int = 3) -> dict[str, pa.Table]:
        from clops_sweep.experiment.columns import config_row
        from clops_sweep.experiment.config import SEMANTICS_VERSION
        from clops_sweep.experiment.metrics import METRICS
        from clops_sweep.store.tables import SCHEMAS

        metrics = {prefix + metric: auc for prefix in ("", "test_") for metric in METRICS}
        metrics |= {"seconds": 2.5, "seconds_train": 1.0, "seconds_acquire": 1.0, "seconds_evaluate": 0.5}
        rows: dict[str, list[dict[str, object]]] = {
            "runs": [
                {"run_id": run_id, **config_row(config), "status": "finished", **metrics}
                | {"data_hash": "0" * 64, "semantics_version": SEMANTICS_VERSION}
            ],
            "r_matrix": [
                {"run_id": run_id, "split": "validation", "trained_on": i, "evaluated_on": j, "task": f"task {j}"}
                | {"auc": auc}
                for i in range(1, 7)
                for j in range(1, 7)
            ],
            "curves": [
                {"run_id": run_id, "epoch": k, "training_task": f"task {k}", "task": f"task {k}", "auc": auc}
                for k in range(1, 7)
            ],
            "instances": [{"run_id": run_id, "instance": row, "stored": row == 0} for row in range(instances)],
        }
        return {name: pa.Table.from_pylist(found, schema=SCHEMAS[name]) for name, found in rows.items()}

    return make
