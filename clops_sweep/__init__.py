"""Sweeps of whole continual-learning runs on physiological signals.

Importing this package, and any search-space file, needs neither torch nor Ray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clops_sweep.experiment.config import RunConfig
from clops_sweep.experiment.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from clops_sweep.experiment.optuna_search import OptunaSearch, SuccessiveHalving
from clops_sweep.experiment.registry import acquisition_function, storage_function, strategy
from clops_sweep.experiment.search_space import SearchSpace

if TYPE_CHECKING:
    from clops_sweep.learning.run import ContinualRun

__version__ = "0.1.0"
__all__ = [
    "CategoricalDistribution",
    "ContinualRun",
    "FloatDistribution",
    "IntDistribution",
    "OptunaSearch",
    "RunConfig",
    "SearchSpace",
    "SuccessiveHalving",
    "__version__",
    "acquisition_function",
    "storage_function",
    "strategy",
]


def __getattr__(name: str) -> Any:
    if name == "ContinualRun":
        from clops_sweep.learning.run import ContinualRun

        return ContinualRun
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
