"""What the average AUC of a run depends on: patients, initial weights, order of the batches and dropout, or the method.

Every patient split with all initial weights and all seeds, for three methods, on the open MIT-BIH Arrhythmia Database:
144 runs, about seven minutes of processor time. Initial weights have a seed of their own (`weight_seed`); with a run's
own seed all else changes: order, dropout, what is stored and replayed at random. The report splits the variance of
average AUC into its sources, and says how many splits a comparison of two methods needs: docs/gallery.md.
"""

from clops_sweep import RunConfig, SearchSpace

SPACE = SearchSpace(
    name="variance",
    base=RunConfig(scenario="class_il", dataset="mitbih"),
    axes={
        "method": {
            "Fine-tuning": {"strategy": "finetune"},
            "Replay": {"strategy": "replay"},
            "CLOPS": {"strategy": "clops"},
        },
        "weight_seed": range(2),
        "split_seed": range(12),
    },
    seeds=range(2),
)
