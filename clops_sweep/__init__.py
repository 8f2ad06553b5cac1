"""Sweeps of whole continual-learning runs on physiological signals.

Importing this package, and any search-space file, needs neither torch nor Ray. From Python a sweep is one call::

    from clops_sweep import RunConfig, SearchSpace, read, sweep

    outcome = sweep(SearchSpace("b", RunConfig(), {"storage_fraction": [0.1, 0.5]}, seeds=range(3)))
    runs = read("results", "runs")
"""

from __future__ import annotations

import sys

import lazy_loader

if sys.platform == "win32":  # no fcntl, no SIGHUP
    raise ImportError("clops-sweep runs on Linux and macOS; on Windows, use WSL")

__version__ = "0.3.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
