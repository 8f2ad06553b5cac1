"""Plug-ins that do what they should not: each run of theirs fails with a sentence, and no other."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from clops_sweep import RunConfig
from tests.execution.conftest import Launch
from tests.helpers.launching import ATTACHED, ONE_WORKER, Sweep, comparable, runs_alone
from tests.helpers.preloaded import Preloaded

HARMFUL = """
import helpers
from helpers import scores
from clops_sweep import RunConfig, SearchSpace, acquisition_function, strategy
from clops_sweep.learning.strategies.finetune import FineTuning

@strategy("stuck")
class Stuck(FineTuning):
    def __init__(self, training):
        import time
        if training.seed == 0:
            time.sleep(600)
        super().__init__(training)

@acquisition_function("sleeps")
def sleeps(context, rows):
    import time
    if context.seed == 0:
        time.sleep(600)
    return scores(context, rows)

@acquisition_function("keeps_the_interpreter")
def keeps_the_interpreter(context, rows):
    import ctypes
    if context.seed == 0:
        ctypes.PyDLL(None).sleep(600)
    return scores(context, rows)

@acquisition_function("mute")
def mute(context, rows):
    class Mute(Exception):
        def __str__(self):
            raise ValueError
        @property
        def __suppress_context__(self):
            raise ValueError
    raise Mute

@acquisition_function("wordy")
def wordy(context, rows):
    raise ValueError("\\udc80 begins " + 3 * 10**6 * "x" + " ends")

@acquisition_function("leaves")
def leaves(context, rows):
    import sys
    sys.exit(3)

@acquisition_function("nothing")
def nothing(context, rows):
    print(f"seed {{context.seed}} is asked\\nfor scores")
    return None

@acquisition_function("untidy")
def untidy(context, rows):
    import random
    import numpy as np
    import torch
    result = helpers.scores(context, rows)
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.manual_seed(1); np.random.seed(1); random.seed(1)
    np.seterr(all="raise")
    return result

VARIANTS = {names}
SPACE = SearchSpace(
    "harmful",
    RunConfig(epochs_per_task=1, mc_samples=3),
    axes={{"variant": {{n: {{"strategy" if n == "stuck" else "acquisition": n}} for n in VARIANTS}}}},
    seeds=range(2),
)
"""

HELPERS = """
WORDS = ("beside",)

def scores(context, rows):
    from clops_sweep.learning.replay.acquisition import random
    assert WORDS == ("beside",)
    return random(context, rows)
