"""Comparison with Avalanche 0.6, in speed and results: ``python -m benchmarks.peers [--seeds 0 1] [--only CASE ...]``.

It needs ``pip install -e '.[peers]'`` and the frames of ``clops-sweep data prepare synthetic_paper``. Runs are computed
one after another, each in a separate process on one core. A finished run is a line of results.csv and is not computed
again. The report is printed from this table, and written to docs/results/peers.md; if no run is missing, Avalanche
need not be installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.peers import outcome, report, settings

PAGE = Path(__file__).parents[2] / "docs" / "results" / "peers.md"
TEXT = """# Avalanche: scores and seconds

`python -m benchmarks.peers` made this page from `benchmarks/peers/results.csv`.
[Speed](../speed.md#against-avalanche) describes the runs. AUC and BWT are of the validation set:
means ± standard deviations over the seeds in the last column. Seconds are CPU time, with wall-clock
time in brackets.

"""

ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def sides(case: settings.Case) -> list[str]:
    """Return the sides that have the method of a case: `ours`, `rival`."""
    return ["ours"] * (case.ours is not None) + ["rival"] * (case.plugin is not None)


def main() -> None:
    """Compute the missing runs, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(5)), help="which (default: 0 1 2 3 4)")
    parser.add_argument("--only", nargs="+", choices=settings.CASES, default=list(settings.CASES), metavar="CASE")
    parser.add_argument("--table", type=Path, default=Path(__file__).with_name("results.csv"), help="CSV, a line a run")
    arguments = parser.parse_args()
    done = {(run.case, run.side, run.seed) for run in outcome.read(arguments.table)}
    asked = [
        (name, side, seed)
        for seed in arguments.seeds
        for name in arguments.only
        for side in sides(settings.CASES[name])
    ]
    for name, side, seed in asked:
        if (name, side, seed) in done:
            continue
        command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.peers.{side}", name, str(seed)]
        line = subprocess.run(command, env=os.environ | ONE_CORE, stdout=subprocess.PIPE, text=True, check=True).stdout
        print(line.strip(), flush=True)
        if not arguments.table.exists():
            arguments.table.write_text(outcome.HEADER + "\n")
        with arguments.table.open("a") as file:
            file.write(line)
    table = report.table_of(outcome.read(arguments.table))
    print(table)
    if arguments.table == parser.get_default("table"):
        PAGE.write_text(TEXT + table.rstrip() + "\n")


if __name__ == "__main__":
    main()
