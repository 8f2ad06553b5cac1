"""Which observers a launch asks for, with `--observe NAME[:TARGET]`. No torch, no Ray."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clops_sweep.errors import BadInput, listed, shown
from clops_sweep.experiment.config import nearest
from clops_sweep.experiment.registry import OBSERVERS

if TYPE_CHECKING:  # whoever watches runs imports this, and needs no store
    from clops_sweep.store.run_store import RunStore

_PASSED_ON = ("MLFLOW_", "WANDB_")
"""How variables begin that the driver's environment has for the built-in observers, and a worker's need not have."""


@dataclass(frozen=True)
class Observing:
    """An observer that is asked for, as a worker starts it.

    Attributes:
        name: what it is registered as.
        target: what the user has named behind the colon; None where that is nothing.
        folder: of its own, beside the logs of the store; made by who needs it.
        pickled: what is registered, as a pickled `Plugin`; None for a built-in one.
        environment: variables that it is to have beside those of the worker.
    """

    name: str
    target: str | None
    folder: str
    pickled: bytes | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def check_observers(texts: Sequence[str]) -> None:
    """Sees whether what is asked for is there.

    Raises:
        BadInput: no such observer, one that is asked for twice, one that needs a package or a target and has none, or a
            target for a function, which takes none.
    """
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(it, str) for it in texts):
        example = texts if isinstance(texts, str) else "tensorboard"
        raise BadInput(f"observe = {shown(texts)}: expected a list of names, such as [{shown(example)}]")
    seen = set()
    for text in texts:
        name, colon, target = text.partition(":")
        if name not in OBSERVERS:
            known = f"no such observer{nearest(name, OBSERVERS)}; there are {listed(OBSERVERS)}"
            raise BadInput(f"--observe {shown(text)}: {known}")
        if name in seen:
            raise BadInput(f"--observe {name} is there twice; expected it once")
        if colon and not target:
            raise BadInput(f"--observe {shown(text)}: nothing stands behind the colon; expected {name}:TARGET")
        if name not in OBSERVERS.added:
            if importlib.util.find_spec(name) is None:
                raise BadInput(f"--observe {name} needs the package {name}: pip install {name}")
            if name == "mlflow" and not (target or os.environ.get("MLFLOW_TRACKING_URI")):
                raise BadInput(
                    "--observe mlflow: expected where to, as in mlflow:http://HOST:5000, or MLFLOW_TRACKING_URI"
                )
        elif target and not isinstance(OBSERVERS[name], type):
            raise BadInput(f"--observe {shown(text)}: a function takes no target; expected {name}, or a class")
        seen.add(name)


def asked_observers(texts: Sequence[str], store: RunStore) -> tuple[Observing, ...]:
    """The observers that are asked for, ready for workers.

    Raises:
        BadInput: one of them cannot be handed to workers.
    """
    from clops_sweep.sweep.plugins import packed

    environment = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
    found = []
    for name, _, target in (text.partition(":") for text in texts):
        own = OBSERVERS.added.get(name)
        pickled = None if own is None else packed(f"observer {name!r}", own).pickled
        folder = str((store.log_folder / name).resolve())
        if target and name == "tensorboard":
            target = os.path.abspath(target)  # the worker's folder is another one
        found.append(Observing(name, target or None, folder, pickled, environment))
    return tuple(found)
