"""Plug-ins that misbehave inside a run, and forged checkpoints: each fails its own run in a sentence, and no other.

`python -m tests.hostile.runs FOLDER` runs the sweeps in a process of its own and prints a line of JSON for each case.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from clops_sweep import ContinualRun, SearchSpace, read, sweep
from clops_sweep.data.frames import FrameSet
from clops_sweep.data.preparing.prepare import open_frames, prepare
from clops_sweep.experiment.spaces.search_space import load_spaces
from clops_sweep.learning.result import RunResult
from clops_sweep.store.checkpoint import CheckpointFile, sealed
from clops_sweep.store.run_store import RunStore

from .data import fifo, folder, link
from .engine import Result
from .place import HEAD

TIMEOUT = 300.0
EPOCH_TIMEOUT = 6.0
LONGEST_ERROR = 800
"""Characters of the last line of a run's error; Ray says much of a worker that has died."""

ANYWHERE: Mapping[str, str] = {
    "an error": "raise ValueError('two\\nlines')",
    "an error of ten megabytes": "raise ValueError('x' * 10**7)",
    "an error that cannot be printed": "raise Mute",
    "an error that cannot be pickled": "raise Local(lambda: 3)",
    "a group of errors": "raise ExceptionGroup('several', [ValueError('x'), Mute()])",
    "an exit": "sys.exit(3)",
    "an exit without a failure": "raise SystemExit(0)",
    "an interrupt": "raise KeyboardInterrupt",
    "a GeneratorExit": "raise GeneratorExit",
    "the end of the process": "os._exit(0)",
    "a kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "a segmentation fault": "ctypes.string_at(0)",
    "an abort": "os.abort()",
    "endless recursion": "deeper()",
    "an endless sleep": "time.sleep(10**6)",
    "too much memory": "torch.empty(2**50)",
    "an error of memory": "raise MemoryError",
    "a StopIteration": "raise StopIteration",
    "a timeout": "raise TimeoutError",
}
"""Statements that end the run, in an acquisition function."""

HARMLESS: Mapping[str, str] = {
    "prints ten megabytes": "print('x' * 10**7)",
    "float64": "torch.set_default_dtype(torch.float64)",
    "no gradients": "torch.set_grad_enabled(False)",
    "other seeds": "torch.manual_seed(1); np.random.seed(1); random.seed(1)",
    "NumPy raises": "np.seterr(all='raise')",
    "a thread that raises": "threading.Thread(target=lambda: 1 / 0).start()",
    "a child that stays": "subprocess.Popen(['sleep', '5'])",
    "rows are changed": "rows.zero_()",
    "the configuration is changed": "context.config.__dict__['learning_rate'] = 7.0",
    "many threads": "torch.set_num_threads(8)",
}
"""What an acquisition function may leave behind: its run may fail or not, and no other run is another."""

