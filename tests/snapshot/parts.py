"""What the snapshot consists of: each part makes tables, whose rows are called by the readable name of a case."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import optuna
import pandas as pd
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from clops_sweep import ContinualRun, RunConfig, SearchSpace, native, read, sweep
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.experiment.columns import RESULTS
from clops_sweep.experiment.spaces.optuna_search import OptunaSearch
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_spaces
from clops_sweep.testing import tiny_frames

from .cases import CASES, NATIVE, PYTORCH, TINY, Case

ROOT = Path(__file__).parents[2]
OWN = Path(__file__).with_name("own.py")
TABLES = ("runs", "r_matrix", "curves", "instances")
IDS = ("run_id", "data_hash", "backend")
"""Columns that say which run it is and what computed it, and hold no number of it."""

RESULT_COLUMNS = [name for name in RESULTS if "seconds" not in name]

Tables = dict[str, pd.DataFrame]


def runs(names: re.Pattern[str] | None = None) -> Tables:
    """The four tables of every case, or of those whose names match, computed in this process."""
    load_spaces(OWN)
    chosen = {name: case for name, case in possible().items() if not names or names.search(name)}
    with tempfile.TemporaryDirectory() as folder:
        return _joined({name: _run(case, Path(folder)) for name, case in chosen.items()})


def possible() -> dict[str, Case]:
    """The cases whose kernels this machine can run."""
    return {name: case for name, case in CASES.items() if case.kernels in (*native.available(), PYTORCH)}


def _run(case: Case, prepared_root: Path) -> Tables:
    config = RunConfig(**TINY).replace(**case.fields)
    if case.frames is None:
        prepare(config.dataset, prepared_root=prepared_root, data_root=prepared_root, workers=1)
        frames = open_frames(config.dataset, prepared_root=prepared_root, **config.data_key.view)
    else:
        frames = tiny_frames(config.scenario, **case.frames)
    os.environ[native.ENVIRONMENT] = case.kernels
    result = ContinualRun(config, frames).run()
    return _numbers({name: getattr(result, name) for name in TABLES}, frames.data_hash)


def _numbers(tables: Tables, data_hash: str) -> Tables:
    """The tables of one run without what depends on the clock or the machine; `runs` alone says which run it is."""
    found = {name: table.drop(columns=["run_id"]).reset_index(drop=True) for name, table in tables.items()}
    rows = tables["runs"].reindex(columns=["run_id", "backend", *RESULT_COLUMNS]).dropna(axis=1).reset_index(drop=True)
    return found | {"runs": rows.assign(data_hash=data_hash)}


def _joined(by_case: Mapping[str, Tables]) -> Tables:
    tables = {table for found in by_case.values() for table in found}
    return {
        table: pd.concat([found[table].assign(case=name) for name, found in by_case.items()], ignore_index=True)
        for table in sorted(tables)
    }


def swept() -> Tables:
    """A grid and an Optuna search over own components by a real sweep: the tables of its runs, and its trials."""
    os.environ[native.ENVIRONMENT] = NATIVE
    grid, search = load_spaces(OWN)
    with tempfile.TemporaryDirectory() as folder:
        results, prepared_root = Path(folder) / "results", Path(folder) / "prepared"
        with contextlib.redirect_stdout(sys.stderr):
            outcome = sweep(OWN, results, prepared_root=prepared_root, data_root=folder)
        assert not outcome.failures, outcome.failures
        stored = {name: read(results, name) for name in TABLES}
        study = optuna.load_study(
            study_name=search.name, storage=JournalStorage(JournalFileBackend(str(results / "optuna.journal")))
        )
        trials = [
            {
                "state": trial.state.name,
                "params": json.dumps(trial.params, sort_keys=True),
                "values": trial.values,
                "steps": json.dumps(trial.intermediate_values),
                "runs": trial.user_attrs["run_ids"],
            }
            for trial in study.trials
        ]
    hashes = stored["runs"].set_index("run_id")["data_hash"]
    requests = [(it, it.config.run_id(data_hash)) for it in grid.requests() for data_hash in hashes.unique()]
    places = {
        **{run_id: f"{grid.name}, {it.labels['variant']}, seed {it.config.seed}" for it, run_id in requests},
        **{run_id: f"trial {number}" for number, trial in enumerate(trials) for run_id in trial.pop("runs")},
    }
    by_case = {
        place: _numbers({name: rows[rows["run_id"] == run_id] for name, rows in stored.items()}, hashes[run_id])
        for run_id, place in places.items()
        if run_id in hashes  # a trial that was pruned has none
    }
    return _joined(by_case) | {
        "trials": pd.DataFrame(trials).assign(case=[f"trial {number}" for number in range(len(trials))])
    }


def _parts_of(written: Iterable[SearchSpace]) -> Iterator[SearchSpace]:
    """Yield search spaces; instead of a tuned one, its phases and the grids at the bounds of what it may report."""
    for space in written:
        if space.tuned is None:
            yield space
        else:
            yield from space.tuned.phases
            yield from space.tuned.at_bounds()


def spaces() -> Tables:
    """How the runs that each shipped search space asks for fall into equal ones, whatever these are called."""
    rows = []
    for name, path in shipped_spaces().items():
        groups: dict[str, list[str]] = {}
        written = load_spaces(path)
        for space in _parts_of(written):
            if isinstance(space.search, OptunaSearch):
                asked = {json.dumps(it, default=str): space.search.settings(it) for it in space.search.corners()}
                configs = [(labels, space.base.replace(**settings)) for labels, settings in asked.items()]
            else:
                configs = [(json.dumps(it.labels, default=str), it.config) for it in space.requests()]
            for labels, config in configs:
                groups.setdefault(config.run_id(""), []).append(f"{space.name} {labels} {config.seed}")
        partition = json.dumps(sorted(map(sorted, groups.values())))
        rows.append(
            {
                "case": name,
                "requested": sum(map(len, groups.values())),
                "distinct": len(groups),
                "partition": hashlib.sha256(partition.encode()).hexdigest(),
            }
        )
    return {"spaces": pd.DataFrame(rows)}


def claims() -> Tables:
    """The verdict on every claim on the gallery's store, with the differences behind it."""
    place = ROOT / "docs" / "gallery" / "gallery.py"
    spec = importlib.util.spec_from_file_location("gallery", place)
    sys.modules["gallery"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    gallery = module.Gallery(module.RunStore(module.STORE))
    verdicts, evidence = [], []
    for dataset, found in gallery.verdicts.items():
        for it in found:
            case = {"case": f"{dataset}, {it.claim.key}"}
            verdicts.append(case | {name: getattr(it, name) for name in ("outcome", "unit", "p_for", "p_against")})
            names = ("mean", "error", "n", "p_for", "p_against", "missing")
            for one in it.evidence:
                evidence.append(case | {name: getattr(one, name) for name in names} | asdict(one.interval))
    return {"verdicts": pd.DataFrame(verdicts), "evidence": pd.DataFrame(evidence)}


PARTS: Mapping[str, Callable[[], Tables]] = {"runs": runs, "sweep": swept, "spaces": spaces, "claims": claims}
