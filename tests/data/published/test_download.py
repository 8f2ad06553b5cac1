"""`clops-sweep data download`, run whole against a local server that answers like PhysioNet."""

from __future__ import annotations

import json
import re
import stat
from functools import partial
from pathlib import Path

import pytest

from clops_sweep.data.published import download as downloads
from tests.cli.documented import documented
from tests.conftest import Command
from tests.data.conftest import PROXIES
from tests.data.physionet_server import PhysioNet

EVERYTHING = {
    "mitbih": {"mitdb": r"RECORDS|SHA256SUMS\.txt|10\d\.(hea|dat|atr)"},
    "mitbih_vfdb": {
        "mitdb": r"RECORDS|SHA256SUMS\.txt|10\d\.(hea|dat|atr)",
        "vfdb": r"RECORDS|SHA256SUMS\.txt|4\d\d\.(hea|dat|atr)",
    },
    "ptbxl": {
        "ptbxl": r"LICENSE\.txt|SHA256SUMS\.txt|(ptbxl_database|scp_statements)\.csv|records500/00000/0.*_hr\.(hea|dat)"
    },
    "physionet2020": {"challenge-2020": r"SHA256SUMS\.txt|training/cpsc_2018/g[12]/A\d{4}\.(hea|mat)"},
}
"""The expected files, by folder under the data root."""

PROJECTS = {
    "mitdb": "mitdb/1.0.0",
    "vfdb": "vfdb/1.0.0",
    "ptbxl": "ptb-xl/1.0.3",
    "challenge-2020": "challenge-2020/1.0.2",
}
RECORDS = {"mitbih": 6, "mitbih_vfdb": 10, "ptbxl": 30, "physionet2020": 18}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_process: Command) -> Command:
    """Run `clops-sweep data COMMAND NAME` on a data root of this test."""
    monkeypatch.setenv("CLOPS_DATA_ROOT", str(tmp_path / "data"))
    monkeypatch.setenv("CLOPS_PREPARED_ROOT", str(tmp_path / "prepared"))
    monkeypatch.setattr(downloads, "RETRIES", 0)
    return partial(in_process, "data")


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _expected(published: Path, name: str) -> dict[str, bytes]:
    return {
        f"{folder}/{file}": content
        for folder, pattern in EVERYTHING[name].items()
        for file, content in _files(published / PROJECTS[folder]).items()
        if re.fullmatch(pattern, file)
    }


def _state(name: str, shown: str) -> str:
    return next(line.split()[1] for line in shown.splitlines() if line.split()[:1] == [name])


@pytest.mark.parametrize("name", EVERYTHING)
def test_from_nothing_to_prepared_frames(
    name: str, physionet: PhysioNet, published: Path, tmp_path: Path, run: Command
) -> None:
    root, expected = tmp_path / "data", _expected(published, name)
    root.mkdir()
    assert _state(name, run("list").stdout) == "absent"
    root.rmdir()
    done = run("download", name)
    assert done.returncode == 0
    assert done.stderr == "".join(f"downloading {folder} ...\n" for folder in EVERYTHING[name])
    assert done.stdout == "".join(f"{name}: in {root / folder}\n" for folder in EVERYTHING[name])
    assert _files(root) == expected
    physionet.fetched()

    printed = json.loads(run("download", name, "--json").stdout)
    assert set(printed) == documented("data download")
    assert printed["folders"] == [str(root / folder) for folder in EVERYTHING[name]]
    assert physionet.fetched() == set()

    cut, gone, other, longer = sorted(path for path in root.rglob("*") if path.suffix in (".dat", ".mat"))[-4:]
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 3])
    gone.unlink()
    other.write_bytes(other.read_bytes()[:-1] + bytes([other.read_bytes()[-1] ^ 1]))
    longer.write_bytes(longer.read_bytes() + b"\0")
    said = run("verify", name)
    assert said.returncode == 2
    assert gone.name in said.stderr
    assert f"{other}: its SHA-256 is not the publisher's; download it again" in said.stderr
    assert run("download", name).returncode == 0
    assert _files(root) == expected
    assert {Path(file).name for file in physionet.fetched()} == {cut.name, gone.name, other.name, longer.name}
    assert stat.filemode(cut.stat().st_mode) == "-rw-r--r--"

    assert _state(name, run("list").stdout) == "raw"
    prepared = run("prepare", name)
    assert prepared.returncode == 0, prepared.stderr
    assert _state(name, run("list").stdout) == "prepared"
    verified = run("verify", name)
    assert verified.returncode == 0, verified.stderr
    assert f"{name}: {RECORDS[name]} records are intact\n" in verified.stdout
    of_frames = [file for file in expected if file.endswith((".hea", ".dat", ".atr", ".mat", ".csv"))]
    assert f"{name}: {len(of_frames)} files have the publisher's SHA-256\n" in verified.stdout
    assert f"{name}: the prepared frames are intact and match these files\n" in verified.stdout


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_server_that_dies_is_one_sentence_and_the_next_call_goes_on(
    name: str, physionet: PhysioNet, published: Path, tmp_path: Path, run: Command
) -> None:
    physionet.dies_after = 12
    died = run("download", name)
    assert died.returncode == 2
    assert re.fullmatch(
        r"(downloading [\w-]+ \.\.\.\n)+"
        r"clops-sweep: physionet\.org (cannot be reached|did not send \S+) \(\w+\); check the network and run the "
        r"same command again, it goes on where it stopped\n",
        died.stderr,
    )
    expected, there = _expected(published, name), _files(tmp_path / "data")
    assert 0 < len(there) < len(expected)
    assert there.items() <= expected.items()
    prepared = run("prepare", name)
    assert prepared.returncode == 2
    assert "download" in prepared.stderr
    assert not [*(tmp_path / "prepared").glob("*")]

    physionet.dies_after = None
    physionet.fetched()
    assert run("download", name).returncode == 0
    assert _files(tmp_path / "data") == expected
    again = physionet.fetched() & {f"{PROJECTS[file.split('/')[0]]}/{file.split('/', 1)[1]}" for file in there}
    assert not again


@pytest.mark.parametrize("name", EVERYTHING)
def test_without_a_network_one_sentence(
    name: str, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in PROXIES:
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    said = run("download", name)
    assert said.returncode == 2
    assert re.fullmatch(
        r"clops-sweep: physionet\.org cannot be reached \(\w+\); check .* goes on where it stopped\n", said.stderr
    )
