"""Sources of variance of the average AUC: method, patient split, initial weights, and the order of batches and dropout.

All combinations of patient splits, initial weights and seeds, for three methods, on the open MIT-BIH Arrhythmia
Database: 144 runs, about seven minutes of processor time. `weight_seed` seeds the initial weights; `seed` seeds
everything else, such as order, dropout, and random storage and replay. The report splits the variance into its sources
and says how many splits a comparison of two methods needs: see docs/gallery.md.
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