RETURNED: Mapping[str, str] = {
    "nothing": "None", "a number": "3", "text": "'scores'", "a list": "[[0.5] * rows.shape[1]]", "an array": "np.zeros(rows.shape)",
    "too few": "torch.zeros(rows.shape)[:, 1:]", "a flat tensor": "torch.zeros(rows.shape).flatten()", "NaN": "torch.full(rows.shape, np.nan)",
    "infinity": "torch.full(rows.shape, np.inf)", "complex numbers": "torch.zeros(rows.shape) * 1j", "truth values": "rows > 0",
    "another device": "torch.zeros(rows.shape, device='meta')", "a sparse tensor": "torch.zeros(rows.shape).to_sparse()",
    "more runs": "torch.zeros((3, *rows.shape))", "a class": "torch.Tensor", "a generator": "(it for it in rows)",
}  # fmt: skip
STORED: Mapping[str, str] = {
    "nothing": "None", "too few": "trajectories[:, 0, 1:]", "all epochs": "trajectories", "NaN": "trajectories[:, 0] * np.nan",
    "infinity": "trajectories[:, 0] / 0", "text": "'s'", "an array": "trajectories[:, 0].numpy()", "an error": "1 / 0", "an exit": "sys.exit(0)",
}  # fmt: skip
MAY_FINISH = {
    *HARMLESS,
    "returns infinity",
    "infinity",
    "a state that cannot be saved",
    "a state that is none",
    "an error in the state",
    "a state of lists in lists",
}
"""A short run saves no checkpoint and asks for no state; infinite scores have an order."""
STRATEGIES: Mapping[str, str] = {
    "an error when it is made": "def __init__(self, training): raise ValueError('x')",
    "an exit when it is made": "def __init__(self, training): sys.exit(0)",
    "a replay that is none": "def replay(self, task, epoch): return 3",
    "an error at the end of a task": "def end_task(self, task): raise Mute",
    "an exit at the begin of a task": "def begin_task(self, task): sys.exit(0)",
    "parameters that are NaN": "def end_epoch(self): self.training.learner.parameters.flat.fill_(np.nan)",
    "parameters without end": "def end_epoch(self): self.training.learner.parameters.flat.mul_(1e38).mul_(1e38)",
    "a count that is a metric": "def counts(self): return {'auc': [1]}",
    "a count without a name": "def counts(self): return {'': [1]}",
    "a count that is text": "def counts(self): return {'odd_count': ['x']}",
    "a count of no run": "def counts(self): return {'odd_count': []}",
    "a count that is a list": "def counts(self): return {'odd_count': [[1]]}",
    "a count too large": "def counts(self): return {'odd_count': [10**30]}",
    "counts that are none": "def counts(self): return None",
    "counts that are a list": "def counts(self): return [1]",
    "a record that is none": "def record(self, task): return None",
    "a record of another shape": (
        "def record(self, task):\n        import dataclasses\n        found = super().record(task)\n"
        "        return dataclasses.replace(found, stored=found.stored[:, :1])"
    ),
    "an error in the record": "def record(self, task): raise ValueError('x')",
    "a state that cannot be saved": "def state(self): return {'f': lambda: 3}",
    "a state that is none": "def state(self): return None",
    "an error in the state": "def state(self): raise ValueError('x')",
    "a state of lists in lists": "def state(self):\n        it = []\n        it.append(it)\n        return {'it': it}",
    "a training loop of other arguments": "def train_epoch(self): pass",
}
MODULES: Mapping[str, str] = {
    "an error later": "if self.calls > 60: raise ValueError('x')",
    "an exit later": "if self.calls > 60: sys.exit(0)",
    "NaN later": "if self.calls > 60: x = x * np.nan",
    "another shape later": "if self.calls > 60: return self.body(x.flatten(1))[:, :0]",
    "the end of the process later": "if self.calls > 60: os._exit(1)",
}
"""Networks that are right when they are tried."""

OBSERVERS: Mapping[str, str] = {
    "raises": "raise ValueError('x')", "exits": "sys.exit(0)",
    "prints": "print('x' * 10**6)", "mute": "raise Mute", "changes": "event.metrics.clear()",
}  # fmt: skip

FILE = (
    HEAD
    + """
import builtins, ctypes, os, random, signal, subprocess, sys, threading, time, warnings
import torch
from clops_sweep.learning.strategies.finetune import FineTuning
class Mute(Exception):
    def __str__(self):
        raise ValueError
class Local(Exception):
    pass
def deeper():
    deeper()
x = np.random.default_rng(0).standard_normal((24, 1, 2500)).astype('f4')
@dataset('hostile_data')
def hostile_data(data_root):
    return Recordings(signals=x, sampling_rate=500, channels=['a'], units='V', labels=[0, 1, 2, 3] * 6, classes=['a', 'b', 'c', 'd'],
        patients=range(24), split=['train'] * 12 + ['validation'] * 8 + ['test'] * 4)
base = RunConfig(dataset='hostile_data', epochs_per_task=1, batch_size=4, mc_samples=2, storage_fraction=0.5)
"""
)


