"""The mean cost of runs of a kind, and the estimate of pending ones."""

from __future__ import annotations

from clops_sweep import RunConfig
from clops_sweep.planning.costs import Costs, kind_of


def test_a_run_costs_the_mean_of_its_kind() -> None:
    costs, base = Costs(), RunConfig(dataset="mitbih", epochs_per_task=10)
    clops, fine, longer, repeated, stored = (
        kind_of(base.replace(**change))
        for change in (
            {},
            {"strategy": "finetune"},
            {"epochs_per_task": 30},
            {"learning_rate": 0.9, "seed": 3},
            {"storage_fraction": 0.9},
        )
    )
    assert repeated == clops
    assert stored != clops
    costs.add(clops, 20)
    costs.add(repeated, 40)
    costs.add(fine, 6)
    assert (costs.seconds(clops), costs.seconds(fine), costs.seconds(longer), costs.seconds(None)) == (30, 6, None, 22)
    assert (costs.seconds(stored), costs.guess(stored), costs.guess(longer)) == (None, 30, None)
