"""Every built-in method on UCI-HAR: class-incremental learning of six activities in three tasks, a memory of 5 %.

The setting in which the literature on time series compares methods (Qiao et al., KDD 2024). Options are chosen by the
accuracy on the validation split, with a seed that the study does not use: --where "seed == 5".
"""

from clops_sweep import SearchSpace
from clops_sweep.experiment.spaces.search_space import load_spaces, shipped_space
from clops_sweep.search_spaces.methods_mitbih import ER_ACE, METHODS, candidates, memory, with_chosen

_, UCI_HAR = load_spaces(shipped_space("networks"))  # declares the data set, and a network for it
ALL = METHODS | ER_ACE
CHOSEN = {  # python docs/methods/study.py chosen
    "EWC": {"ewc_strength": 40},
    "SI": {"si_strength": 10},
    "MAS": {"mas_strength": 0.1},
    "LwF": {"lwf_strength": 10},
    "Replay": {"acquisition_fraction": 1},
    "CLOPS": {"acquisition_fraction": 1},
    "A-GEM": {"agem_batch_size": 16},
    "MIR": {"replay_ratio": 0.5},
    "DER++": {"derpp_alpha": 0.1},
    "ER": {"replay_ratio": 1},
    "ER-ACE": {"replay_ratio": 1},
}
BASE = UCI_HAR.base.replace(network="residual_small", epochs_per_task=5, mc_samples=20, **memory(0.05))
SPACE = [
    SearchSpace("methods_uci_har_selection", BASE, {"method": candidates(ALL)}, seeds=[5]),
    SearchSpace("methods_uci_har", BASE, {"method": with_chosen(ALL, CHOSEN)}, seeds=range(5)),
]