def _names(prefix: str, cases: Mapping[str, str]) -> dict[str, str]:
    """The name that each case has in the file, to its name in the list."""
    return {f"{prefix}_{number}": name for number, name in enumerate(cases)}


ACQUIRES = {**ANYWHERE, **HARMLESS, **{f"returns {name}": f"return {it}" for name, it in RETURNED.items()}}
KINDS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "acquisition": ("acquires", ACQUIRES),
    "storage_function": ("stores", STORED),
    "strategy": ("trains", STRATEGIES),
    "network": ("predicts", MODULES),
}
GOOD_SEEDS = range(4)


def _source() -> str:
    parts = [FILE]
    for number, body in enumerate(ACQUIRES.values()):
        parts.append(
            f"@acquisition_function('acquires_{number}')\ndef acquires_{number}(context, rows):\n"
            f"    {body}\n    return torch.zeros(rows.shape)\n"
        )
    for number, value in enumerate(STORED.values()):
        parts.append(f"@storage_function('stores_{number}')\ndef stores_{number}(trajectories):\n    return {value}\n")
    for number, body in enumerate(STRATEGIES.values()):
        parts.append(f"@strategy('trains_{number}')\nclass Trains{number}(FineTuning):\n    {body}\n")
    for number, body in enumerate(MODULES.values()):
        parts.append(
            f"class Predicts{number}(torch.nn.Module):\n    def __init__(self, channels, samples, outputs):\n"
            "        super().__init__()\n        self.body = torch.nn.Linear(channels * samples, outputs)\n"
            f"        self.calls = 0\n    def forward(self, x):\n        self.calls += 1\n        {body}\n"
            f"        return self.body(x.flatten(1))\nnetwork('predicts_{number}')(Predicts{number})\n"
        )
    for number, body in enumerate(OBSERVERS.values()):
        parts.append(f"@observer('observes_{number}')\ndef observes_{number}(event):\n    {body}\n")
    variants = {
        name: {kind: name, "epochs_per_task": 20 if kind == "network" else 1}
        for kind, (prefix, cases) in KINDS.items()
        for name in _names(prefix, cases)
    }
    parts.append(
        f"SPACE = [SearchSpace('bad', base, {{'variant': {variants!r}}}, seeds=[0]), "
        f"SearchSpace('good', base, seeds={list(GOOD_SEEDS)})]\n"
    )
    return "".join(parts)


# --- forged checkpoints -----------------------------------------------------------------------------------------------

Forge = Callable[[dict[str, Any]], Any]


def _changed(**changes: Any) -> Forge:
    return lambda state: {**state, **changes}


def _without(name: str) -> Forge:
    return lambda state: {key: value for key, value in state.items() if key != name}


def _tensors(change: Callable[[torch.Tensor], torch.Tensor]) -> Forge:
    def changed(state: Any) -> Any:
        if isinstance(state, torch.Tensor):
            return change(state)
        if isinstance(state, dict):
            return {key: changed(value) for key, value in state.items()}
        return type(state)(changed(value) for value in state) if isinstance(state, list | tuple) else state

    return changed


