"""How long a report takes on a store of 10,000 runs; the store holds generated numbers and is thrown away.

OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/bench_report.py --runs 10000
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import tempfile
import time
from pathlib import Path

from clops_sweep import RunConfig, SearchSpace
from clops_sweep.analysis.report import write_report
from clops_sweep.store.run_store import RunStore

REPOSITORY = Path(__file__).parents[1]
TASKS = ("0-1", "2-3", "4-5", "6-7", "8-9", "10-11")


def space(runs: int) -> SearchSpace:
    """A grid of 10 x 10 cells, four variants, five seeds, and as many values of T as the number of runs allows."""
    return SearchSpace(
        "large_grid",
        RunConfig(),
        {
            "storage_fraction": [i / 10 for i in range(1, 11)],
            "acquisition_fraction": [i / 10 for i in range(1, 11)],
            "variant": {
                "CLOPS": {},
                "Random storage": {"storage_order": "random"},
                "Random acquisition": {"acquisition": "random"},
                "Random storage and acquisition": {"storage_order": "random", "acquisition": "random"},
            },
            "mc_samples": [5 * i for i in range(1, max(1, runs // 2000) + 1)],
        },
        seeds=range(5),
    )


def main() -> None:
    """Fills a store, renders its report, and prints what that took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="2,000 or a multiple")
    parser.add_argument("--instances", type=int, default=40, help="training instances per task")
    parser.add_argument("--store", type=Path, help="keep the store here and use it again")
    arguments = parser.parse_args()
    spec = importlib.util.spec_from_file_location("generated", REPOSITORY / "tests/analysis/generated_store.py")
    assert spec is not None
    assert spec.loader is not None
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)
    with tempfile.TemporaryDirectory() as folder:
        store = RunStore(arguments.store or Path(folder) / "results")
        asked = space(arguments.runs)
        begun = time.perf_counter()
        if not store.statuses():
            generated.write_generated_runs(store, [asked], tasks=TASKS, epochs=20, instances=arguments.instances)
        filled, used = time.perf_counter(), time.process_time()
        paths = write_report([asked], store, Path(folder) / "report")
        done, used = time.perf_counter(), time.process_time() - used
        megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{len(store.statuses()):,} runs, filled in {filled - begun:.1f} s")
        print(
            f"report: {used:.1f} s of processor time, {done - filled:.1f} s by the clock, "
            f"page of {paths.index.stat().st_size / 1e6:.1f} MB, peak memory {megabytes:.0f} MB"
        )


if __name__ == "__main__":
    main()
