"""CLOPS tuned by Optuna on the open MIT-BIH Arrhythmia Database: 40 trials of three seeds each, bad ones stopped early.

A trial is one choice of the parameters. What counts is the average AUC on the validation split, a mean over the
seeds. After the first and second task (and after the fourth, where there are more) a trial goes on only if it is
among the better half of those that got as far. The same command again goes on with the study, and a larger n_trials
runs the difference; `optuna-dashboard sqlite:///results/optuna.db` shows it meanwhile.

`--set dataset=synthetic` needs no data. It is another search: give it another folder of results, or another name.

The best of 40 trials is the best for one split of the patients, by luck too: judge it on others (`split_seed`) first.
"""

from clops_sweep import FloatDistribution, IntDistribution, OptunaSearch, RunConfig, SearchSpace

SPACE = SearchSpace(
    name="optuna_class_il",
    base=RunConfig(scenario="class_il", dataset="mitbih", strategy="clops"),
    search=OptunaSearch(
        parameters={
            # A field and its bounds. With step or without, on a logarithmic scale where factors matter.
            "learning_rate": FloatDistribution(1e-5, 3e-3, log=True),
            "beta_learning_rate": FloatDistribution(1e-5, 1e-2, log=True),
            "beta_penalty": FloatDistribution(0.1, 100.0, log=True),
            "storage_fraction": FloatDistribution(0.1, 0.5, step=0.05),
            "mc_samples": IntDistribution(5, 25, step=5),
            # A field and its values, or a name of your own and variants that set any number of fields.
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