"""

NAMES = ["untidy", "bald_mcd", "keeps_the_interpreter", "stuck", "mute", "wordy", "leaves", "nothing", "random"]


@pytest.fixture(scope="module")
def harmed(
    ray_at_hand: dict[str, str], drivers: Preloaded, forked: Preloaded, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Sweep, Sweep]]:
    """Two sweeps that mostly wait for what hangs, so they do it at the same time: of many workers, and of one."""
    several, one = (tmp_path_factory.mktemp(name) for name in ("several", "one"))
    (several / "spaces").mkdir()
    (several / "spaces" / "helpers.py").write_text(HELPERS)
    (several / "spaces" / "harmful.py").write_text(HARMFUL.format(names=NAMES))
    (one / "helpers.py").write_text(HELPERS)
    (one / "harmful.py").write_text(HARMFUL.format(names=["bald_mcd", "sleeps"]))
    options = ("--epoch-timeout", "4", "--no-report")
    sweeps = (
        Sweep(drivers, several, ray_at_hand, "spaces/harmful.py", *options, "--max-retries", "1", *ATTACHED),
        Sweep(forked, one, forked.environment, "harmful.py", *options, *ONE_WORKER),
    )
    yield sweeps
    for sweep in sweeps:
        sweep.close()


@pytest.mark.nightly
def test_each_harms_its_own_runs_alone(
    harmed: tuple[Sweep, Sweep], prepared_root: Path, clops_sweep: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    sweep, _ = harmed
    assert sweep.wait() == 1
    assert "18 runs asked for, 8 finished, 0 pending, 10 failed" in sweep.output, sweep.output + sweep.errors
    runs = pd.read_parquet(sweep.folder / "results" / "runs")
    finished = runs[runs["status"] == "finished"]
    names = runs["acquisition"].where(runs["strategy"] == "clops", runs["strategy"])
    found = sorted(zip(names[finished.index], finished["seed"], strict=True))
    own = [(name, seed) for name in ("bald_mcd", "random", "untidy") for seed in (0, 1)]
    assert found == sorted([*own, *((name, 1) for name in ("keeps_the_interpreter", "stuck"))])
    errors = runs.assign(name=names).set_index(["name", "seed"])["error"]
    for name, function in (("stuck", "__init__"), ("keeps_the_interpreter", None)):
        assert errors[name, 0].startswith("TimedOut: an epoch took longer than --epoch-timeout 4 s, and the worker was")
        (run_id,) = runs.loc[(names == name) & (runs["seed"] == 0), "run_id"]
        said = clops_sweep("logs", run_id, "--results", sweep.folder / "results").stdout
        assert function is None or re.search(rf'harmful\.py", line \d+ in {function}\b', said)
    assert errors["mute", 0] == "Mute: what was raised cannot be printed"
    assert "ValueError: \\udc80 begins xxx" in errors["wordy", 0]
    assert "xxx ends\n" in errors["wordy", 0]
    reasons = runs.assign(name=names).set_index(["name", "seed"])["reason"]
    assert reasons["wordy", 0].startswith("ValueError: \\udc80 begins xxx")
    assert len(errors["wordy", 0]) < 25_000
    assert errors["leaves", 0].rstrip().endswith("SystemExit: 3")
    assert "acquisition function 'nothing' returned NoneType; expected a tensor of scores [" in errors["nothing", 0]
    for seed, run_id in runs.assign(name=names).set_index(["name", "seed"])["run_id"]["nothing"].items():
        said = clops_sweep("logs", run_id, "--results", sweep.folder / "results").stdout
        assert f":\n  seed {seed} is asked\n  for scores\n" in said
        assert said.rstrip().endswith(errors["nothing", seed].rstrip().rpartition("\n")[2])
    base = RunConfig(epochs_per_task=1, mc_samples=3)
    alone = runs_alone([base.replace(seed=seed) for seed in (0, 1)], prepared_root)
    for name, frame in alone.items():
        stored = pd.read_parquet(sweep.folder / "results" / name)
        stored = stored[stored["run_id"].isin(set(frame["run_id"]))]
        pd.testing.assert_frame_equal(comparable(name, stored), frame, check_exact=True, check_dtype=False)


@pytest.mark.nightly
def test_a_run_that_hangs_is_found_among_those_of_one_worker(
    harmed: tuple[Sweep, Sweep], clops_sweep: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    _, sweep = harmed
    assert sweep.wait() == 1
    assert "4 runs asked for, 3 finished, 0 pending, 1 failed" in sweep.output, sweep.output + sweep.errors
    runs = pd.read_parquet(sweep.folder / "results" / "runs").set_index(["acquisition", "seed"])
    assert runs["status"]["sleeps", 0] == "failed"
    assert runs["error"]["sleeps", 0].startswith("TimedOut: an epoch took longer than --epoch-timeout 4 s, and the")
    said = clops_sweep("logs", runs["run_id"]["sleeps", 0], "--results", sweep.folder / "results").stdout
    assert re.search(r'harmful\.py", line \d+ in sleeps\b', said)


UNSHIPPABLE = """
import threading
from clops_sweep import RunConfig, SearchSpace, acquisition_function
LOCK = threading.Lock()

@acquisition_function("locked")
def locked(context, rows):
    with LOCK:
        return rows

SPACE = SearchSpace("locked", RunConfig(strategy="finetune"), seeds=range(1))
"""


@pytest.mark.nightly
def test_one_that_cannot_be_handed_to_workers_is_refused_before_any_starts(
    launch: Launch, forked: Preloaded, tmp_path: Path
) -> None:
    (tmp_path / "locked.py").write_text(UNSHIPPABLE)
    sweep = launch("locked.py", "--no-report", script=forked)
    assert sweep.wait() == 2
    assert sweep.errors.splitlines() == [
        "clops-sweep: acquisition 'locked' cannot be sent to workers (TypeError: cannot pickle '_thread.lock' "
        "object); create the objects that it uses inside of it, when it is called"
    ]
    assert not (tmp_path / "results" / ".work" / "logs").exists()
