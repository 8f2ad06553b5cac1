"""All built-in methods on UCI-HAR: class-incremental learning of six activities in three tasks, a memory of 5 %.

This is the usual setting of the literature on time series (Qiao et al., KDD 2024). Options are tuned by accuracy on the
validation split, with a seed that is not reported. To run only the tuning: --where "seed == 5".
"""

from clops_sweep import SearchSpace, TuneOn
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space
from clops_sweep.search_spaces.methods_mitbih import ER_ACE, METHODS, memory, tuned

_, UCI_HAR = load_spaces(shipped_space("networks"))  # declares the data set, and a network for it
BASE = UCI_HAR.base.replace(network="residual_small", epochs_per_task=5, mc_samples=20, **memory(0.05))
SPACE = SearchSpace(
    name="methods_uci_har",
    base=BASE,
    search=tuned(METHODS | ER_ACE, TuneOn(seeds=(5,)), accuracy="maximize"),
    seeds=range(5),
)
