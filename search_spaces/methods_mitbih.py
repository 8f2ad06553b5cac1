"""Every built-in method on the MIT-BIH Arrhythmia Database, and what CLOPS's parts add to experience replay.

Three spaces. The selection tries three values of each method's main option on three splits of the patients; what it
chose stands in `CHOSEN`. The study takes it over to ten other splits, and the last space to other sizes of memory.
`docs/methods.md` has the outcome. The selection alone: --where "split_seed >= 10"; the rest: --where "split_seed < 10".
"""

from clops_sweep import RunConfig, SearchSpace

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
    "ER, beta, easiest": {"strategy": "er", "er_storage_order": "top"},
    "ER, beta, hardest": {"strategy": "er", "er_storage_order": "bottom"},
    "ER, BALD": {"strategy": "er", "er_acquire": True},
    "ER, beta and BALD": {"strategy": "er", "er_storage_order": "top", "er_acquire": True},
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


def candidates(methods):
    """Each method that has an option with each value of it."""
    return {
        f"{method}, {option} {value}": settings | {option: value}
        for method, settings in methods.items()
        for option, values in OPTIONS.get(method, {}).items()
        for value in values
    }


def with_chosen(methods, chosen):
    """Each method with the option that was chosen for it; variants of ER with that of ER, to differ in nothing else."""
    return {method: settings | chosen.get(method.split(",")[0], {}) for method, settings in methods.items()}


CHOSEN = {  # by the selection's mean AUC on validation: python docs/methods/study.py chosen
    "EWC": {"ewc_strength": 400},
    "SI": {"si_strength": 0.1},
    "MAS": {"mas_strength": 0.1},
    "LwF": {"lwf_strength": 1},
    "Replay": {"acquisition_fraction": 1},
    "CLOPS": {"acquisition_fraction": 0.25},
    "A-GEM": {"agem_batch_size": 16},
    "MIR": {"replay_ratio": 0.5},
    "DER++": {"derpp_alpha": 0.1},
    "ER": {"replay_ratio": 2},
}
BASE = RunConfig(scenario="class_il", dataset="mitbih", **memory(0.1))
ALL = with_chosen(METHODS, CHOSEN)
WITH_A_MEMORY = [*(name for name in METHODS if name.startswith("ER")), "Replay", "CLOPS", "GDumb", "DER++"]
SPACE = [
    SearchSpace(
        name="methods_mitbih_selection",
        base=BASE,
        axes={"method": candidates(METHODS), "split_seed": [10, 11, 12]},
        seeds=range(1),
    ),
    SearchSpace(
        name="methods_mitbih",
        base=BASE,
        axes={"method": ALL, "split_seed": range(10)},
        seeds=range(3),
    ),
    SearchSpace(
        name="methods_mitbih_memory",
        base=BASE,
        axes={
            "memory": {"5 %": memory(0.05), "25 %": memory(0.25)},
            "method": {name: ALL[name] for name in WITH_A_MEMORY},
            "split_seed": range(10),
        },
        seeds=range(3),
    ),
]
