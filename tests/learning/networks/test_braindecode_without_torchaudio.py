"""braindecode imports torchaudio, which may be missing, or may not load beside another build of PyTorch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SPACE = """
from clops_sweep import RunConfig, SearchSpace
BASE = RunConfig(scenario="time_il", leads="all", network="braindecode:TinyNet")
SPACE = SearchSpace("tiny", BASE, seeds=range(1))
"""
PROGRAM = """
import json, sys
from click.testing import CliRunner
from clops_sweep.cli.commands import command
found = []
for arguments in (["doctor", "--json"], ["plan", "space.py"], ["status", "space.py"]):
    result = CliRunner().invoke(command, arguments)
    found.append([result.output, repr(result.exception)])
print(json.dumps(found))
"""
MODELS = "import torchaudio\nfrom .tiny import TinyNet\n"
TINY = """
from .base import EEGModuleMixin
class TinyNet(EEGModuleMixin):
    def __init__(self, n_chans=None, n_outputs=None, n_times=None, F1=8): ...
"""
DOES_NOT_LOAD = "raise OSError('libc10_cuda.so: cannot open shared object file: No such file or directory')"


@pytest.mark.parametrize(
    ("torchaudio", "expected"),
    [
        (None, "which is not installed; install it from the package index that torch "),
        (DOES_NOT_LOAD, "(libc10_cuda.so: cannot open shared object file: No such file or directory); install both"),
    ],
)
@pytest.mark.nightly
def test_doctor_and_plan_say_what_to_install(
    torchaudio: str | None, expected: str, tmp_path: Path, prepared_root: Path
) -> None:
    models = tmp_path / "packages" / "braindecode" / "models"
    models.mkdir(parents=True)
    (models.parent / "__init__.py").touch()
    (models / "__init__.py").write_text(MODELS)
    (models / "tiny.py").write_text(TINY)
    facts = models.parents[1] / "braindecode-1.8.1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: braindecode\nVersion: 1.8.1\n")
    program = PROGRAM
    if torchaudio is None:
        program = f"import sys\nsys.modules['torchaudio'] = None\n{PROGRAM}"  # as if it were not installed
    else:
        (models.parents[1] / "torchaudio.py").write_text(torchaudio)
    (tmp_path / "space.py").write_text(SPACE)
    environment = os.environ | {"PYTHONPATH": str(models.parents[1]), "CLOPS_PREPARED_ROOT": str(prepared_root)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    (doctor, _), (_, refused), (status, _) = json.loads(done.stdout)
    assert json.loads(doctor)["braindecode"] == "1.8.1"
    assert expected in json.loads(doctor)["braindecode_missing"]
    assert refused.startswith("UsageError(\"network 'braindecode:TinyNet': braindecode needs torchaudio, which")
    assert expected in refused
    assert "1 run asked for" in status  # does not try networks
