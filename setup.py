"""Builds the native kernels, one object file for each instruction set, and says which folders are which packages.

Everything else is in pyproject.toml.

The extension is optional: where it cannot be compiled, the package is installed without it and computes with PyTorch.
"""

from __future__ import annotations

import os
import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pybind11.setup_helpers import Pybind11Extension
from setuptools import find_packages, setup
from setuptools.command.build_ext import build_ext

SOURCES = Path("clops_sweep/native/src")
FLAGS = [
    "-std=c++20",
    "-O3",
    "-g0",  # Python adds -g, with which compiling takes half as long again
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-tree-slp-vectorize",  # takes neighbouring weights for a vector, and then has to tear it apart again
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
]
"""No fast-math: what may be reordered or fused is written out in the kernels, and rounds the same everywhere."""

BASELINE = {"baseline": (4, [])}
"""Name of a variant to the floats in its vectors and the options that allow its instructions."""

X86 = {
    "avx2": (8, ["-mavx2", "-mfma"]),
    "avx512": (16, ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mfma", "-mprefer-vector-width=512"]),
}

KERNELS = ("variant.cpp", "program.cpp")
"""What is compiled once for each variant."""

VARIANTS = BASELINE | (X86 if platform.machine().lower() in {"x86_64", "amd64"} else {})


class BuildKernels(build_ext):
    """Compiles the module and, beside it, the kernels once for each variant; links all of them into one."""

    def build_extension(self, ext: Pybind11Extension) -> None:
        """Called once; an error in it only leaves the extension out."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = [
                pool.submit(
                    self.compiler.compile,
                    [str(SOURCES / source)],
                    output_dir=str(Path(self.build_temp) / name),
                    macros=[("CLOPS_VARIANT", name), ("CLOPS_LANES", str(lanes))],
                    extra_postargs=FLAGS + options,
                    depends=ext.depends,
                )
                for name, (lanes, options) in VARIANTS.items()
                for source in KERNELS
            ]
            module = self.compiler.compile(
                ext.sources,
                output_dir=self.build_temp,
                macros=ext.define_macros,
                include_dirs=ext.include_dirs,
                extra_postargs=FLAGS,
                depends=ext.depends,
            )
        ext.extra_objects += [*module, *(path for unit in compiled for path in unit.result())]
        ext.sources = []  # what is left to be done is to link
        super().build_extension(ext)


ELSEWHERE = {
    "clops_sweep.analysis": "analysis",
    **{f"clops_sweep.analysis.{name}": f"analysis/{name.replace('.', '/')}" for name in find_packages("analysis")},
    "clops_sweep.search_spaces": "search_spaces",
}
"""Packages whose folders lie at the top of the repository, and not where they are imported from."""

setup(
    packages=[*find_packages(include=["clops_sweep", "clops_sweep.*"]), *ELSEWHERE],
    package_dir={"clops_sweep": "clops_sweep", **ELSEWHERE},
    ext_modules=[
        Pybind11Extension(
            "clops_sweep.native._kernels",
            [str(SOURCES / "module.cpp")],
            depends=sorted(str(path) for path in SOURCES.rglob("*pp")),
            define_macros=[(f"CLOPS_WITH_{name.upper()}", None) for name in VARIANTS],
            extra_compile_args=FLAGS,
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildKernels},
)
