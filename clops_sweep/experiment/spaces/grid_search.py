"""GridSearch: tries all combinations of values; the best one is reported. Plain data."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clops_sweep.experiment.spaces.optuna_search import Direction, check_objectives, choices, variant
from clops_sweep.experiment.spaces.tuning import Method, TuningSet, check_comparable, check_tune_on, methods_of


@dataclass(frozen=True)
class GridSearch:
    """Chooses the best of all combinations of values, which is then run on the axes and seeds of the search space.

    ::

        SearchSpace(
            name="compared",
            base=RunConfig(dataset="mitbih"),
            axes={"split_seed": range(10)},
            search=GridSearch(
                methods={"er": {"replay_ratio": [0.5, 1, 2]}, "finetune": {}},
                tune_on=TuneOn(splits=(100, 101)),
            ),
        )

    The best combination has the best mean of the objective over all tuning runs, on validation data; among equal ones,
    the first. A method with a single combination has no tuning runs.

    Args:
        parameters: config field to a list of values, or a free name to named variants.
        methods: instead of `parameters`, methods that are tuned separately; see `OptunaSearch`.
        tune_on: the tuning data: "same", or a `TuneOn`.
        objectives: one numeric column of `runs` to "maximize" or "minimize"; by default the first headline metric.

    Raises:
        UsageError: there is nothing to vary, a column is unknown, values are not a list, or a field cannot be tuned.
    """

    parameters: Mapping[str, Sequence[Any] | Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tune_on: TuningSet = "same"
    objectives: Mapping[str, Direction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_tune_on("GridSearch", self.tune_on)
        check_objectives(self.objectives, self.tune_on)
        for method in methods_of("GridSearch", self.methods, self.parameters):
            next(combinations(method))
            check_comparable("GridSearch", method)


def combinations(method: Method) -> Iterator[dict[str, Any]]:
    """Yield the combinations of a method's values as labels by parameter; the last parameter varies fastest.

    Raises:
        UsageError: a parameter has neither a list of values nor named variants.
    """
    values = []
    for name, it in method.parameters.items():
        if isinstance(it, Mapping):
            values.append([label for label, settings in it.items() if variant(name, label, settings) is not None])
        else:
            values.append(list(choices(name, it)))
    yield from (dict(zip(method.parameters, of, strict=True)) for of in itertools.product(*values))
