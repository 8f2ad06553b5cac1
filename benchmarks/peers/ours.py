"""One run of clops-sweep, in a separate process: ``python -m benchmarks.peers.ours CASE SEED``."""

from __future__ import annotations

import sys
import time

from benchmarks.peers import settings
from benchmarks.peers.outcome import Outcome
from clops_sweep.learning.run import ContinualRun


def run(case: settings.Case, seed: int) -> Outcome:
    """Time a complete run with an evaluation after every epoch, without loading frames and building the network."""
    prepared = ContinualRun(case.config(seed), settings.frames())
    start, clock = time.process_time(), time.perf_counter()
    result = prepared.run()
    processor, elapsed = time.process_time() - start, time.perf_counter() - clock
    row = result.runs.iloc[0]
    return Outcome(case.name, "ours", seed, float(row["auc"]), float(row["bwt"]), processor, elapsed)


if __name__ == "__main__":
    print(run(settings.CASES[sys.argv[1]], int(sys.argv[2])).line())
