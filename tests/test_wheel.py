"""What is installed: one package, with the pages' files, the search spaces, the types and the compiled kernels."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(900)  # building a wheel takes longer on a busy machine

ROOT = Path(__file__).parents[1]
FOLDERS = {
    "clops_sweep": "clops_sweep",
    "analysis": "clops_sweep/analysis",
    "search_spaces": "clops_sweep/search_spaces",
}
"""From a folder of the repository to where a wheel has it."""

KERNELS = re.compile(r"clops_sweep/native/_kernels\..*\.(so|pyd)")


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of the files in a wheel, but for those about it: of the one that is installed, or of a new one."""
    names = _installed() or _built(tmp_path_factory.mktemp("wheel"))
    return {name for name in names if not re.match(r"clops_sweep-[^/]*\.dist-info/", name)}


def _installed() -> set[str]:
    """The files of an ordinary installation; none for one that refers to the checkout."""
    # Without a RECORD it is no installation, but what a build has left in a checkout.
    installed = next(found for found in distributions(name="clops-sweep") if found.read_text("RECORD") is not None)
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        return set()
    names = {path.as_posix() for path in installed.files or ()}
    return {name for name in names if not name.startswith("../") and "__pycache__" not in name}


def _built(folder: Path) -> set[str]:
    """The files of a wheel that is built with what is installed here, from a copy of the sources."""
    if not _has_build_requirements():
        pytest.skip("installed with -e, and no wheel can be built: pip install 'setuptools>=77' pybind11")
    source = folder / "source"
    source.mkdir()
    for path in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / path, source)
    for path in FOLDERS:
        shutil.copytree(ROOT / path, source / path, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    # Installing the package has compiled the kernels; here it matters only where the result of compiling goes.
    kernels = source / "clops_sweep" / "native" / "src"
    (kernels / "module.cpp").write_text('extern "C" void* PyInit__kernels() { return nullptr; }\n')
    for kind in ("variant.cpp", "program.cpp"):
        (kernels / kind).write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", folder, source],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def _has_build_requirements() -> bool:
    try:
        return int(version("setuptools").partition(".")[0]) >= 77 and importlib.util.find_spec("pybind11") is not None
    except PackageNotFoundError:
        return False


def test_it_brings_one_name_to_import(shipped: set[str]) -> None:
    assert {name.partition("/")[0] for name in shipped} == {"clops_sweep"}


def test_it_holds_every_source_and_nothing_else(shipped: set[str]) -> None:
    sources = {
        f"{place}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, place in FOLDERS.items()
        for pattern in ("*.py", "*.pyi", "py.typed", "*.jinja", "page.*", "assets/*", "recipes/*")
        for path in (ROOT / folder).rglob(pattern)
        if "__pycache__" not in path.parts
    }
    assert {
        "clops_sweep/analysis/dashboard/assets/charts.js",
        "clops_sweep/analysis/dashboard/assets/dashboard.css",
        "clops_sweep/analysis/dashboard/assets/dashboard.js",
        "clops_sweep/analysis/dashboard/templates/page.html.jinja",
        "clops_sweep/cli/recipes/slurm_array.sh",
        "clops_sweep/py.typed",
        "clops_sweep/analysis/report/page.css",
        "clops_sweep/analysis/report/page.js",
        "clops_sweep/analysis/report/page.html.jinja",
        "clops_sweep/analysis/report/parts.html.jinja",
        "clops_sweep/search_spaces/class_il_grid.py",
    } <= sources
    assert {name for name in shipped if not KERNELS.fullmatch(name)} == sources


def test_it_holds_the_kernels(shipped: set[str]) -> None:
    has_compiler = any(map(shutil.which, ("c++", "g++", "clang++")))
    if not has_compiler or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("the kernels cannot be compiled here")
    assert len([name for name in shipped if KERNELS.fullmatch(name)]) == 1
