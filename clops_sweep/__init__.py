"""Sweeps of whole continual-learning runs on physiological signals.

Importing this package, and any search-space file, needs neither torch nor Ray. From Python a sweep is one call::

    from clops_sweep import RunConfig, SearchSpace, read, sweep

    outcome = sweep(SearchSpace("b", RunConfig(), {"storage_fraction": [0.1, 0.5]}, seeds=range(3)))
    runs = read("results", "runs")
"""

from __future__ import annotations

import sys
from typing import Any

import lazy_loader

if sys.platform == "win32":  # no fcntl, no SIGHUP
    raise ImportError("clops-sweep runs on Linux and macOS; on Windows, use WSL")

__version__ = "0.4.0.dev0"
_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_FORMER = {
    "LockstepStrategy": "Strategy",
    "LockstepMemory": "Memory",
    "InstanceMemory": "Memory",
    "RunNetworks": "Learner",
}
"""Names up to version 0.3, and what took their place."""


def __getattr__(name: str) -> Any:
    if name in _FORMER:
        from clops_sweep.errors import UsageError

        raise UsageError(
            f"clops_sweep.{name}: a method trains one run since 0.4; expected clops_sweep.{_FORMER[name]}, as in "
            "docs/own_method.md"
        )
    return _attribute(name)
