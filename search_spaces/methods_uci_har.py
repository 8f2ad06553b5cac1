"""Every built-in method on UCI-HAR: class-incremental learning of six activities in three tasks, a memory of 5 %.

The setting in which the literature on time series compares methods (Qiao et al., KDD 2024). Options are chosen by the
accuracy on the validation split, with a seed that the study does not use: --where "seed == 5".
"""

from clops_sweep import SearchSpace
from clops_sweep.search_spaces import networks  # declares the data set and its network
from clops_sweep.search_spaces.methods_mitbih import ER_ACE, METHODS, candidates, memory, with_chosen

ALL = METHODS | ER_ACE
CHOSEN = {}
_, UCI_HAR = networks.SPACE
BASE = UCI_HAR.base.replace(network="residual_small", epochs_per_task=5, **memory(0.05))
SPACE = [
    SearchSpace("methods_uci_har_selection", BASE, {"method": candidates(ALL)}, seeds=[5]),
    SearchSpace("methods_uci_har", BASE, {"method": with_chosen(ALL, CHOSEN)}, seeds=range(5)),
]
