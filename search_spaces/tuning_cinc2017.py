"""Five methods on the CinC Challenge 2017, tuned on the first task or on the reported data, with 20 trials each.

The reported runs use five patient splits. `docs/searches.md` has the results. The sweep takes about eight minutes of
processor time. Trials run one at a time, which makes them reproducible.
"""

from clops_sweep import FloatDistribution, OptunaSearch, RunConfig, SearchSpace, TuneOn
from clops_sweep.experiment.spaces.space_files import load_spaces, shipped_space
from clops_sweep.search_spaces.methods_mitbih import memory

load_spaces(shipped_space("methods_cinc2017"))  # declares the data set

BASE = RunConfig(dataset="cinc2017", epochs_per_task=2, mc_samples=5, **memory(0.1))
RATE = {"learning_rate": FloatDistribution(1e-4, 1e-2, log=True)}
METHODS = {
    "er": RATE | {"replay_ratio": FloatDistribution(0.25, 4, log=True)},
    "clops": RATE | {"acquisition_fraction": FloatDistribution(0.1, 1)},
    "finetune": RATE,
    "ewc": RATE | {"ewc_strength": FloatDistribution(1, 10_000, log=True)},
    "lwf": RATE | {"lwf_strength": FloatDistribution(0.1, 10, log=True)},
}
SPACE = [
    SearchSpace(
        name=f"tuning_cinc2017_{name}",
        base=BASE,
        axes={"split_seed": range(5)},
        search=OptunaSearch(methods=METHODS, trials_each=20, tune_on=tune_on, max_concurrent=1),
        seeds=range(1),
    )
    for name, tune_on in {"first_task": TuneOn(tasks=1), "same": "same"}.items()
]
