#!/usr/bin/env bash
# Ray 2.60.0 with Optuna 5.0.0: a constant beside the distributions of OptunaSearch(space) reaches no trial.
#
# Guess: {"rate": tune.uniform(0, 1), "batch": 5} gives each trial a rate and batch=5, as param_space does.
# Seen:  as OptunaSearch(space) the trials get {"rate": ...} alone. A warning says that "unresolved search space
#        definitions" should be passed elsewhere; it names neither the constant nor that it is dropped. A function with a
#        default for batch trains with its default.
# Means: a fixed setting of a tuned run is silently another one.
#
# Output seen:
#   OptunaSearch(space): keys ['rate']
#   Tuner(param_space=space): keys ['batch', 'rate']
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q 'ray[tune]==2.60.0' optuna==5.0.0
cat > space.py <<'PYTHON'
import os

import ray
from ray import tune
from ray.tune.search.optuna import OptunaSearch

SPACE = {"rate": tune.uniform(0, 1), "batch": 5}


def train(config):
    tune.report({"score": config["rate"]})


def keys(search, **given):
    """Return the keys that a trial receives."""
    results = tune.Tuner(
        train,
        tune_config=tune.TuneConfig(search_alg=search, num_samples=1),
        run_config=tune.RunConfig(verbose=0, storage_path=os.path.abspath("tune")),
        **given,
    ).fit()
    return sorted(results[0].config)


ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
direct = keys(OptunaSearch(SPACE, metric="score", mode="max"))
converted = keys(OptunaSearch(metric="score", mode="max"), param_space=SPACE)
print("OptunaSearch(space): keys", direct)
print("Tuner(param_space=space): keys", converted)
assert direct == ["rate"]
assert converted == ["batch", "rate"]
PYTHON
env/bin/python -W ignore space.py > seen.txt 2> error.txt || { tail -n 5 error.txt; exit 1; }
grep ': keys' seen.txt