FORGED: Mapping[str, Forge] = {
    "nothing but its ids": lambda state: {},
    **{f"task {value!r}": _changed(task=value) for value in (-1, 99, 2**62, "x", None, 0.5, [1])},
    **{f"epoch {value!r}": _changed(epoch=value) for value in (-1, 99, "x", None)},
    "no task": _without("task"),
    "no learner": _without("learner"),
    "no strategy": _without("strategy"),
    "something more": _changed(more=3),
    "tensors of another shape": _tensors(lambda it: it.flatten()[:1]),
    "tensors without a value": _tensors(lambda it: it.flatten()[:0]),
    "tensors of another type": _tensors(lambda it: it.to(torch.float64)),
    "numbers for tensors": _tensors(lambda it: 3),  # type: ignore[arg-type, return-value]
    "lists in lists": lambda state: {"task": eval("[" * 80 + "]" * 80)},
}
NO_CHECKPOINTS: Mapping[str, Callable[[Path], object]] = {
    "an empty file": lambda path: path.write_bytes(b""),
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 50),
    "sealed noise": lambda path: path.write_bytes(sealed(bytes(range(256)) * 50)),
    "a sealed list": lambda path: path.write_bytes(sealed(_saved([1, 2]))),
    "a sealed tensor": lambda path: path.write_bytes(sealed(_saved(torch.zeros(3)))),
    "a folder": folder,
    "a dangling link": link("nowhere"),
    "a link to itself": lambda path: link(path.name)(path),
}


def _saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


# --- the sweeps -------------------------------------------------------------------------------------------------------


def results() -> Iterator[Result]:
    """What becomes of each case, from a process of its own."""
    with tempfile.TemporaryDirectory(prefix="hostile-runs-") as place, tempfile.TemporaryFile("w+") as output:
        command = [sys.executable, "-m", __name__, place]
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True) as process:
            try:
                ended = f"ended with {process.wait(TIMEOUT)}"
            except subprocess.TimeoutExpired:
                ended = f"came to no end within {TIMEOUT:g} s"
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
        output.seek(0)
        printed = (output.read().strip().splitlines() or [""])[-1][:200]
        for sweep_name in SWEEPS:
            said = Path(place) / f"{sweep_name}.json"
            if said.exists():
                yield from (Result(**each) for each in json.loads(said.read_text()))
            else:
                yield Result(f"the sweep {sweep_name!r}", f"{ended}: {printed}")


@dataclass(frozen=True)
class Place:
    """Where the sweeps run, and on what."""

    folder: Path
    good: SearchSpace
    frames: FrameSet

    def alone(self, seeds: Iterable[int]) -> dict[int, RunResult]:
        """What good runs give by themselves."""
        return {seed: ContinualRun(self.good.base.replace(seed=seed), self.frames).run() for seed in seeds}

    def swept(self, space: SearchSpace | Path, name: str, **options: Any) -> pd.DataFrame:
        """The table `runs` of a sweep."""
        sweep(
            space,
            self.folder / name,
            prepared_root=self.folder / "prepared",
            data_root=self.folder,
            max_retries=0,
            **options,
        )
        return read(self.folder / name, "runs")


def main(folder: Path) -> None:
    """Runs the sweeps, and writes what became of the cases of each."""
    (folder / "space.py").write_text(_source())
    _, good = load_spaces(folder / "space.py")
    prepare("hostile_data", prepared_root=folder / "prepared", data_root=folder, workers=1)
    frames = open_frames("hostile_data", prepared_root=folder / "prepared", **good.base.data_key.view)
    for name, run in SWEEPS.items():
        found = list(run(Place(folder, good, frames)))
        (folder / f"{name}.json").write_text(json.dumps([vars(it) for it in found]))


def _plugins(place: Place) -> Iterator[Result]:
    runs = place.swept(place.folder / "space.py", "plugins", epoch_timeout=EPOCH_TIMEOUT)
    usual = pd.Series(True, runs.index)
    for kind, (prefix, cases) in KINDS.items():
        usual &= ~runs[kind].str.startswith(f"{prefix}_")
        for name, what in _names(prefix, cases).items():
            yield Result(f"{kind}: {what}", _failed(runs[runs[kind] == name], may_finish=what in MAY_FINISH))
    yield from _as_alone("beside bad plug-ins", place, "plugins", runs[usual], GOOD_SEEDS)


def _observers(place: Place) -> Iterator[Result]:
    runs = place.swept(place.good, "observers", observe=list(_names("observes", OBSERVERS)))
    yield from _as_alone("beside bad observers", place, "observers", runs, GOOD_SEEDS)


