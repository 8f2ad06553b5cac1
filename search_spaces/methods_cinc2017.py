"""Every built-in method on the CinC Challenge 2017: 4,264 people, a memory of 10 %.

Normal rhythm and atrial fibrillation, then other rhythms and noise; with an output for each position in a task, and
with one for each class. Options are chosen on a split of the people that the study does not use: --where
"split_seed == 10".
"""

from clops_sweep import Recordings, RunConfig, SearchSpace, dataset
from clops_sweep.search_spaces.methods_mitbih import ER_ACE, METHODS, candidates, memory, with_chosen


@dataset(
    "cinc2017",
    scenarios=("class_il",),
    files=["cinc2017"],
    title="AF classification from a short single lead, PhysioNet/CinC Challenge 2017 (Clifford et al., 2017)",
    licence="ODC-BY 1.0",
    source="https://physionet.org/content/challenge-2017/",
)
def cinc2017(data_root):
    """Five seconds of every ten."""
    return Recordings.from_wfdb(
        data_root / "cinc2017",
        table="REFERENCE-v3.csv",  # A00001,N
        label=1,
        classes=("N", "A", "O", "~"),
        window_seconds=5,
        stride_seconds=10,
        resample_to=500,
    )


BASE = RunConfig(dataset="cinc2017", epochs_per_task=10, **memory(0.1))
SCENARIOS = {"class_il": METHODS, "class_il_union": METHODS | ER_ACE}
CHOSEN = {  # by the mean AUC, or with one output a class balanced accuracy: python docs/methods/study.py chosen
    "class_il": {
        "EWC": {"ewc_strength": 400},
        "SI": {"si_strength": 1},
        "MAS": {"mas_strength": 1},
        "LwF": {"lwf_strength": 1},
        "Replay": {"acquisition_fraction": 0.25},
        "CLOPS": {"acquisition_fraction": 0.5},
        "A-GEM": {"agem_batch_size": 256},
        "MIR": {"replay_ratio": 2},
        "DER++": {"derpp_alpha": 0.1},
        "ER": {"replay_ratio": 2},
    },
    "class_il_union": {
        "EWC": {"ewc_strength": 4000},
        "SI": {"si_strength": 1},
        "MAS": {"mas_strength": 10},
        "LwF": {"lwf_strength": 1},
        "Replay": {"acquisition_fraction": 0.5},
        "CLOPS": {"acquisition_fraction": 1},
        "A-GEM": {"agem_batch_size": 16},
        "MIR": {"replay_ratio": 0.5},
        "DER++": {"derpp_alpha": 0.1},
        "ER": {"replay_ratio": 2},
        "ER-ACE": {"replay_ratio": 0.5},
    },
}
SPACE = [
    space
    for scenario, methods in SCENARIOS.items()
    for space in (
        SearchSpace(
            f"methods_cinc2017_{scenario}_selection",
            BASE.replace(scenario=scenario, split_seed=10),
            {"method": candidates(methods)},
            seeds=range(1),
        ),
        SearchSpace(
            f"methods_cinc2017_{scenario}",
            BASE.replace(scenario=scenario),
            {"split_seed": range(5), "method": with_chosen(methods, CHOSEN[scenario])},
            seeds=range(1),
        ),
    )
]
