"""Every built-in method on the MIT-BIH Arrhythmia Database, and what CLOPS's parts add to experience replay.

Each method's main option is chosen among three values on three splits of the patients; the chosen ones are then run on
ten other splits, and some of them with memories of other sizes. `docs/methods.md` has the outcome. The tuning alone:
--where "split_seed >= 10".
"""

from clops_sweep import GridSearch, RunConfig, SearchSpace, TuneOn

METHODS = {
    "Fine-tuning": {"strategy": "finetune"},
    "EWC": {"strategy": "ewc"},
    "SI": {"strategy": "si"},
    "MAS": {"strategy": "mas"},
    "LwF": {"strategy": "lwf"},
    "Replay": {"strategy": "replay"},
    "CLOPS": {"strategy": "clops"},
    "GEM": {"strategy": "gem"},
    "A-GEM": {"strategy": "agem"},
    "MIR": {"strategy": "mir"},
    "GDumb": {"strategy": "gdumb"},
    "DER++": {"strategy": "derpp"},
    "ER": {"strategy": "er"},
    # What CLOPS adds to ER: beta in the loss and in what is stored, the easiest or the hardest; BALD; both.
    "ER, beta, easiest": {"like": "ER", "er_storage_order": "top"},
    "ER, beta, hardest": {"like": "ER", "er_storage_order": "bottom"},
    "ER, BALD": {"like": "ER", "er_acquire": True},
    "ER, beta and BALD": {"like": "ER", "er_storage_order": "top", "er_acquire": True},
    "Joint": {"strategy": "joint"},
    "Multi-task": {"strategy": "multitask"},
}
ER_ACE = {"ER-ACE": {"strategy": "er_ace"}}
"""For scenarios with one output a class."""

OPTIONS = {  # a method's main option; those that are not here have none
    "EWC": {"ewc_strength": [40, 400, 4000]},
    "SI": {"si_strength": [0.1, 1, 10]},
    "MAS": {"mas_strength": [0.1, 1, 10]},
    "LwF": {"lwf_strength": [0.1, 1, 10]},
    "Replay": {"acquisition_fraction": [0.25, 0.5, 1]},
    "CLOPS": {"acquisition_fraction": [0.25, 0.5, 1]},
    "A-GEM": {"agem_batch_size": [16, 64, 256]},
    "MIR": {"replay_ratio": [0.5, 1, 2]},
    "DER++": {"derpp_alpha": [0.1, 0.3, 1]},
    "ER": {"replay_ratio": [0.5, 1, 2]},
    "ER-ACE": {"replay_ratio": [0.5, 1, 2]},
}


def memory(share):
    """The same share of all training instances for methods that store b of each task and those of a fixed memory."""
    return {"storage_fraction": share, "memory_fraction": share}


def tuned(methods, tune_on, **objectives):
    """The choice of each method's main option."""
    return GridSearch(
        methods={name: settings | OPTIONS.get(name, {}) for name, settings in methods.items()},
        tune_on=tune_on,
        objectives=objectives,
    )


BASE = RunConfig(scenario="class_il", dataset="mitbih", **memory(0.1))
TUNE_ON = TuneOn(splits=(10, 11, 12), seeds=(0,))
WITH_A_MEMORY = [*(name for name in METHODS if name.startswith("ER")), "Replay", "CLOPS", "GDumb", "DER++"]
SPACE = [
    SearchSpace(
        name="methods_mitbih",
        base=BASE,
        axes={"split_seed": range(10)},
        search=tuned(METHODS, TUNE_ON),
        seeds=range(3),
    ),
    SearchSpace(
        name="methods_mitbih_memory",
        base=BASE,
        axes={"memory": {"5 %": memory(0.05), "25 %": memory(0.25)}, "split_seed": range(10)},
        search=tuned({name: METHODS[name] for name in WITH_A_MEMORY}, TUNE_ON),
        seeds=range(3),
    ),
]
