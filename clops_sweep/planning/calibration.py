"""Calibration: short runs that measure what kinds of runs cost on this machine, where none of them is finished yet."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path

from clops_sweep.data.folder import write_file
from clops_sweep.data.frames import FrameSet
from clops_sweep.errors import BadInput, one_line
from clops_sweep.experiment.config import SEMANTICS_VERSION, RunConfig
from clops_sweep.machine import installed_version
from clops_sweep.planning.cost_model import Kind, Load, Measured, modelled
from clops_sweep.planning.plan import PlannedRun
from clops_sweep.regular_files import read_json

SECONDS, _EPOCHS = 30.0, 2
"""How long all short runs together take at most, but for an epoch of each; and how many epochs each has for a task."""

_HERE = {"host": platform.node(), "version": installed_version("clops-sweep"), "semantics_version": SEMANTICS_VERSION}
"""What measurements are only valid for."""


def calibrate(
    pending: Sequence[PlannedRun],
    frames: Callable[[RunConfig], FrameSet],
    time_epochs: Callable[[Sequence[RunConfig], FrameSet, str, float], tuple[int, list[float]]],
    device: str,
    say: Callable[[str], None],
    seconds: float = SECONDS,
) -> Iterator[tuple[str, Measured]]:
    """Measures the most expensive of the pending runs of each kind, cut short; with the content hash of its data.

    What does not end in its share of the time is left where it is, and counts with what it has done. On a GPU, all
    pending seeds of the config are a lockstep. `frames` opens the data of a config and `time_epochs`, which is that of
    `clops_sweep.learning.timing`, trains on them on a device (cpu or cuda); `say` is told what is being measured.

    Raises:
        BadInput: such a run fails.
    """
    kinds: dict[Kind, list[tuple[Load, RunConfig]]] = {}
    for config in (run.config for run in pending):
        epochs = min(_EPOCHS, config.epochs_per_task)
        # A task order that is still to be found out costs what any other does, and one acquisition what another does.
        cut = config.replace(epochs_per_task=epochs, acquire_every=1, task_order="sequential")
        load = Load.of(cut.model_dump(mode="json"))
        kinds.setdefault(load.kind, []).append((load, cut))
    for runs in kinds.values():
        first = max(runs, key=lambda run: modelled(run[0].work))[1]
        data = frames(first)
        lockstep = [each for _, each in runs if device == "cuda" and each.replace(seed=first.seed) == first] or [first]
        say(f"measuring {first.strategy} on {first.dataset}, {first.scenario}, b = {first.storage_fraction:g}")
        try:
            epochs, taken = time_epochs(lockstep, data, device, seconds / len(kinds))
        except BadInput:
            raise
        except Exception as error:  # what is measured is a run, which fails in any way it likes
            reason = one_line(f"{type(error).__name__}: {error}")
            raise BadInput(f"--calibrate: a run of {first.strategy} on {first.dataset} fails ({reason})") from None
        yield data.data_hash, Measured(Load.of(first.model_dump(mode="json"), epochs), taken, device)


def keep(path: Path, measured: Sequence[tuple[str, Measured]]) -> None:
    """Writes what was measured on which data to a file, if it can be written."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps({**_HERE, "measured": measured}, indent=1).encode())


def kept_in(path: Path) -> list[tuple[str, Measured]]:
    """What `keep` has written to a file, if it was on this machine and by this version of the package."""
    try:
        content = read_json(path)
        measured = [
            (data_hash, Measured(Load(tuple(kind), tuple(work)), seconds, device))
            for data_hash, ((kind, work), seconds, device) in content["measured"]
        ]
        numbers = [number for _, it in measured for number in (*it.load.work, *it.seconds)]
        return measured if _HERE.items() <= content.items() and all(0 <= number < inf for number in numbers) else []
    except (OSError, ValueError, TypeError, KeyError):  # it is not there, or not what `keep` writes
        return []
