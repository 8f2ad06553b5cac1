"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, in a program of their own."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from clops_sweep import native

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "clops_sweep" / "native" / "src"
VARIANTS = {
    "baseline": (4, []),
    "avx2": (8, ["-mavx2", "-mfma"]),
    "avx512": (16, ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"]),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_kernels_touch_nothing_that_is_not_theirs(variant: str, tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ to build the sanitized program with")
    if variant != "baseline" and (platform.machine() != "x86_64" or variant not in native.available()):
        pytest.skip(f"this CPU cannot run {variant}")
    lanes, options = VARIANTS[variant]
    program = tmp_path / "sanitized"
    command = [
        compiler,
        "-std=c++20",
        "-O0",
        "-g1",
        "-ffp-contract=off",
        "-Wno-psabi",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        "-fsanitize-undefined-trap-on-error",  # without words for each place it compiles in three quarters of the time
        f"-DCLOPS_VARIANT={variant}",
        f"-DCLOPS_LANES={lanes}",
        f"-I{SOURCES}",
        *options,
        str(HERE / "sanitized.cpp"),
        str(SOURCES / "variant.cpp"),
        "-o",
        str(program),
    ]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode != 0 and "cannot find" in built.stderr:
        pytest.skip("this compiler comes without the sanitizers' libraries")
    assert built.returncode == 0, built.stderr
    ran = subprocess.run([str(program)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "done"
