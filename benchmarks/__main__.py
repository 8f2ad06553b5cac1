"""Run all benchmarks on one core and write results.md: ``python -m benchmarks [--only NAME ...] [--against REF]``."""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
from collections.abc import Callable
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import torch  # noqa: E402

from benchmarks import (  # noqa: E402
    against,
    bench_report,
    between_runs,
    encoded,
    end_to_end,
    full_size,
    gpu,
    kernels,
    large_store,
    methods,
    networks,
    own_data,
    own_runs,
    packing,
    precision,
    programs,
    runs,
    scaling,
    sleeping,
    storage,
    sweeps,
)
from benchmarks.timing import cpu_model  # noqa: E402
from clops_sweep import native  # noqa: E402

SECTIONS: dict[str, Callable[[bool], str]] = {
    "kernels": lambda quick: kernels.run(quick=quick),
    "networks": lambda _: networks.run(),
    "programs": lambda quick: programs.run(quick=quick),
    "precision": lambda quick: precision.run(quick=quick),
    "encoded": lambda quick: encoded.run(quick=quick),
    "methods": lambda quick: methods.run(quick=quick),
    "runs": lambda quick: runs.run(quick=quick),
    "gpu": lambda quick: gpu.run(quick=quick),
    "packing": lambda quick: packing.run(quick=quick),
    "scaling": lambda quick: scaling.run(quick=quick),
    "full_size": lambda quick: full_size.run(quick=quick),
    "storage": lambda quick: storage.run(quick=quick),
    "report": lambda quick: bench_report.run(quick=quick),
    "own_data": lambda quick: own_data.run(quick=quick),
    "own_runs": lambda quick: own_runs.run(quick=quick),
    "between_runs": lambda quick: between_runs.run(quick=quick),
    "sleeping": lambda quick: sleeping.run(quick=quick),
    "sweeps": lambda quick: sweeps.run(quick=quick),
    "end_to_end": lambda quick: end_to_end.run(quick=quick),
    "large_store": lambda quick: large_store.run(quick=quick),
}
LONG = {"end_to_end", "large_store"}
"""Benchmarks that run only if named by --only."""

USUAL = [name for name in SECTIONS if name not in LONG]


def main() -> None:
    """Run the requested benchmarks, print the results and write them to a file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, to see that everything runs")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=USUAL, help="some sections")
    parser.add_argument(
        "--output", type=Path, help="default: results.md beside this file, if all of it was run in full"
    )
    parser.add_argument(
        "--against",
        metavar="REF",
        help="a commit, tag or branch whose own numbers are put before those of this version",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    parts = [
        "# Benchmarks\n\n"
        f"{cpu_model()}, one core; Python {platform.python_version()}, PyTorch {torch.__version__}; native kernels: "
        f"{', '.join(native.available()) or 'not built'}. Processor time of the process unless said otherwise."
    ]
    with against.installed(arguments.against) if arguments.against else contextlib.nullcontext() as other:
        for name in arguments.only:
            part = SECTIONS[name](arguments.quick)
            if other is not None:
                part = against.beside(against.measured(other, name, quick=arguments.quick), part)
            parts.append(part)
            print(part, flush=True)
    parts.append(
        f"Mean number of busy processes on the machine's {os.cpu_count()} cores: {load:.1f} when this began, "
        f"{os.getloadavg()[0]:.1f} when it ended. Where they compete, times are longer; the ratios carry over."
    )
    output = arguments.output
    if output is None and not (arguments.quick or arguments.against) and arguments.only == USUAL:
        output = Path(__file__).with_name("results.md")
    if output is not None:
        output.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
