"""The command as a user meets it: exit statuses, one sentence for whatever is wrong, and nothing started then."""

from __future__ import annotations

import json
import os
import re
import resource
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch

from clops_sweep import RunConfig, __version__
from clops_sweep.cli.command import main
from clops_sweep.data.preparing.prepare import data_hash
from clops_sweep.experiment.columns import config_row
from clops_sweep.store.run_store import RunStore
from clops_sweep.store.tables import SCHEMAS
from tests.helpers.stores import write_failed, write_finished

Command = Callable[..., "subprocess.CompletedProcess[str]"]
Tables = Callable[..., dict[str, pa.Table]]

HEAD = "from clops_sweep import RunConfig, SearchSpace\n"
GOOD = (
    HEAD
    + """
SPACE = SearchSpace(
    name="good", base=RunConfig(), axes={"storage_fraction": [0.1, 0.5], "mc_samples": [5, 10]}, seeds=range(3)
)
"""
)


def _id(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else str(value)[-24:]


@pytest.fixture
def space(tmp_path: Path) -> Path:
    (tmp_path / "space.py").write_text(GOOD)
    return tmp_path / "space.py"


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, prepared_root: Path
) -> Command:
    """Like `clops_sweep`, but inside this process: a hundred times faster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(prepared_root))
    monkeypatch.delenv("CLOPS_DATA_ROOT", raising=False)

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        status: object = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as error:
            status = error.code
        assert isinstance(status, int)
        output, errors = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, status, output, errors)

    return run


def _refused(done: subprocess.CompletedProcess[str], sentence: str, folder: Path) -> None:
    """Exit status 2, one sentence on standard error that begins like `sentence`, and nothing started."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"clops-sweep: {sentence}"), done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert not list(folder.rglob(".work")), "the sweep had been started"
    assert not list(folder.rglob("*.parquet"))


# --- wrong input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (HEAD + "RunConfig(storage_fracton=0.5)", "space.py: unknown key 'storage_fracton' (did you mean"),
        (
            HEAD + "RunConfig(storage_fraction=1.5)",
            "space.py: storage_fraction = 1.5: expected a number, more than 0 and at most 1",
        ),
        (
            HEAD + "SPACE = SearchSpace(name='s', base=RunConfig(), axes={'storage_fraction': []})",
            "space.py: search space 's', axis 'storage_fraction' has no values",
        ),
        ("x = 1\nraise RuntimeError('two\\nlines')", "space.py raises RuntimeError in line 2: two lines"),
        ("this is no Python", "space.py raises SyntaxError in line 1"),
        ("raise SystemExit(0)", "space.py raises SystemExit in line 1: 0"),
        ("x = 1", "space.py defines no SPACE; expected SPACE = SearchSpace(...)"),
        (
            HEAD + "SPACE = SearchSpace(name='s', base=RunConfig(), where=lambda config: False)",
            "space.py: no run is left to ask for",
        ),
        (
            HEAD + "SPACE = SearchSpace(name='s', base=RunConfig(dataset='cardiology'))",
            "cardiology needs the folder that holds ",
        ),
        (
            HEAD + "SPACE = SearchSpace(name='s', base=RunConfig(task_order=(1, 0)))",
            "search space 's': task_order [1, 0]: class_il of synthetic has 6 tasks",
        ),
    ],
    ids=_id,
)
def test_a_wrong_search_space_is_refused(command: Command, tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "space.py").write_text(content)
    _refused(command("space.py"), sentence, tmp_path)


