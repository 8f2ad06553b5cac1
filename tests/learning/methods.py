"""The scenarios in which each strategy is tested: the paper's in all kinds of output, the others in one."""

from __future__ import annotations

import pytest

from clops_sweep.experiment.plugins.registry import STRATEGIES

KINDS = ("class_il", "time_il", "domain_il")
PAPERS = ("clops", "replay", "finetune", "multitask", "gem", "mir")
ANYWHERE = [name for name in STRATEGIES if not STRATEGIES.declaration(name).per_class_outputs]


def one_kind(strategy: str) -> str:
    """Return a scenario that the strategy supports."""
    return "class_il" if strategy in ANYWHERE else "class_il_union"


CASES = [(name, kind) for name in STRATEGIES for kind in (KINDS if name in PAPERS else (one_kind(name),))]
SOME = ("clops", "er", "ewc", "gem", "icarl", "ranpac", "flip_penalty")
"""One of each kind: beta, memory, penalty, projected gradients, prototypes, closed form, a loss."""

MOSTLY_AT_NIGHT = [pytest.param(name, marks=() if name in SOME else pytest.mark.nightly) for name in STRATEGIES]
"""All strategies, as parameters of a long test."""
