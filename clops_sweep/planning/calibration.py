"""Calibration: short runs that measure what kinds of runs cost on this machine, where none of them is finished yet."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clops_sweep.data.folder import write_file
from clops_sweep.errors import BadInput, one_line
from clops_sweep.experiment.columns import PHASES
from clops_sweep.experiment.config import SEMANTICS_VERSION, RunConfig
from clops_sweep.machine import installed_version
from clops_sweep.planning.cost_model import Kind, Load, Measured, modelled
from clops_sweep.planning.plan import PlannedRun

if TYPE_CHECKING:
    from clops_sweep.data.frames import FrameSet

SECONDS = 30.0
"""How long a calibration takes at most, all kinds together, but for an epoch of each."""

_EPOCHS = 2


class Calibrations:
    """What has been measured on this machine, in a file, so that it is measured once.

    Measurements of another machine, version of the package or edition of the data are passed over.

    Args:
        path: of the file; JSON.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._not_kept: list[dict[str, Any]] = []

    def known(self, data_hashes: Collection[str]) -> list[Measured]:
        """What was measured here on any of some data."""
        return [
            Measured(Load(**item["load"]), tuple(item["work"]), tuple(item["seconds"]), item["device"])
            for item in self._items()
            if item["data_hash"] in data_hashes
        ]

    def add(self, measured: Measured, data_hash: str) -> None:
        """Keeps a measurement, in place of an earlier one of the same load and device.

        Where the file cannot be written, it is known to this object alone.
        """
        item = {
            **measured._asdict(),
            "load": measured.load._asdict(),
            "data_hash": data_hash,
            **_circumstances(),
        }
        others = [
            other
            for other in self._items()
            if any(other[name] != item[name] for name in ("load", "data_hash", "device"))
        ]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, f"{json.dumps([*others, item], indent=1)}\n".encode())
        except OSError:
            self._not_kept.append(item)

    def _items(self) -> list[dict[str, Any]]:
        """The measurements of this machine and version; none where the file is not what `add` has written."""
        try:
            items = json.loads(self.path.read_bytes())
            kept = [item for item in items if _circumstances().items() <= item.items() and Load(**item["load"])]
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            kept = []
        return kept + self._not_kept


def calibrate(
    pending: Sequence[PlannedRun],
    frames: Callable[[RunConfig], FrameSet],
    kept: Calibrations,
    *,
    device: str = "cpu",
    seconds: float = SECONDS,
    say: Callable[[str], None] = lambda text: None,
) -> None:
    """Measures the cheapest and the dearest of the pending runs of each kind, for two epochs a task each.

    They are computed in this process; nothing of them is recorded but the time. What does not end in its share of the
    time is left where it is, and counts with what it has done. On a GPU, all pending seeds of a config are a lockstep.

    Args:
        pending: runs of kinds about which nothing is known.
        frames: the data of a config.
        kept: where the measurements go.
        device: on which they will be computed: cpu or cuda.
        seconds: how long it may take.
        say: told what is being measured.

    Raises:
        BadInput: such a run fails.
    """
    chosen = _extremes(pending)
    deadline = time.monotonic() + seconds
    for number, configs in enumerate(chosen):
        load = Load.of(configs[0])
        say(f"measuring {load.strategy} on {load.dataset}, {load.scenario}, b = {load.storage_fraction:g}")
        share = (deadline - time.monotonic()) / (len(chosen) - number)
        data = frames(configs[0])
        try:
            measured = _measure(configs if device == "cuda" else configs[:1], data, device, share)
        except BadInput:
            raise
        except Exception as error:  # what is measured is a run, which fails in any way it likes
            reason = one_line(f"{type(error).__name__}: {error}")
            raise BadInput(f"--calibrate: a run of {load.strategy} on {load.dataset} fails ({reason})") from None
        kept.add(measured, data.data_hash)


def _extremes(pending: Sequence[PlannedRun]) -> list[list[RunConfig]]:
    """Of each kind the cheapest and the dearest load: a config of it with all its pending seeds."""
    kinds: dict[Kind, dict[Load, list[RunConfig]]] = {}
    for run in pending:
        # A task order that is still to be found out costs what any other does.
        config = run.config.replace(epochs_per_task=min(_EPOCHS, run.config.epochs_per_task), task_order="sequential")
        kinds.setdefault(Load.of(run.config).kind, {}).setdefault(Load.of(run.config), []).append(config)
    chosen = []
    for loads in kinds.values():
        ordered = sorted(loads, key=lambda load: modelled(load.work))
        for configs in (loads[load] for load in dict.fromkeys([ordered[0], ordered[-1]])):
            chosen.append([config for config in configs if config.replace(seed=configs[0].seed) == configs[0]])
    return chosen


def _measure(configs: Sequence[RunConfig], frames: FrameSet, device: str, seconds: float) -> Measured:
    """Some epochs of a lockstep, after one that does not count: whatever is done once has been done then."""
    from clops_sweep.learning.run import ContinualRun

    deadline = time.monotonic() + seconds
    ContinualRun(configs, frames, device).advance()
    run = ContinualRun(configs, frames, device)
    epochs = 0
    while not run.finished and (not epochs or time.monotonic() < deadline):
        run.advance()
        epochs += 1
    taken = run.state()["seconds"]
    train, acquire, evaluate = (taken[phase] / len(configs) for phase in PHASES)
    load = Load.of(configs[0])
    return Measured(load, load.work_until(epochs), (train, acquire, evaluate), device)


def _circumstances() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "package_version": installed_version("clops-sweep"),
        "semantics_version": SEMANTICS_VERSION,
    }
