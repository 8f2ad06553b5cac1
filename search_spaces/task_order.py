"""The paper's two tables and curves of task orders: shuffled, curriculum and anti-curriculum.

The curricula follow from the s of a CLOPS run in the scenario's default order, which is run first.
"""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="task_order",
    base=RunConfig(scenario="class_il", dataset="cardiology"),
    axes={
        "order": {
            "Random order": {"task_order": 1},
            "Curriculum": {"task_order": "curriculum"},
            "Anti-curriculum": {"task_order": "anti_curriculum"},
        },
        "method": {"Fine-tuning": {"strategy": "finetune"}, "CLOPS": {"strategy": "clops"}},
    },
    seeds=range(5),
)
