"""`python -m tests.hostile`: bad inputs by area, how many of them there are, and which are not answered."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from . import data, files, place, runs, stores, typed
from .engine import Case, Engine, Result

AREAS: Mapping[str, Callable[[], Iterator[Case]]] = {
    "fields": typed.fields,
    "settings": typed.settings,
    "options": typed.options,
    "conditions": typed.conditions,
    "python": typed.from_python,
    "code": files.code,
    "contents": files.contents,
    "searches": files.searches,
    "declarations": files.declarations,
    "own options": files.own_options,
    "networks, scenarios": files.networks_and_scenarios,
    "together": files.together,
    "own arrays": data.own_arrays,
    "own functions": data.own_functions,
    "label tables": data.label_tables,
    "WFDB": data.wfdb,
    "sent": data.sent,
    "no files": stores.no_files,
    "JSON": stores.json_files,
    "prepared arrays": stores.prepared_arrays,
    "parts": stores.parts,
    "studies": stores.studies,
}
RUNS = "runs"
"""The area whose cases take real sweeps."""


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--only", choices=[*AREAS, RUNS], action="append", help="an area; all by default")
    parser.add_argument("--cases", default="", help="only the cases whose names contain this")
    parser.add_argument("--sample", type=int, help="so many cases of each area, evenly spaced")
    parser.add_argument(
        "--prepared", type=Path, help="a folder with prepared synthetic data, to save their preparation"
    )
    parser.add_argument("--say", action="store_true", help="print what every case was answered")
    asked = parser.parse_args(arguments)
    found: dict[str, list[Result]] = {}
    with tempfile.TemporaryDirectory(prefix="hostile-place-") as folder:
        template, prepared = Path(folder) / "template", Path(folder) / "prepared"
        if asked.prepared:
            shutil.copytree(asked.prepared / "synthetic", prepared / "synthetic")
        place.make(template, prepared)
        engine = Engine(template, prepared)
        for area in asked.only or [*AREAS, RUNS]:
            if area == RUNS:
                found[area] = list(runs.results())
            else:
                cases = [case for case in AREAS[area]() if asked.cases in case.name]
                if asked.sample:
                    cases = cases[:: max(1, len(cases) // asked.sample)][: asked.sample]
                found[area] = list(engine.results(cases))
            print(f"{area}: {len(found[area])}", file=sys.stderr, flush=True)
            if asked.say:
                for result in found[area]:
                    print(f"{area}: {result.name}\n    {result.said}")
    print(f"{'area':<20}{'cases':>8}{'unanswered':>12}")
    for area, results in [*found.items(), ("all", [it for of in found.values() for it in of])]:
        print(f"{area:<20}{len(results):>8}{sum(bool(it.problem) for it in results):>12}")
    unanswered = [(area, it) for area, results in found.items() for it in results if it.problem]
    for area, result in unanswered:
        print(f"{area}: {result.name}\n    {result.problem}")
    return bool(unanswered)


if __name__ == "__main__":
    sys.exit(main())
