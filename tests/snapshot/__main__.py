"""`python -m tests.snapshot` compares today's numbers with the kept ones; `--write` takes them anew.

Runs of the native kernels are compared bit for bit, others within the tolerances of compare.py.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from clops_sweep import native

from . import parts
from .cases import CASES
from .compare import Difference, differences
from .parts import PARTS, Tables

DATA = Path(__file__).with_name("data")
MACHINE = DATA / "machine.json"
MOST_SHOWN = 20


def machine() -> dict[str, str]:
    """What the last bits of a number may depend on."""
    return {
        "machine": platform.machine(),
        "kernels": ", ".join(native.available()),
        "PyTorch's instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__.partition("+")[0],
        "numpy": np.__version__,
    }


def write(part: str, tables: Tables) -> None:
    """Keeps the tables of a part."""
    for old in DATA.glob(f"{part}-*.parquet"):
        old.unlink()
    for name, table in tables.items():
        table.to_parquet(DATA / f"{part}-{name}.parquet", compression="zstd", index=False)


def kept(part: str) -> Tables:
    """The tables of a part."""
    files = DATA.glob(f"{part}-*.parquet")
    return {path.stem.removeprefix(f"{part}-"): pd.read_parquet(path) for path in sorted(files)}


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.snapshot", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep today's numbers in place of the kept ones")
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; all by default")
    parser.add_argument("--cases", type=re.compile, help="only the runs whose names match this pattern")
    parser.add_argument("--ignore-ids", action="store_true", help=f"do not compare {', '.join(parts.IDS)}")
    asked = parser.parse_args(arguments)
    if asked.write and asked.cases:
        parser.error("--write takes every run; leave out --cases")
    chosen = asked.only or list(PARTS)
    before, here = json.loads(MACHINE.read_text()) if MACHINE.exists() else {}, machine()
    if not asked.write and before != here:
        other = [f"{name} {before.get(name)} then, {here[name]} now" for name in here if before.get(name) != here[name]]
        print(f"The snapshot is from another machine or version ({'; '.join(other)}): last bits may differ.")
    if left_out := CASES.keys() - parts.possible().keys():
        print(f"{len(left_out)} runs need kernels that this machine cannot run and are left out.")
    failed = False
    for part in chosen:
        now = parts.runs(asked.cases) if part == "runs" and asked.cases else PARTS[part]()
        if asked.write:
            write(part, now)
            continue
        stored = kept(part)
        if part == "runs":
            there = set(now["runs"]["case"])
            stored = {name: table[table["case"].isin(there)] for name, table in stored.items()}
        failed |= not report(part, list(differences(stored, now, ignore_ids=asked.ignore_ids)), now)
    if asked.write:
        MACHINE.write_text(json.dumps(here, indent=2) + "\n")
    return failed


def report(part: str, found: list[Difference], now: Tables) -> bool:
    """Prints how a part compares, and says whether it is as it was."""
    wrong = [it for it in found if it.size > it.allowed]
    cases = len({case for table in now.values() for case in table["case"]})
    print(f"{part}: {cases} cases, {len({it.case for it in wrong})} differ")
    for difference in wrong[:MOST_SHOWN]:
        print(f"  {difference}")
    if len(wrong) > MOST_SHOWN:
        print(f"  and {len(wrong) - MOST_SHOWN} further columns")
    if within := [it for it in found if it not in wrong]:
        largest = max(within, key=lambda it: it.size)
        print(f"  the largest difference within its tolerance is {largest.size:.3g}: {largest}")
    return not wrong


if __name__ == "__main__":
    sys.exit(main())
