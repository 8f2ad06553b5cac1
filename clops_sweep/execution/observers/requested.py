"""Observers that a launch requests with `--observe NAME[:TARGET]`. Imports neither torch nor Ray."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clops_sweep.errors import UsageError, either, nearest_or_all, option, shown
from clops_sweep.experiment.events import Event
from clops_sweep.experiment.plugins.registry import OBSERVERS

if TYPE_CHECKING:  # checking the names needs no store
    from clops_sweep.store.run_store import RunStore


@dataclass(frozen=True)
class RequestedObserver:
    """An observer that a launch requests.

    Attributes:
        name: its name in the registry.
        target: the text behind the colon; None without one.
        folder: a folder for this observer beside the logs of the store; the observer creates it if needed.
    """

    name: str
    target: str | None
    folder: str

    def made(self) -> Callable[[Event], Any]:
        """Return the observer: a function unchanged, or a new instance of a class."""
        member = OBSERVERS[self.name]
        observer: Callable[[Event], Any] = member(self.target, self.folder) if isinstance(member, type) else member
        return observer


def check_observers(texts: Sequence[str]) -> None:
    """Check that every requested observer exists.

    Raises:
        UsageError: an observer is unknown or requested twice, its package or target is missing, or it is a function and
            has a target.
    """
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        example = texts if isinstance(texts, str) else "tensorboard"
        raise UsageError(f"observe = {shown(texts)}: expected a list of names, such as [{shown(example)}]")
    seen = set()
    for text in texts:
        name, colon, target = text.partition(":")
        if name not in OBSERVERS:
            known = f"no such observer{nearest_or_all(name, OBSERVERS)}"
            if "," in name:
                known += f"; of several, expected {either('an --observe for each', 'a list of names')}"
            raise UsageError(f"{option('observe')} {shown(text)}: {known}")
        if name in seen:
            raise UsageError(f"{option('observe', name)} is given twice; expected once")
        if colon and not target:
            raise UsageError(f"{option('observe')} {shown(text)}: nothing follows the colon; expected {name}:TARGET")
        if name not in OBSERVERS.added:
            if importlib.util.find_spec(name) is None:
                raise UsageError(f"{option('observe', name)} needs the package {name}: pip install {name}")
            if name == "mlflow" and not (target or os.environ.get("MLFLOW_TRACKING_URI")):
                raise UsageError(
                    f"{option('observe', 'mlflow')}: expected where to, as in mlflow:http://HOST:5000, or "
                    "MLFLOW_TRACKING_URI"
                )
        elif target and not isinstance(OBSERVERS[name], type):
            raise UsageError(
                f"{option('observe')} {shown(text)}: a function takes no target; expected {name}, or a class"
            )
        seen.add(name)


def requested_observers(texts: Sequence[str], store: RunStore) -> list[RequestedObserver]:
    """Return the observers that checked texts request, in their order."""
    requested = []
    for text in texts:
        name, _, target = text.partition(":")
        folder = str((store.log_folder / name).resolve())
        requested.append(RequestedObserver(name, target or None, folder))
    return requested