UNPREPARED = ["--prepared-root", "empty"]
"""Away from the prepared data that tests share, in which there may be anything by now."""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--set", "batch_sise=8"], "unknown key 'batch_sise' (did you mean 'batch_size'?)"),
        (["--set", "batch_size=0"], "batch_size = 0: "),
        (["--set", "batch_size"], "--set 'batch_size': expected NAME=VALUE"),
        (["--set", "storage_fraction=0.5"], "search space 'good' varies 'storage_fraction' itself; keep some of"),
        (["--set", "seed=3"], "seeds are set by the search space and by --seeds"),
        (["--set", "dataset=mitbi"], "dataset = 'mitbi': no data set of that name (did you mean 'mitbih'?)"),
        (["--where", "storage_fracton == 0.5"], "--where 'storage_fracton == 0.5': "),
        (["--where", "storage_fraction =="], "--where 'storage_fraction ==': "),
        (["--where", "storage_fraction"], "--where 'storage_fraction': "),
        (["--where", "['storage_fraction']"], "--where \"['storage_fraction']\": neither true nor false for a run"),
        (["--where", "3"], "--where '3': "),
        (["--where", "storage_fraction == 0.9"], "space.py: no run is left to ask for"),
        (["--lockstep", "0"], "Invalid value for '--lockstep': '0': expected a whole number, at least 1, or"),
        (["--lockstep", "many"], "Invalid value for '--lockstep': 'many': expected a whole number, or auto"),
        (
            ["--lockstep", "\N{SUPERSCRIPT TWO}"],
            "Invalid value for '--lockstep': '\N{SUPERSCRIPT TWO}': expected a whole number, or auto",
        ),
        (["--cpus-per-trial", "nan"], "Invalid value for '--cpus-per-trial': 'nan': expected a number"),
        (["--cpus-per-trial", "0"], "Invalid value for '--cpus-per-trial': '0': expected a number"),
        (["--gpus-per-trial", "nan"], "Invalid value for '--gpus-per-trial': 'nan': expected 0, a share from"),
        (["--gpus-per-trial", "1.5"], "Invalid value for '--gpus-per-trial': '1.5': expected 0, a share from"),
        (["--set", "batch_size=99999999999999999999"], "batch_size = 99999999999999999999: "),
        (["--results", ""], "Invalid value for '--results': it is empty"),
        (["--where", ""], "Invalid value for '--where': it is empty"),
        (["--address", ""], "Invalid value for '--address': it is empty"),
        (["--where", "storage_fraction = 0.5"], "--where 'storage_fraction = 0.5': a condition compares with == and"),
        (["--seeds", "0"], "Invalid value for '--seeds'"),
        (["--seeds", "99999999999"], "Invalid value for '--seeds'"),
        (["--results", "caf\udce9"], "results '"),
        (["--limit", "-1"], "Invalid value for '--limit'"),
        (["--retry", "all"], "Invalid value for '--retry'"),
        (["--colour"], "No such option"),
        (
            ["--set", "dataset=mitbih", *UNPREPARED, "--data-root", "nowhere"],
            "data root nowhere: there is no such folder",
        ),
        (["--set", "dataset=mitbih", *UNPREPARED], "mitbih needs the folder that holds mitdb/"),
        (["--set", "dataset=mitbih", *UNPREPARED, "--data-root", "."], "data root .: holds neither mitdb/"),
        (["--results", "space.py"], "results "),
        (["--results", "space.py/results"], "results "),
        (["--results", "gopher://results"], "results 'gopher://results': "),
    ],
    ids=_id,
)
def test_wrong_options_are_refused(
    command: Command, space: Path, tmp_path: Path, options: list[str] | str, sentence: str
) -> None:
    _refused(command(space.name, *options), sentence, tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a PyTorch that can use no GPU")
def test_a_gpu_that_pytorch_cannot_use_is_not_waited_for(command: Command, space: Path, tmp_path: Path) -> None:
    for option, value in (("--gpus-per-trial", "0.5"), ("--device", "gpu")):
        asked = option if option == "--gpus-per-trial" else "--device gpu"
        refused = command(space.name, option, value)
        _refused(refused, f"{asked}: PyTorch {torch.__version__} can use no GPU", tmp_path)


def test_files_that_are_not_there_are_refused(command: Command, tmp_path: Path) -> None:
    _refused(command("nothing.py"), "nothing.py: no such search-space file", tmp_path)
    _refused(command("nothing"), "'nothing' is neither a search-space file (*.py) nor a subcommand; ", tmp_path)


def test_the_paper_s_data_set_that_has_to_be_asked_for(command: Command, space: Path, tmp_path: Path) -> None:
    done = command(space.name, "--set", "dataset=cardiology", "--data-root", ".")
    assert done.returncode == 2
    assert "cardiology" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("damage", ["cut", "empty", "gone"])
def test_a_truncated_record_is_named(
    clops_sweep: Command, space: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, damage: str
) -> None:
    folder = tmp_path / "raw" / "mitdb"
    folder.mkdir(parents=True)
    signal = np.random.default_rng(0).normal(size=(360 * 30, 2))
    beats = np.arange(100, 360 * 30, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas has announced a change that wfdb has yet to follow
        import wfdb

        wfdb.wrsamp("100", 360, ["mV", "mV"], ["MLII", "V5"], signal, fmt=["212", "212"], write_dir=str(folder))
        notes = ["(N", *[""] * (len(beats) - 1)]
        wfdb.wrann("100", "atr", beats, ["+", *["N"] * (len(beats) - 1)], aux_note=notes, write_dir=str(folder))
    dat = folder / "100.dat"
    content = dat.read_bytes()
    dat.write_bytes({"cut": content[: len(content) // 2], "empty": b"", "gone": b""}[damage])
    if damage == "gone":
        dat.unlink()
    # Prepared elsewhere than the session's other sets: what is refused must leave nothing behind.
    prepared = tmp_path_factory.mktemp("prepared-nothing")
    done = clops_sweep(
        space.name, "--set", "dataset=mitbih", "--data-root", "raw", "--prepared-root", prepared, "--no-report"
    )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("clops-sweep: ")
    assert "100.dat" in last
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob(".work"))
    assert [path for path in prepared.rglob("*") if path.is_file() and not path.name.startswith(".")] == []


def test_a_damaged_store_is_named(command: Command, space: Path, tmp_path: Path) -> None:
    part = tmp_path / "results" / "runs" / "20260101T000000-00000000-000001-0000000000000000.parquet"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"PAR1")
    done = command("status")
    assert done.returncode == 2
    assert done.stderr.startswith(f"clops-sweep: {part}: its bytes are not those that were written there")
    assert done.stderr.count("\n") == 1


def test_a_folder_that_may_not_be_written_to_is_refused(
    console_script: str, environment: dict[str, str], without_privilege: list[str], space: Path, tmp_path: Path
) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    command = [*without_privilege, console_script, space.name, "--results", "locked/results"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    _refused(done, "results ", tmp_path)


@pytest.mark.skipif(not Path("/sys").is_dir(), reason="needs a file system without write access")
def test_a_file_system_that_cannot_be_written_to_is_refused(command: Command, space: Path, tmp_path: Path) -> None:
    done = command(space.name, "--results", "/sys/results")
    _refused(done, "results /sys/results: cannot be written to", tmp_path)


def test_a_cluster_that_does_not_answer_is_refused(clops_sweep: Command, space: Path) -> None:
    with socket.socket() as free:  # bound and not listening: nobody else takes the port, and nobody answers
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        done = clops_sweep(space.name, "--address", address)
    assert done.returncode == 2
    assert done.stderr.startswith(f"clops-sweep: --address {address}: no Ray cluster answers there")
    assert done.stderr.count("\n") == 1


def test_a_report_on_results_that_are_not_there_is_refused(space: Path, tmp_path: Path, command: Command) -> None:
    before = sorted(tmp_path.rglob("*"))
    for results in ("mistyped", space):
        done = command("report", space.name, "--results", results)
        _refused(done, f"results {tmp_path / results}: there is no such folder", tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_report_on_an_empty_folder_of_results_is_a_page(space: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "results").mkdir()
    done = command("report", space.name)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "results" / "report" / "space" / "index.html").is_file()


# --- what needs no Ray ------------------------------------------------------------------------------------------------


def test_plan_counts_what_is_asked_for(
    clops_sweep: Command, space: Path, tmp_path: Path, prepared_root: Path, finished_tables: Tables
) -> None:
    before = clops_sweep("plan", space.name)
    assert (before.returncode, before.stderr) == (0, "")
    first, device, cost = before.stdout.splitlines()
    assert first == "12 runs asked for, 0 finished, 12 pending, 0 failed"
    assert device.startswith("device: cpu")
    assert cost == "no estimate for them: no run of their kind is finished"
    assert not (tmp_path / "results").exists()

    content = data_hash("synthetic", prepared_root=prepared_root)
    assert content is not None
    store = RunStore(tmp_path / "results")
    done, failed = RunConfig(storage_fraction=0.1, mc_samples=5), RunConfig(storage_fraction=0.5, mc_samples=5)
    write_finished(store, done.run_id(content), finished_tables(done.run_id(content), done))
    row = {"run_id": failed.run_id(content), **config_row(failed), "status": "failed", "error": "a\nValueError: no"}
    write_failed(
        store,
        failed.run_id(content),
        pa.Table.from_pylist([{name: row.get(name) for name in SCHEMAS["runs"].names}], schema=SCHEMAS["runs"]),
    )
    for command in (["plan", space.name], [space.name, "--dry-run"]):
        after = clops_sweep(*command)
        assert after.returncode == 0
        first, _, second = after.stdout.splitlines()
        assert first == "12 runs asked for, 1 finished, 10 pending, 1 failed"
        assert re.fullmatch(
            r"about \d+ core-seconds, \d+ (s|min) of wall-clock time on \d+ cores? "
            "without other load; from 1 finished run of the same kind",
            second,
        ), second
    assert clops_sweep("status").stdout.splitlines() == [
        f"1 run finished, 1 failed in {tmp_path}/results",
        f"  failed {failed.run_id(content)}: ValueError: no",
        "print the output of a run with: clops-sweep logs RUN_ID",
    ]
    named = clops_sweep("status", space.name).stdout.splitlines()[-2]
    assert named == f"  failed {failed.run_id(content)}: ValueError: no  (storage_fraction 0.5, mc_samples 5, seed 0)"


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--seeds", "5"], 20),
        (["--limit", "7"], 7),
        (["--where", "storage_fraction == 0.5"], 6),
        (["--where", "storage_fraction == 0.5 and seed < 2"], 4),
        (["--set", "batch_size=8"], 12),
        (["--set", "task_order=[5,4,3,2,1,0]", "--seeds", "1"], 4),
    ],
    ids=_id,
)
def test_options_change_what_is_asked_for(command: Command, space: Path, options: list[str], count: int) -> None:
    done = command("plan", space.name, *options)
    assert done.stdout.startswith(f"{count} runs asked for, 0 finished, {count} pending")


def test_plan_says_what_is_not_prepared(command: Command, space: Path, tmp_path: Path) -> None:
    done = command("plan", space.name, "--prepared-root", "nothing", "--seeds", "1")
    assert done.returncode == 0
    assert done.stdout.startswith("4 runs asked for, 0 finished, 4 pending, 0 failed\n")
    assert "synthetic is not prepared" in done.stdout
    assert not (tmp_path / "nothing").exists()


def test_plan_loads_neither_torch_nor_ray(space: Path, environment: dict[str, str], tmp_path: Path) -> None:
    code = """
import json, sys
from clops_sweep.cli.command import main
try:
    main(["plan", "space.py"])
finally:
    print(json.dumps(sorted(set(sys.modules) & {"torch", "ray", "matplotlib"})))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []


@pytest.mark.parametrize("verb", ["status", "check", "report"])
def test_a_store_that_is_not_there_does_not_pass_for_an_empty_one(command: Command, tmp_path: Path, verb: str) -> None:
    _refused(command(verb, "--results", "mistyped"), f"results {tmp_path}/mistyped: there is no such folder", tmp_path)


def test_help_and_version(clops_sweep: Command) -> None:
    assert "\n  clops-sweep SPACE.py [options]   run all requested runs" in clops_sweep("--help").stdout
    options = clops_sweep("launch", "--help").stdout
    for name in ("--data-root", "--results", "--set", "--seeds", "--limit", "--where", "--address", "--lockstep"):
        assert name in options
    assert clops_sweep("--version").stdout == f"clops-sweep, version {__version__}\n"


def test_a_reader_that_goes_away_ends_the_command_quietly(
    console_script: str, environment: dict[str, str], tmp_path: Path
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as pipe:
        done = subprocess.run(
            [console_script, "--help"], cwd=tmp_path, env=environment, stdout=pipe, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (0, b"")


WIDE = """
from torch import nn
from clops_sweep import RunConfig, SearchSpace, encoder

@encoder("wide", channels=1, samples=2**26, adapt=["pad"])
def wide(weights):
    return nn.AdaptiveAvgPool1d(4)

SPACE = SearchSpace("s", RunConfig(encoder="wide", network="linear", strategy="finetune"), seeds=[0])
"""


@pytest.mark.parametrize(
    ("limit", "most", "arguments", "sentence"),
    [
        (
            "RLIMIT_FSIZE",
            0,
            "data prepare synthetic --prepared-root new",
            "new/synthetic: too large for the file system",
        ),
        ("RLIMIT_AS", 2**33, "wide.py --no-ray", "not enough memory (Unable to allocate"),
    ],
)
def test_a_limit_of_the_system_is_named(
    console_script: str,
    environment: dict[str, str],
    tmp_path: Path,
    limit: str,
    most: int,
    arguments: str,
    sentence: str,
) -> None:
    (tmp_path / "wide.py").write_text(WIDE)
    done = subprocess.run(
        [console_script, *arguments.split()],
        **{"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "check": False},
        preexec_fn=lambda: resource.setrlimit(getattr(resource, limit), (most, most)),
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.replace(f"{tmp_path}/", "").startswith(f"clops-sweep: {sentence}")
