"""The kernels in a program of their own: sanitized, and on ARM. They compile without warnings."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from clops_sweep import native

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "clops_sweep" / "native" / "src"
VARIANTS = {
    "baseline": (4, []),
    "avx2": (8, ["-mavx2", "-mfma"]),
    "avx512": (16, ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma"]),
}
AVAILABLE = [name for name in VARIANTS if name == "baseline" or name in native.available()]
"""Those that this CPU can run, the widest last."""

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
SANITIZED = [
    "-O0",
    "-g1",
    "-DCLOPS_INLINE=inline",  # what is always inlined would be checked, and compiled, wherever it is used
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fsanitize-undefined-trap-on-error",  # without words for each place it compiles in three quarters of the time
]


@pytest.mark.nightly
@pytest.mark.parametrize("variant", AVAILABLE)
def test_kernels_touch_nothing_that_is_not_theirs(variant: str, tmp_path: Path) -> None:
    """The sanitizers end the program at the first mistake."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ to build the sanitized program with")
    built = compiled(compiler, variant, SANITIZED, tmp_path / "sanitized")
    if built.returncode != 0 and "cannot find" in built.stderr:
        pytest.skip("this compiler comes without the sanitizers' libraries")
    assert built.returncode == 0, built.stderr
    assert np.isfinite(computed(tmp_path / "sanitized")).all()


@pytest.mark.nightly
def test_arm_computes_the_same_bits(tmp_path: Path) -> None:
    here, there, emulator = (shutil.which(name) for name in ("g++", "aarch64-linux-gnu-g++", "qemu-aarch64"))
    if here is None or there is None or emulator is None:
        pytest.skip("needs g++, aarch64-linux-gnu-g++ and qemu-aarch64 (Debian: g++-aarch64-linux-gnu, qemu-user)")
    for compiler, options, name in ((here, ["-O1"], "here"), (there, ["-O1", "-static"], "of_arm")):
        built = compiled(compiler, "baseline", options, tmp_path / name)
        assert built.returncode == 0, built.stderr
    assert np.array_equal(computed(emulator, tmp_path / "of_arm"), computed(tmp_path / "here"))


@pytest.mark.nightly
@pytest.mark.parametrize("variant", AVAILABLE)
@pytest.mark.parametrize("source", ["variant.cpp", "program.cpp"])
def test_variants_share_no_functions(source: str, variant: str, tmp_path: Path) -> None:
    """Otherwise the linker would keep one copy of them, with instructions that another CPU may not have."""
    compiler, lister = shutil.which("g++"), shutil.which("nm")
    if compiler is None or lister is None:
        pytest.skip("no g++ and nm to list functions with")
    built = checked(compiler, variant, ["-O3", "-c", "-o", str(tmp_path / "object")], SOURCES / source)
    assert built.returncode == 0, built.stderr
    listed = subprocess.run([lister, "-C", str(tmp_path / "object")], capture_output=True, text=True, check=True).stdout
    merged = [line for line in listed.splitlines() if re.search(r" [WVu] ", line)]
    assert merged
    pointers = "DW.ref.__gxx_personality_v0"  # data
    assert [line for line in merged if f"clops::{variant}::" not in line and pointers not in line] == []


@pytest.mark.nightly
def test_clang_compiles_everything_without_warnings() -> None:
    compiler = shutil.which("clang++")
    if compiler is None:
        pytest.skip("no clang++ to see the warnings of")
    pybind11 = pytest.importorskip("pybind11", reason="no pybind11, which the module is made with")
    folders = [f"-I{folder}" for folder in (pybind11.get_include(), sysconfig.get_path("include"))]
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("no Python.h, which the module is made with")
    for variant in VARIANTS if platform.machine() == "x86_64" else ["baseline"]:
        for source in ("variant.cpp", "program.cpp"):
            built = checked(compiler, variant, ["-fsyntax-only"], SOURCES / source)
            assert (built.returncode, built.stderr) == (0, "")
    built = checked(compiler, "baseline", ["-fsyntax-only", "-DCLOPS_WITH_BASELINE", *folders], SOURCES / "module.cpp")
    assert (built.returncode, built.stderr) == (0, "")


def checked(compiler: str, variant: str, options: list[str], *files: Path) -> subprocess.CompletedProcess[str]:
    """Files compiled for a variant, with warnings as errors."""
    lanes, instructions = VARIANTS[variant]
    macros = [f"-DCLOPS_VARIANT={variant}", f"-DCLOPS_LANES={lanes}"]
    command = [compiler, "-std=c++20", "-ffp-contract=off", *WARNINGS, *macros, *instructions, *options]
    return subprocess.run([*command, *map(str, files)], capture_output=True, text=True)


def compiled(compiler: str, variant: str, options: list[str], program: Path) -> subprocess.CompletedProcess[str]:
    """The program with the kernels of one variant; it writes what they compute to standard output."""
    options = [*options, f"-I{SOURCES}", "-o", str(program)]
    return checked(
        compiler, variant, options, HERE / "every_kernel.cpp", SOURCES / "variant.cpp", SOURCES / "program.cpp"
    )


def computed(*command: str | Path) -> np.ndarray:
    """What the program computes: losses, gradients, logits, probabilities, parameters, statistics."""
    ran = subprocess.run(list(map(str, command)), capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode(errors="replace")
    numbers = np.frombuffer(ran.stdout, np.float32)
    assert numbers.size > 1_000_000
    return numbers
