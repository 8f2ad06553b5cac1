"""CLOPS tuned by Optuna on the open MIT-BIH Arrhythmia Database: 40 trials of three seeds each, bad ones stopped early.

A trial is one choice of the parameters. Its value is the average AUC on the validation split, averaged over seeds.
After tasks 1, 2, 4, ... a trial continues only if it is in the better half of the trials that got as far. Repeat the
command to continue the study; a larger n_trials adds trials. `optuna-dashboard results/optuna.journal` shows it.

With `--set dataset=synthetic`, no data are needed. This is another search: use another results folder or another name.

The best of 40 trials is partly best by luck, and on one patient split. Evaluate it on other splits (`split_seed`).
"""

from clops_sweep import FloatDistribution, IntDistribution, OptunaSearch, RunConfig, SearchSpace

SPACE = SearchSpace(
    name="optuna_class_il",
    base=RunConfig(scenario="class_il", dataset="mitbih", strategy="clops"),
    search=OptunaSearch(
        parameters={
            # A config field and its bounds, optionally with a step or on a logarithmic scale.
            "learning_rate": FloatDistribution(1e-5, 3e-3, log=True),
            "beta_learning_rate": FloatDistribution(1e-5, 1e-2, log=True),
            "beta_penalty": FloatDistribution(0.1, 100.0, log=True),
            "storage_fraction": FloatDistribution(0.1, 0.5, step=0.05),
            "mc_samples": IntDistribution(5, 25, step=5),
            # A config field and its values, or a free name and named variants, which set any number of fields.
            "acquisition": ["bald_mcd", "balc_kld", "entropy", "random"],
            "storage": {
                "by beta": {},
                "the hardest": {"storage_order": "bottom"},
                "random": {"storage_order": "random"},
            },
        },
        n_trials=40,
        objectives={"auc": "maximize"},
        sampler="tpe",
        sampler_seed=0,
        pruning=True,
    ),
    seeds=range(3),
)
