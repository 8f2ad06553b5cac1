"""Trade-off of CLOPS between AUC, forgetting and time on MIT-BIH: 60 trials with two seeds each.

With several objectives, the result is a Pareto front instead of a best trial; the report draws it. Any numeric column
of the table `runs` can be an objective. Seconds depend on the load of the machine, so compare them only if trials do
not share CPUs.
"""

from clops_sweep import FloatDistribution, IntDistribution, OptunaSearch, RunConfig, SearchSpace

SPACE = SearchSpace(
    name="optuna_trade_off",
    base=RunConfig(scenario="class_il", dataset="mitbih", strategy="clops"),
    search=OptunaSearch(
        parameters={
            "storage_fraction": FloatDistribution(0.05, 1.0, step=0.05),
            "acquisition_fraction": FloatDistribution(0.1, 1.0, step=0.1),
            "mc_samples": IntDistribution(2, 32, log=True),
            "acquire_every": [1, 2, 5, 10],
        },
        n_trials=60,
        objectives={"auc": "maximize", "bwt": "maximize", "seconds": "minimize"},
        sampler="nsga2",
        sampler_options={"population_size": 20},
    ),
    seeds=range(2),
)
