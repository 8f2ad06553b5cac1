"""All built-in methods on the MIT-BIH Arrhythmia Database, and CLOPS without some of its parts.

Each method's main option is tuned over three values on three patient splits. The chosen configurations are then run on
ten other splits, some of them also with other memory sizes. `docs/methods.md` has the results.
"""

from clops_sweep import OptunaSearch, RunConfig, SearchSpace, TuneOn

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
    # CLOPS stores the easiest instances and replays by BALD; here one or both of these parts are others.
    "CLOPS, random acquisition": {"like": "CLOPS", "acquisition": "random"},
    "CLOPS, hardest, random acquisition": {"like": "CLOPS", "storage_order": "bottom", "acquisition": "random"},
    "CLOPS, random storage": {"like": "CLOPS", "storage_order": "random"},
    "Joint": {"strategy": "joint"},
    "Multi-task": {"strategy": "multitask"},
}
ER_ACE = {"ER-ACE": {"strategy": "er_ace"}}
"""Only for scenarios with one output per class."""

OPTIONS = {  # the tuned option of each method; the other methods have none
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
    """Return settings that give all methods the same memory: a share of each task, or of all training instances."""
    return {"storage_fraction": share, "memory_fraction": share}


def tuned(methods, tune_on, **objectives):
    """Return the search over each method's main option."""
    return OptunaSearch(
        sampler="grid",
        methods={name: settings | OPTIONS.get(name, {}) for name, settings in methods.items()},
        tune_on=tune_on,
        objectives=objectives,
    )


BASE = RunConfig(scenario="class_il", dataset="mitbih", **memory(0.1))
TUNE_ON = TuneOn(splits=(10, 11, 12), seeds=(0,))
WITH_A_MEMORY = ["ER", *(name for name in METHODS if name.startswith("CLOPS")), "Replay", "GDumb", "DER++"]
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