def _checkpoints(name: str, cases: Mapping[str, Callable[[CheckpointFile, ContinualRun], object]]) -> Sweeps:
    """A run for each forged checkpoint; each is as if there were none, or fails in a sentence."""

    def check(place: Place) -> Iterator[Result]:
        store = RunStore(place.folder / name)
        store.open_for_writing()
        for seed, forge in enumerate(cases.values()):
            config = place.good.base.replace(seed=seed)
            run = ContinualRun(config, place.frames)
            run.advance()
            checkpoint = CheckpointFile(store.files, store.checkpoint_folder, [config.run_id(place.frames.data_hash)])
            Path(checkpoint.path).parent.mkdir(parents=True, exist_ok=True)
            forge(checkpoint, run)
        runs = place.swept(replace(place.good, seeds=range(len(cases))), name, epoch_timeout=EPOCH_TIMEOUT)
        alone = _as_alone("", place, name, runs, range(len(cases)))
        for what, row, same in zip(
            cases, (runs[runs["seed"] == seed] for seed in range(len(cases))), alone, strict=True
        ):
            finished = row["status"].eq("finished").any()
            yield Result(f"a checkpoint: {what}", same.problem if finished else _failed(row, may_finish=True))

    return check


def _forged(change: Forge) -> Callable[[CheckpointFile, ContinualRun], object]:
    return lambda checkpoint, run: checkpoint.save(change(run.state()))


def _at_its_path(make: Callable[[Path], object]) -> Callable[[CheckpointFile, ContinualRun], object]:
    return lambda checkpoint, run: make(Path(checkpoint.path))


Sweeps = Callable[[Place], Iterator[Result]]
SWEEPS: Mapping[str, Sweeps] = {
    "plugins": _plugins,
    "observers": _observers,
    "forged": _checkpoints("forged", {name: _forged(change) for name, change in FORGED.items()}),
    "odd": _checkpoints("odd", {name: _at_its_path(make) for name, make in NO_CHECKPOINTS.items()}),
    "stuck": _checkpoints("stuck", {"a FIFO": _at_its_path(fifo)}),
}
"""By name; what may hang comes last."""


def _failed(row: pd.DataFrame, *, may_finish: bool) -> str:
    """What is wrong with the row of a run that should have failed with a sentence."""
    if len(row) != 1:
        return "the run is not in the table runs"
    if row["status"].iloc[0] == "finished":
        return "" if may_finish else "the run finished"
    lines = str(row["error"].iloc[0]).rstrip().splitlines()
    last = lines[-1] if lines else ""
    if not last.strip() or not last.isprintable() or last.startswith(" "):
        return f"the last line of its error is no sentence: {last[:200]!r}"
    return f"a sentence of {len(last)} characters: {last[:200]}" if len(last) >= LONGEST_ERROR else ""


def _as_alone(what: str, place: Place, name: str, runs: pd.DataFrame, seeds: Iterable[int]) -> Iterator[Result]:
    """Whether runs have the numbers that they have alone."""
    for seed, alone in place.alone(seeds).items():
        row = runs[(runs["seed"] == seed) & (runs["status"] == "finished")]
        problem = "" if len(row) == 1 else "the run did not finish"
        for table in ("r_matrix", "curves", "instances") if len(row) == 1 else ():
            ours = getattr(alone, table).drop(columns=["run_id", "beta_trajectory"], errors="ignore")
            theirs = read(place.folder / name, table, row["run_id"].tolist())[list(ours)]
            try:
                pd.testing.assert_frame_equal(theirs.reset_index(drop=True), ours, check_exact=True, check_dtype=False)
            except AssertionError as error:
                problem = f"{table} is another: {' '.join(str(error).split())[:200]}"
        yield Result(f"{what}: seed {seed}", problem)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
